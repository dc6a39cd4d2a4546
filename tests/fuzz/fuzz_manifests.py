"""One valid object of every kind that is stored, by the path that it is created at.

Called by the tests of this folder, which send them whole, with more fields, and with fields that are wrong.
"""

from typing import Any

Object = dict[str, Any]
NAME = "fuzz"
NAMESPACE = "default"

_LABELS = {"app": NAME}
_SELECTOR = {"matchLabels": _LABELS}
_POD_SPEC = {"containers": [{"name": "c", "image": "example.com/app", "resources": {"requests": {"cpu": "100m"}}}]}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": _POD_SPEC}
_RULES = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}]
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_READERS = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}]
_JOB_POD = {**_POD_SPEC, "restartPolicy": "Never"}
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME}
_CPU = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
_RULE = {"stabilizationWindowSeconds": 5, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}
_BACKEND = {"service": {"name": NAME, "port": {"number": 80}}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_USAGE = {"cpu": "1m", "memory": "1Mi"}
_TIME = "2026-01-01T00:00:00Z"
_INTEGER = {"type": "integer", "minimum": 0, "maximum": 1000, "default": 1}
_WIDGET: Object = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": _INTEGER,
                "mode": {"type": "string", "enum": ["a", "b"], "pattern": "^[a-z]+$", "maxLength": 5},
                "port": {"x-kubernetes-int-or-string": True},
                "at": {"type": "string", "format": "date-time", "nullable": True},
                "ratio": {"type": "number", "multipleOf": 0.5},
                "items": {
                    "type": "array",
                    "maxItems": 4,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "more": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "inner": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}},
            },
        },
        "status": {"type": "object", "properties": {"replicas": _INTEGER, "selector": {"type": "string"}}},
    },
}
_WIDGET["properties"]["spec"]["properties"]["inner"]["x-kubernetes-preserve-unknown-fields"] = True
_SUBRESOURCES = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


def definition(plural: str, kind: str, scope: str, versions: list[Object]) -> Object:
    """The CustomResourceDefinition of a kind of the group fuzz.example.com."""
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": "fuzz.example.com", "scope": scope, "names": names, "versions": versions}
    return {"metadata": {"name": f"{plural}.fuzz.example.com"}, "spec": spec}


WIDGETS = definition(
    "widgets",
    "Widget",
    "Namespaced",
    [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": _WIDGET},
            "subresources": _SUBRESOURCES,
            "selectableFields": [{"jsonPath": ".spec.mode"}],
            "additionalPrinterColumns": [{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}],
        },
        {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": _WIDGET}},
    ],
)
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
GADGETS = definition(
    "gadgets",
    "Gadget",
    "Cluster",
    [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _OPEN}}],
)

