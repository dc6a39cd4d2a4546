"""Each rule: manifests in which it finds something, and the nearest ones in which it does not."""

from typing import Any

import pytest
from lint_manifests import (
    CONTAINER,
    REFERENCE,
    Object,
    Short,
    behavior,
    container,
    container_cpu,
    cpu,
    deployment,
    external,
    hpa,
    memory,
    obj,
    resource,
    short,
)

HPA = "HorizontalPodAutoscaler shop/web"
WEB = "Deployment shop/web"
FAILURE = "podscaler.dev/on-metric-failure-"
METRIC = "spec.metrics[0].resource.target.averageUtilization"
SIDECAR: Object = {**container("proxy"), "restartPolicy": "Always"}
EVEN = container("main", requests={"cpu": "100m"}, limits={"cpu": "100m"})
SMALL: Object = {"type": "Pods", "value": 1, "periodSeconds": 60}
LARGE: Object = {"type": "Pods", "value": 3, "periodSeconds": 30}
KEDA = obj("ScaledObject", "keda.sh/v1alpha1", "web", spec={"scaleTargetRef": {"name": "web"}})


def at_target(percent: int) -> list[Object]:
    return [cpu(type="Utilization", averageUtilization=percent)]


def to(**reference: Any) -> Object:
    return {**REFERENCE, **reference}


def quota(**hard: Any) -> Object:
    return obj("ResourceQuota", "v1", "q", spec={"hard": hard})


def vertical(**spec: Any) -> Object:
    return obj("VerticalPodAutoscaler", "autoscaling.k8s.io/v1", "v", spec={"targetRef": REFERENCE, **spec})


def widget(*, has_scale: bool) -> Object:
    scale = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": scale if has_scale else {"status": {}}}
    version["schema"] = {"openAPIV3Schema": {"type": "object"}}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    crd = obj("CustomResourceDefinition", "apiextensions.k8s.io/v1", "widgets.example.com", spec=spec)
    del crd["metadata"]["namespace"]
    return crd


