"""Sets the fields of a new pod that Kubernetes' admission sets: tolerations, priority, the status with the QoS class.

Called by `api.kinds.pods.pod`; before, `podscaler.controlplane.admission.pod_classes` applies the pod's PriorityClass
and RuntimeClass, and calls `tolerate` between them, in the order of Kubernetes' plugins. `api.kinds.policy.quota_usage`
reads the QoS class. Another field that admission sets: `admit`, and `readmit` for updates without it. Pods and their
specs are JSON objects, which the functions change. Their quantities were checked when they were decoded.

Source: kube-apiserver's admission plugin DefaultTolerationSeconds, and its pod strategy (status, qosClass).
Differs: there is no ServiceAccount plugin: pods get no service account and no token volume here.
"""

from collections.abc import Iterable

from podscaler.api.kinds.pods import pod_classes, pod_defaults
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object

_EVICTION_DELAY_S = 300
"""How long a pod stays on a node that is not ready or unreachable."""


def admit(pod: Object) -> None:
    """Sets tolerations, the first status and, unless a PriorityClass did so, the priority of a new pod, in place."""
    spec = pod["spec"]
    tolerate(spec)
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", pod_classes.DEFAULT_POLICY)
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}


def readmit(pod: Object, old: Object) -> None:
    """Sets, in place, fields that `admit` set on create and that an update lacks; `old` is the stored pod."""
    spec = pod["spec"]
    tolerate(spec)
    for field in ("priority", "preemptionPolicy"):
        if field in old["spec"]:
            spec.setdefault(field, old["spec"][field])


def tolerate(spec: Object) -> None:
    """Adds the tolerations for unreachable and not-ready nodes, unless the pod has its own, in place."""
    _add_toleration(spec, "node.kubernetes.io/not-ready")
    _add_toleration(spec, "node.kubernetes.io/unreachable")


def _add_toleration(spec: Object, taint: str) -> None:
    """Adds a toleration of a taint for five minutes, unless the pod has one of its own."""
    tolerations = spec.setdefault("tolerations", [])
    if any(_tolerates(toleration, taint) for toleration in tolerations):
        return
    tolerations.append(
        {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTION_DELAY_S}
    )


def _tolerates(toleration: Object, taint: str) -> bool:
    """Whether a toleration is for the taint with the effect NoExecute; its operator and value do not count."""
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")


def qos_class(spec: Object) -> str:
    """The QoS class of a pod spec, by requests and limits of cpu and memory of all containers and init containers.

    Guaranteed if all have limits of both, equal to the requests; BestEffort if none has any; else Burstable. 0 is none.
    """
    counted_containers = pod_defaults.containers({**spec, "ephemeralContainers": []})
    container_resources = [container.get("resources") or {} for container in counted_containers]
    requests = [_positive_amounts(resources.get("requests") or {}) for resources in container_resources]
    limits = [_positive_amounts(resources.get("limits") or {}) for resources in container_resources]
    if not any(requests) and not any(limits):
        return "BestEffort"
    if all(set(limit) == {"cpu", "memory"} for limit in limits) and _all_equal(requests, limits):
        return "Guaranteed"
    return "Burstable"


def _positive_amounts(amounts: Object) -> dict[str, Quantity]:
    """The amounts of cpu and memory above zero, by name; `amounts` is a ResourceList."""
    parsed = {name: Quantity.parse(str(amounts[name])) for name in ("cpu", "memory") if name in amounts}
    return {name: amount for name, amount in parsed.items() if amount > Quantity.parse("0")}


def _all_equal(requests: Iterable[dict[str, Quantity]], limits: Iterable[dict[str, Quantity]]) -> bool:
    """Whether every request equals its limit; a missing request counts as equal."""
    return all({**limit, **request} == limit for request, limit in zip(requests, limits, strict=True))