_SPECS: dict[str, tuple[str, Object]] = {
    "/api/v1/namespaces": ("v1 Namespace", {}),
    "/api/v1/nodes": ("v1 Node", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": (
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        GADGETS,
    ),
    "/apis/apiregistration.k8s.io/v1/apiservices": (
        "apiregistration.k8s.io/v1 APIService",
        {
            "metadata": {"name": "v1.fuzz"},
            "spec": {"group": NAME, "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1},
        },
    ),
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": ("rbac.authorization.k8s.io/v1 ClusterRole", {"rules": _RULES}),
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": (
        "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
        {"roleRef": _ROLE, "subjects": _READERS},
    ),
    "/apis/scheduling.k8s.io/v1/priorityclasses": ("scheduling.k8s.io/v1 PriorityClass", {"value": 5}),
    "/apis/node.k8s.io/v1/runtimeclasses": ("node.k8s.io/v1 RuntimeClass", {"handler": "runc"}),
    "/apis/networking.k8s.io/v1/ingressclasses": (
        "networking.k8s.io/v1 IngressClass",
        {"spec": {"controller": "example.com/c"}},
    ),
    "/apis/metrics.k8s.io/v1/nodes": (
        "metrics.k8s.io/v1 NodeMetrics",
        {"timestamp": _TIME, "window": "15s", "usage": _USAGE},
    ),
    "/apis/fuzz.example.com/v1/gadgets": ("fuzz.example.com/v1 Gadget", {"spec": {"a": [1, {"b": None}]}}),
}
_NAMESPACED: dict[str, tuple[str, Object]] = {
    "/api/v1 configmaps": ("v1 ConfigMap", {"data": {"a": "b"}, "binaryData": {"c": "AAE="}}),
    "/api/v1 events": ("v1 Event", {"involvedObject": {"kind": "Pod", "name": "p", "namespace": NAMESPACE}}),
    "/api/v1 limitranges": ("v1 LimitRange", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}),
    "/api/v1 persistentvolumeclaims": ("v1 PersistentVolumeClaim", {"spec": _CLAIM}),
    "/api/v1 pods": (
        "v1 Pod",
        {"metadata": {"name": NAME, "labels": _LABELS}, "spec": {**_POD_SPEC, "nodeName": NAME}},
    ),
    "/api/v1 replicationcontrollers": (
        "v1 ReplicationController",
        {"spec": {"replicas": 1, "selector": _LABELS, "template": _TEMPLATE}},
    ),
    "/api/v1 resourcequotas": ("v1 ResourceQuota", {"spec": {"hard": {"count/widgets.example.com": "900000"}}}),
    "/api/v1 secrets": ("v1 Secret", {"data": {"a": "AAE="}, "type": "Opaque"}),
    "/api/v1 serviceaccounts": ("v1 ServiceAccount", {"secrets": [{"name": NAME}]}),
    "/api/v1 services": ("v1 Service", {"spec": {"selector": _LABELS, "ports": [{"port": 80, "targetPort": "http"}]}}),
    "/apis/apps/v1 controllerrevisions": ("apps/v1 ControllerRevision", {"revision": 1, "data": {"spec": {}}}),
    "/apis/apps/v1 daemonsets": ("apps/v1 DaemonSet", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
    "/apis/apps/v1 deployments": (
        "apps/v1 Deployment",
        {"spec": {"replicas": 2, "selector": _SELECTOR, "template": _TEMPLATE}},
    ),
    "/apis/apps/v1 replicasets": ("apps/v1 ReplicaSet", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
    "/apis/apps/v1 statefulsets": (
        "apps/v1 StatefulSet",
        {
            "spec": {
                "selector": _SELECTOR,
                "serviceName": NAME,
                "template": _TEMPLATE,
                "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": _CLAIM}],
            }
        },
    ),
    "/apis/autoscaling/v2 horizontalpodautoscalers": (
        "autoscaling/v2 HorizontalPodAutoscaler",
        {
            "spec": {
                "scaleTargetRef": _TARGET,
                "maxReplicas": 9,
                "metrics": [{"type": "Resource", "resource": _CPU}],
                "behavior": {"scaleUp": _RULE},
            }
        },
    ),
    "/apis/batch/v1 jobs": ("batch/v1 Job", {"spec": {"template": {"spec": _JOB_POD}}}),
    "/apis/coordination.k8s.io/v1 leases": ("coordination.k8s.io/v1 Lease", {"spec": {"holderIdentity": "a"}}),
    "/apis/discovery.k8s.io/v1 endpointslices": (
        "discovery.k8s.io/v1 EndpointSlice",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"name": "http", "port": 80}]},
    ),
    "/apis/events.k8s.io/v1 events": (
        "events.k8s.io/v1 Event",
        {
            "metadata": {"name": "fuzz2"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "example.com/c",
            "reportingInstance": "i",
            "action": "Act",
            "reason": "Because",
            "type": "Normal",
            "regarding": {"kind": "Pod", "name": "p", "namespace": NAMESPACE},
        },
    ),
    "/apis/metrics.k8s.io/v1 pods": (
        "metrics.k8s.io/v1 PodMetrics",
        {"timestamp": _TIME, "window": "15s", "containers": [{"name": "c", "usage": _USAGE}]},
    ),
    "/apis/networking.k8s.io/v1 ingresses": ("networking.k8s.io/v1 Ingress", {"spec": {"defaultBackend": _BACKEND}}),
    "/apis/networking.k8s.io/v1 networkpolicies": (
        "networking.k8s.io/v1 NetworkPolicy",
        {"spec": {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}},
    ),
    "/apis/policy/v1 poddisruptionbudgets": (
        "policy/v1 PodDisruptionBudget",
        {"spec": {"selector": _SELECTOR, "minAvailable": "50%"}},
    ),
    "/apis/rbac.authorization.k8s.io/v1 roles": ("rbac.authorization.k8s.io/v1 Role", {"rules": _RULES}),
    "/apis/rbac.authorization.k8s.io/v1 rolebindings": (
        "rbac.authorization.k8s.io/v1 RoleBinding",
        {"roleRef": _ROLE, "subjects": _READERS},
    ),
    "/apis/fuzz.example.com/v1 widgets": (
        "fuzz.example.com/v1 Widget",
        {
            "spec": {
                "mode": "a",
                "port": "http",
                "items": [{"name": "x"}],
                "tags": ["t"],
                "more": {"k": "v"},
                "free": {"q": [1]},
                "inner": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
            },
            "status": {"replicas": 1, "selector": "a=b"},
        },
    ),
}