FAILING: dict[str, tuple[list[Object], list[Short]]] = {
    "refused": ([hpa(maxReplicas=1)], [("PSL000", HPA, "spec.maxReplicas")]),
    "unknown field": ([hpa(foo=1)], [("PSL000", HPA, "")]),
    "a sidecar without a request": (
        [hpa(), deployment(pod={"initContainers": [SIDECAR]})],
        [("PSL001", WEB, "spec.template.spec.initContainers[0].resources")],
    ),
    "the default metric needs a request": (
        [hpa(metrics=[]), deployment(containers=[container("main")])],
        [("PSL001", WEB, "spec.template.spec.containers[0].resources")],
    ),
    "requests for the whole pod without cpu": (
        [hpa(), deployment(containers=[container("main")], pod={"resources": {"requests": {"memory": "1Gi"}}})],
        [("PSL001", WEB, "spec.template.spec.resources.requests")],
    ),
    "a DaemonSet": (
        [hpa(scaleTargetRef=to(kind="DaemonSet"))],
        [("PSL002", HPA, "spec.scaleTargetRef.kind")],
    ),
    "a kind that apps does not have": (
        [hpa(scaleTargetRef=to(kind="Foo"))],
        [("PSL002", HPA, "spec.scaleTargetRef.kind")],
    ),
    "a group that is gone": (
        [hpa(scaleTargetRef=to(apiVersion="extensions/v1beta1"))],
        [("PSL002", HPA, "spec.scaleTargetRef.kind")],
    ),
    "a custom resource without scale": (
        [hpa(scaleTargetRef=to(apiVersion="example.com/v1", kind="Widget")), widget(has_scale=False)],
        [("PSL002", HPA, "spec.scaleTargetRef.kind")],
    ),
    "another name": ([hpa(), deployment("api")], [("PSL003", HPA, "spec.scaleTargetRef.name")]),
    "too few pods allowed": ([hpa(), deployment(), quota(pods="1")], [("PSL004", HPA, "spec.minReplicas")]),
    "too little cpu allowed": (
        [hpa(), deployment(), quota(**{"requests.cpu": "150m"})],
        [("PSL004", HPA, "spec.minReplicas")],
    ),
    "replicas in the manifest": ([hpa(), deployment(replicas=3)], [("PSL005", WEB, "spec.replicas")]),
    "value of a total": (
        [hpa(metrics=[external(type="Value", value="30")])],
        [("PSL006", HPA, "spec.metrics[0].external.target.type")],
    ),
    "a selector that picks others' pods": (
        [
            hpa(),
            deployment(),
            hpa("api", scaleTargetRef=to(name="api")),
            deployment("api", labels={"app": "web", "part": "api"}),
        ],
        [("PSL007", WEB, "spec.selector")],
    ),
    "two for one target": (
        [hpa(), hpa("other"), deployment()],
        [
            ("PSL008", HPA, "spec.scaleTargetRef"),
            ("PSL008", "HorizontalPodAutoscaler shop/other", "spec.scaleTargetRef"),
        ],
    ),
    "a ScaledObject beside it": ([hpa(), deployment(), KEDA], [("PSL008", HPA, "spec.scaleTargetRef")]),
    "disabled in both directions": (
        [hpa(behavior={"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"selectPolicy": "Disabled"}})],
        [("PSL009", HPA, "spec.behavior")],
    ),
    "policies of what is disabled": (
        [behavior("scaleDown", selectPolicy="Disabled", policies=[SMALL])],
        [("PSL009", HPA, "spec.behavior.scaleDown.policies")],
    ),
    "a policy that another outdoes": (
        [behavior("scaleDown", policies=[SMALL, LARGE])],
        [("PSL009", HPA, "spec.behavior.scaleDown.policies[0]")],
    ),
    "a policy that is never the strictest": (
        [behavior("scaleDown", selectPolicy="Min", policies=[SMALL, LARGE])],
        [("PSL009", HPA, "spec.behavior.scaleDown.policies[1]")],
    ),
    "less than one pod": (
        [behavior("scaleDown", policies=[{"type": "Percent", "value": 9, "periodSeconds": 60}])],
        [("PSL010", HPA, "spec.behavior.scaleDown.policies[0].value")],
    ),
    "a tolerance in percent": (
        [behavior("scaleDown", tolerance="5")],
        [("PSL011", HPA, "spec.behavior.scaleDown.tolerance")],
    ),
    "limits within the default tolerance": (
        [hpa(metrics=at_target(95)), deployment(containers=[EVEN])],
        [("PSL011", HPA, METRIC)],
    ),
    "a vertical autoscaler": ([hpa(), deployment(), vertical()], [("PSL012", HPA, "spec.metrics")]),
    "equal bounds": ([hpa(maxReplicas=2)], [("PSL014", HPA, "spec.maxReplicas")]),
    "policies that limit nothing": (
        [behavior("scaleUp", policies=[{"type": "Percent", "value": 900, "periodSeconds": 15}])],
        [("PSL015", HPA, "spec.behavior.scaleUp")],
    ),
    "many pods at once without policies": (
        [hpa(minReplicas=30, maxReplicas=60)],
        [("PSL015", HPA, "spec.maxReplicas")],
    ),
    "a target above the limits": (
        [hpa(metrics=at_target(120)), deployment(containers=[EVEN])],
        [("PSL016", HPA, METRIC)],
    ),
    "zero without a waking metric": ([hpa(minReplicas=0)], [("PSL017", HPA, "spec.minReplicas")]),
    "an old version": (
        [{**hpa(), "apiVersion": "autoscaling/v2beta2"}],
        [("PSL018", HPA, "apiVersion")],
    ),
    "an old workload": ([{**deployment(), "apiVersion": "apps/v1beta1"}], [("PSL018", WEB, "apiVersion")]),
    "an unknown container": (
        [hpa(metrics=[container_cpu("mian")]), deployment()],
        [("PSL019", HPA, "spec.metrics[0].containerResource.container")],
    ),
    "memory alone": ([hpa(metrics=[memory()])], [("PSL020", HPA, "spec.metrics")]),
    "a short window": (
        [behavior("scaleDown", stabilizationWindowSeconds=29)],
        [("PSL021", HPA, "spec.behavior.scaleDown.stabilizationWindowSeconds")],
    ),
    "an annotation with an unknown id": (
        [hpa(annotations={"podscaler.dev/lint-ignore": "PSL014, PSL9"})],
        [("PSL022", HPA, "metadata.annotations[podscaler.dev/lint-ignore]")],
    ),
    "fewer pods than maxReplicas": ([hpa(), deployment(), quota(pods="9")], [("PSL023", HPA, "spec.maxReplicas")]),
    "a window longer than load lasts": (
        [behavior("scaleUp", stabilizationWindowSeconds=901)],
        [("PSL024", HPA, "spec.behavior.scaleUp.stabilizationWindowSeconds")],
    ),
    "a resource that is not measured": (
        [hpa(metrics=[resource("cpus")]), deployment()],
        [("PSL025", HPA, "spec.metrics[0].resource.name")],
    ),
    "a failure policy that cannot be read": (
        [hpa(annotations={f"{FAILURE}keep-last-for": "5 minutes"})],
        [("PSL026", HPA, f"metadata.annotations[{FAILURE}keep-last-for]")],
    ),
    "an annotation that is none": (
        [hpa(annotations={f"{FAILURE}keep": "5m"})],
        [("PSL026", HPA, f"metadata.annotations[{FAILURE}keep]")],
    ),
    "fallback replicas above the maximum": (
        [hpa(annotations={f"{FAILURE}fallback-replicas": "11"})],
        [("PSL027", HPA, f"metadata.annotations[{FAILURE}fallback-replicas]")],
    ),
    "fallback replicas below the minimum": (
        [hpa(annotations={f"{FAILURE}fallback-replicas": "1"})],
        [("PSL027", HPA, f"metadata.annotations[{FAILURE}fallback-replicas]")],
    ),
}

PASSING: dict[str, list[Object]] = {
    "clean": [hpa(), deployment()],
    "PSL000 a generated name": [{**hpa(), "metadata": {"generateName": "web-", "namespace": "shop"}}],
    "PSL001 an ordinary init container": [hpa(), deployment(pod={"initContainers": [container("setup")]})],
    "PSL001 an average value needs no request": [
        hpa(metrics=[cpu(type="AverageValue", averageValue="1")]),
        deployment(containers=[container("main")]),
    ],
    "PSL001 limits are requests": [hpa(), deployment(containers=[container("main", limits={"cpu": "1"})])],
    "PSL001 requests for the whole pod": [
        hpa(),
        deployment(containers=[container("main")], pod={"resources": {"requests": {"cpu": "1"}}}),
    ],
    "PSL001 a LimitRange": [
        hpa(),
        deployment(containers=[container("main")]),
        obj("LimitRange", "v1", "l", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]}),
    ],
    "PSL001 only the named container": [
        hpa(metrics=[container_cpu("main")]),
        deployment(containers=[CONTAINER, container("logs")]),
    ],
    "PSL002 a ReplicationController": [hpa(scaleTargetRef=to(apiVersion="v1", kind="ReplicationController"))],
    "PSL002 a kind in lower case": [hpa(scaleTargetRef=to(kind="deployment")), deployment()],
    "PSL002 a custom resource with scale": [
        hpa(scaleTargetRef=to(apiVersion="example.com/v1", kind="Widget")),
        widget(has_scale=True),
    ],
    "PSL003 an autoscaler alone": [hpa()],
    "PSL003 workloads of other namespaces only": [hpa(), {**deployment("api"), "metadata": {"name": "api"}}],
    "PSL004 just enough": [hpa(maxReplicas=3), deployment(), quota(pods="3", **{"requests.cpu": "300m"})],
    "PSL004 scopes": [
        hpa(),
        deployment(),
        obj("ResourceQuota", "v1", "q", spec={"hard": {"pods": "1"}, "scopes": ["BestEffort"]}),
    ],
    "PSL005 replicas that nobody scales": [hpa(), deployment(), deployment("api", replicas=2)],
    "PSL006 a ratio": [hpa(metrics=[external("queue_utilization", type="Value", value="1")])],
    "PSL006 an average of a total": [hpa(metrics=[external()])],
    "PSL007 labels of their own": [
        hpa(),
        deployment(),
        hpa("api", scaleTargetRef=to(name="api")),
        deployment("api"),
    ],
    "PSL008 names in two namespaces": [hpa(), {**hpa(), "metadata": {"name": "web", "namespace": "test"}}],
    "PSL008 what KEDA made": [
        {
            **hpa(),
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "ownerReferences": [
                    {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web", "uid": "u"}
                ],
            },
        },
        deployment(),
        KEDA,
    ],
    "PSL009 one direction disabled": [behavior("scaleDown", selectPolicy="Disabled")],
    "PSL009 policies for bursts and for long": [
        behavior("scaleDown", policies=[SMALL, {"type": "Pods", "value": 3, "periodSeconds": 600}])
    ],
    "PSL010 one pod in all": [behavior("scaleDown", policies=[{"type": "Percent", "value": 10, "periodSeconds": 60}])],
    "PSL011 a tolerance as a ratio": [behavior("scaleDown", tolerance="0.05")],
    "PSL011 no tolerance": [
        hpa(metrics=at_target(95), behavior={"scaleUp": {"tolerance": "0"}}),
        deployment(containers=[EVEN]),
    ],
    "PSL012 recommendations only": [hpa(), deployment(), vertical(updatePolicy={"updateMode": "Off"})],
    "PSL012 another resource": [
        hpa(),
        deployment(),
        vertical(resourcePolicy={"containerPolicies": [{"containerName": "*", "controlledResources": ["memory"]}]}),
    ],
    "PSL013 unknown without a cluster": [hpa(metrics=[external("a_metric")])],
    "PSL014 one apart": [hpa(maxReplicas=3)],
    "PSL015 several steps": [behavior("scaleUp", policies=[SMALL])],
    "PSL016 limits with room": [hpa(metrics=at_target(120)), deployment()],
    "PSL017 a waking metric": [hpa(minReplicas=0, metrics=[external()])],
    "PSL018 autoscaling/v1": [
        obj("HorizontalPodAutoscaler", "autoscaling/v1", "web", spec={"scaleTargetRef": REFERENCE, "maxReplicas": 3})
    ],
    "PSL019 a container that is there": [hpa(metrics=[container_cpu("main")]), deployment()],
    "PSL020 memory and cpu": [hpa(metrics=[memory(), cpu()])],
    "PSL021 the window of the metric": [behavior("scaleDown", stabilizationWindowSeconds=30)],
    "PSL021 a metric without that window": [
        hpa(metrics=[external()], behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    ],
    "PSL022 rules that exist": [hpa(annotations={"podscaler.dev/lint-ignore": "PSL014,PSL000"})],
    "PSL024 a quarter of an hour": [behavior("scaleUp", stabilizationWindowSeconds=900)],
    "PSL026 all of them": [
        hpa(
            annotations={
                f"{FAILURE}keep-last-for": "5m",
                f"{FAILURE}ignore-failed": "true",
                f"{FAILURE}fallback-replicas": "3",
                f"{FAILURE}fallback-after": "10m",
            }
        )
    ],
    "PSL027 the bounds themselves": [
        hpa(annotations={f"{FAILURE}fallback-replicas": "2"}),
        hpa("other", scaleTargetRef=to(name="other"), annotations={f"{FAILURE}fallback-replicas": "10"}),
    ],
}


@pytest.mark.parametrize(("objects", "expected"), FAILING.values(), ids=FAILING)
def test_a_fault_is_found_and_nothing_else(objects: list[Object], expected: list[Short]) -> None:
    """A manifest with one fault gives the findings of one rule."""
    assert short(*objects) == expected


@pytest.mark.parametrize("objects", PASSING.values(), ids=PASSING)
def test_nothing_is_found_where_nothing_is_wrong(objects: list[Object]) -> None:
    """The nearest manifest without the fault gives no finding at all."""
    assert short(*objects) == []


def as_pod_autoscalers(objects: list[Object]) -> list[Object]:
    """The same, each autoscaler of autoscaling/v2 as a PodAutoscaler."""
    ours = {"apiVersion": "podscaler.dev/v1alpha1", "kind": "PodAutoscaler"}
    return [each | ours if each["apiVersion"] == "autoscaling/v2" else each for each in objects]


@pytest.mark.parametrize(("objects", "expected"), FAILING.values(), ids=FAILING)
def test_a_pod_autoscaler_has_the_same_faults(objects: list[Object], expected: list[Short]) -> None:
    """Every rule about a HorizontalPodAutoscaler is one about a PodAutoscaler."""
    changed = as_pod_autoscalers(objects)
    kind = changed[0]["kind"]
    assert short(*changed) == [
        (rule, subject.replace("HorizontalPodAutoscaler", kind), field) for rule, subject, field in expected
    ]


@pytest.mark.parametrize("objects", PASSING.values(), ids=PASSING)
def test_a_pod_autoscaler_without_a_fault(objects: list[Object]) -> None:
    """What is right for a HorizontalPodAutoscaler is right for a PodAutoscaler."""
    assert short(*as_pod_autoscalers(objects)) == []
