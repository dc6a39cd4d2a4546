"""What upstream's admission plugins add to a new pod, as far as it shows in the stored object.

Called by the Pod record when a pod is created. Differs: without the ServiceAccount plugin, as in the golden captures.

Source: the plugins DefaultTolerationSeconds and Priority; the pod strategy (status, qosClass).
"""

from collections.abc import Iterable

from podscaler.api.kinds import pod_defaults
from podscaler.api.quantity import Quantity
from podscaler.api.resources import Object
from podscaler.errors import StatusError

_EVICTION_DELAY_S = 300
_POLICY = "PreemptLowerPriority"
_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def admit(pod: Object) -> None:
    """Give a new pod its tolerations, its priority and its first status, in place. Raises StatusError 403."""
    spec = pod["spec"]
    _tolerate(spec, "node.kubernetes.io/not-ready")
    _tolerate(spec, "node.kubernetes.io/unreachable")
    _check_overhead(pod)
    priority = _PRIORITIES.get(spec.get("priorityClassName", ""), 0)
    _check_given(spec, (pod.get("metadata") or {}).get("name", ""), {"priority": priority, "preemptionPolicy": _POLICY})
    spec["priority"] = priority
    spec.setdefault("preemptionPolicy", _POLICY)
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}


def _check_overhead(pod: Object) -> None:
    """What running a pod costs besides its containers is said by its runtime class, and by nobody else."""
    if not pod["spec"].get("overhead") or pod["spec"].get("runtimeClassName"):
        return
    name = (pod.get("metadata") or {}).get("name", "")
    text = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    details = {"name": name, "kind": "pods"}
    raise StatusError(f'pods "{name}" is forbidden: {text}', code=403, reason="Forbidden", details=details)


def _check_given(spec: Object, name: str, computed: Object) -> None:
    """Refuse what only the name of a priority class may say."""
    words = {"priority": "integer value of priority", "preemptionPolicy": "string value of PreemptionPolicy"}
    for key, word in words.items():
        if key in spec and spec[key] != computed[key]:
            why = f"must not be provided in pod spec; priority admission controller computed {computed[key]}"
            text = f'pods "{name}" is forbidden: the {word} ({spec[key]}) {why} from the given PriorityClass name'
            raise StatusError(text, code=403, reason="Forbidden", details={"name": name, "kind": "pods"})


def admit_again(pod: Object, old: Object) -> None:
    """Give a changed pod what admission once gave it, where a client left it out, in place."""
    spec = pod["spec"]
    _tolerate(spec, "node.kubernetes.io/not-ready")
    _tolerate(spec, "node.kubernetes.io/unreachable")
    for name in ("priority", "preemptionPolicy"):
        if name in old["spec"]:
            spec.setdefault(name, old["spec"][name])


def _tolerate(spec: Object, taint: str) -> None:
    listed = spec.setdefault("tolerations", [])
    if any(_covers(each, taint) for each in listed):
        return
    listed.append({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTION_DELAY_S})


def _covers(toleration: Object, taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")


def qos_class(spec: Object) -> str:
    """Guaranteed: cpu and memory limited everywhere, requests equal; BestEffort: nothing asked; else Burstable.

    Only cpu and memory count, and only containers and init containers.
    """
    parts = [each.get("resources") or {} for each in pod_defaults.containers({**spec, "ephemeralContainers": []})]
    requests = [_positive(part.get("requests") or {}) for part in parts]
    limits = [_positive(part.get("limits") or {}) for part in parts]
    if not any(requests) and not any(limits):
        return "BestEffort"
    if all(set(limit) == {"cpu", "memory"} for limit in limits) and _all_equal(requests, limits):
        return "Guaranteed"
    return "Burstable"


def _positive(amounts: Object) -> dict[str, Quantity]:
    parsed = {name: Quantity.parse(str(amounts[name])) for name in ("cpu", "memory") if name in amounts}
    return {name: amount for name, amount in parsed.items() if amount > Quantity.parse("0")}


def _all_equal(requests: Iterable[dict[str, Quantity]], limits: Iterable[dict[str, Quantity]]) -> bool:
    """Whether every request equals its limit; a request that is not given is the limit."""
    return all({**limit, **request} == limit for request, limit in zip(requests, limits, strict=True))