def _whole(kind: str, parts: Object) -> Object:
    api_version, _, name = kind.partition(" ")
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": NAME}, **parts}


def _objects() -> dict[str, Object]:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    found = {path: _whole(kind, parts) for path, (kind, parts) in _SPECS.items()}
    for place, (kind, parts) in _NAMESPACED.items():
        root, _, plural = place.partition(" ")
        found[f"{root}/namespaces/{NAMESPACE}/{plural}"] = _whole(kind, parts)
    return {definitions: found.pop(definitions), **found}


OBJECTS = _objects()
"""The objects by path, definitions of kinds first."""
OPENING = [
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        _whole("apiextensions.k8s.io/v1 CustomResourceDefinition", WIDGETS),
    )
]
"""What is created before them."""

_ACCESS = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": NAMESPACE}}
_REVIEWED: dict[str, Object] = {
    "TokenReview": {"spec": {"token": "x", "audiences": ["a"]}},
    "SelfSubjectReview": {},
    "SubjectAccessReview": {"spec": {**_ACCESS, "user": "u", "groups": ["g"], "extra": {"a": ["b"]}}},
    "LocalSubjectAccessReview": {"spec": {**_ACCESS, "user": "u"}},
    "SelfSubjectAccessReview": {"spec": _ACCESS},
    "SelfSubjectRulesReview": {"spec": {"namespace": NAMESPACE}},
    "TokenRequest": {"spec": {"expirationSeconds": 600, "audiences": ["a"]}},
    "Eviction": {"metadata": {"name": NAME}, "deleteOptions": {"gracePeriodSeconds": 1}},
    "Binding": {"metadata": {"name": NAME}, "target": {"kind": "Node", "name": NAME}},
    "Scale": {"metadata": {"name": NAME}, "spec": {"replicas": 3}},
    "DeleteOptions": {"gracePeriodSeconds": 0, "preconditions": {"uid": "x"}, "propagationPolicy": "Background"},
}


def valid(api_version: str, kind: str) -> Object:
    """A body of a kind that is right or nearly: objects of older versions are those of the current one."""
    for obj in [*OBJECTS.values(), OPENING[0][1]]:
        if obj["kind"] == kind and (obj["apiVersion"] == api_version or kind != "Event"):
            return {**obj, "apiVersion": api_version}
    return {"apiVersion": api_version, "kind": kind, **_REVIEWED.get(kind, {})}
