"""A namespace of targets and autoscalers: every kind that is followed, a custom one, and every type of metric.

Pods are simulated, and metrics are stated in ConfigMaps, so that each target ends at three replicas.
"""

from typing import Any

from up_process import Up, eventually

Object = dict[str, Any]

GROUP = "example.dev"
TARGETS = (
    "/apis/apps/v1/namespaces/{namespace}/deployments/web",
    "/apis/apps/v1/namespaces/{namespace}/statefulsets/db",
    "/apis/apps/v1/namespaces/{namespace}/replicasets/set",
    "/api/v1/namespaces/{namespace}/replicationcontrollers/rc",
    "/apis/apps/v1/namespaces/{namespace}/deployments/managed",
    "/apis/example.dev/v1/namespaces/{namespace}/pools/pool",
)
"""What is scaled to 3, each by another metric or kind."""

BUSY = {"podscaler.dev/simulated-total-cpu": "150m"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
BY_TEN = {"type": "AverageValue", "averageValue": "10"}
LOAD = {"type": "Pods", "pods": {"metric": {"name": "load"}, "target": BY_TEN}}
DEPTH = {"type": "External", "external": {"metric": {"name": "depth"}, "target": BY_TEN}}


def hits(kind: str, name: str) -> Object:
    """A metric of an object."""
    described = {"apiVersion": "v1", "kind": kind, "name": name}
    return {"type": "Object", "object": {"describedObject": described, "metric": {"name": "hits"}, "target": BY_TEN}}


def populate(up: Up, namespace: str) -> None:
    """Make everything in a namespace of its own."""
    up.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    _state_metrics(up, namespace)
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    for name in ("web", "managed"):
        up.create(f"{apps}/deployments", _workload(name))
    up.create(f"{apps}/statefulsets", _workload("db", serviceName="db"))
    up.create(f"{apps}/replicasets", _workload("set"))
    up.create(f"/api/v1/namespaces/{namespace}/replicationcontrollers", _workload("rc", selector={"app": "rc"}))
    _create_pool(up, namespace)
    autoscalers = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    for autoscaler in (
        _autoscaler("web", "apps/v1", "Deployment", CPU),
        _autoscaler("db", "apps/v1", "StatefulSet", LOAD),
        _autoscaler("set", "apps/v1", "ReplicaSet", hits("Service", "db"), hits("Namespace", namespace)),
        _autoscaler("rc", "v1", "ReplicationController", DEPTH),
        _autoscaler("pool", f"{GROUP}/v1", "Pool", DEPTH),
        _autoscaler("nothing", "apps/v1", "Deployment", CPU),
    ):
        up.create(autoscalers, autoscaler)
    managed = _autoscaler("managed", "apps/v1", "Deployment", CPU) | {
        "kind": "PodAutoscaler",
        "apiVersion": "podscaler.dev/v1alpha1",
    }
    up.create(f"/apis/podscaler.dev/v1alpha1/namespaces/{namespace}/podautoscalers", managed)


def _state_metrics(up: Up, namespace: str) -> None:
    stated = {
        "custom": {
            "load": "{pods: app=db, value: 30, sharedBy: app=db}",
            "hits": "[{object: service/db, value: 30}, {object: namespace, value: 20}]",
        },
        "external": {"depth": "30"},
    }
    for api, data in stated.items():
        metadata = {"name": api, "labels": {"podscaler.dev/metrics": api}}
        up.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": metadata, "data": data})


def _workload(name: str, **spec: Any) -> Object:
    containers = [{"name": "app", "image": "none", "resources": {"requests": {"cpu": "100m"}}}]
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"runtimeClassName": "simulated", "containers": containers},
    }
    common = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name, "annotations": BUSY}, "spec": common | spec}


def _autoscaler(name: str, version: str, kind: str, *metrics: Object) -> Object:
    target = {"apiVersion": version, "kind": kind, "name": name}
    return {"metadata": {"name": name}, "spec": {"scaleTargetRef": target, "maxReplicas": 5, "metrics": list(metrics)}}


def _create_pool(up: Up, namespace: str) -> None:
    """A custom resource with a scale, and nobody who makes pods of it."""
    if up.find("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pools.example.dev") is None:
        up.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _pools())
    pools = f"/apis/{GROUP}/v1/namespaces/{namespace}/pools"
    eventually(lambda: up.request("GET", pools).status, until=lambda status: status == 200)
    pool = {"apiVersion": f"{GROUP}/v1", "kind": "Pool", "metadata": {"name": "pool"}, "spec": {"replicas": 1}}
    up.create(pools, pool)
    up.patch(f"{pools}/pool/status", {"status": {"replicas": 1, "selector": "app=pool"}})


def _pools() -> Object:
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
            "status": status,
        },
    }
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    }
    names = {"plural": "pools", "kind": "Pool"}
    return {
        "metadata": {"name": f"pools.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
