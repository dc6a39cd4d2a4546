"""Applies the PriorityClass and the RuntimeClass of a new pod to its spec.

Called by `podscaler.controlplane.admission.pod_classes`, which looks the classes up. Functions change the spec in
place, and return the reason to reject the pod; empty to admit it.

Source: Kubernetes' admission plugins Priority and RuntimeClass, and their merging of tolerations.
"""

from collections.abc import Sequence

from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object

DEFAULT_POLICY = "PreemptLowerPriority"
_NO_CLASS: Object = {"value": 0, "preemptionPolicy": DEFAULT_POLICY}


def apply_priority_class(spec: Object, priority_class: Object | None) -> str:
    """Sets the priority of the class (0 without a class); a pod with another priority is rejected."""
    class_or_default = priority_class or _NO_CLASS
    error = _compute(spec, "priority", class_or_default.get("value", 0), "integer value of priority")
    policy = class_or_default.get("preemptionPolicy")
    return error or (_compute(spec, "preemptionPolicy", policy, "string value of PreemptionPolicy") if policy else "")


def _compute(spec: Object, name: str, computed: object, word: str) -> str:
    if spec.get(name) not in (None, computed):
        reason = f"must not be provided in pod spec; priority admission controller computed {computed}"
        return f"the {word} ({spec[name]}) {reason} from the given PriorityClass name"
    spec[name] = computed
    return ""


def apply_runtime_class(spec: Object, runtime_class: Object | None) -> str:
    """Sets the overhead, the node selector and the tolerations of the runtime class."""
    runtime = runtime_class or {}
    return _set_overhead(spec, runtime.get("overhead")) or _set_scheduling(spec, runtime.get("scheduling") or {})


def _set_overhead(spec: Object, overhead: Object | None) -> str:
    """Set the overhead of the RuntimeClass; returns why the pod is rejected, empty if it is not."""
    if overhead is None:
        no_overhead_in_class = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        return no_overhead_in_class if spec.get("overhead") else ""
    fixed = overhead.get("podFixed") or {}
    if spec.get("overhead") and _amounts(spec["overhead"]) != _amounts(fixed):
        return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    if fixed:
        spec["overhead"] = dict(fixed)
    return ""


def _amounts(resources: Object) -> dict[str, Quantity]:
    return {name: Quantity.parse(str(amount)) for name, amount in resources.items()}


def _set_scheduling(spec: Object, scheduling: Object) -> str:
    """Add the node selector and tolerations of the RuntimeClass; returns why the pod is rejected, empty if not."""
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in sorted((scheduling.get("nodeSelector") or {}).items()):
        pod_value = selector.setdefault(key, value)
        if pod_value != value:
            requirement = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            return f"conflict: {requirement}; pod.spec.nodeSelector[{key}] = {pod_value}"
    if selector:
        spec["nodeSelector"] = selector
    if scheduling.get("tolerations"):
        spec["tolerations"] = merged(spec.get("tolerations") or [], scheduling["tolerations"])
    return ""


def merged(first: Sequence[Object], second: Sequence[Object]) -> list[Object]:
    """Both lists of tolerations without those that others cover; of equal ones the first is kept."""
    tolerations = [*first, *second]
    result: list[Object] = []
    for index, toleration in enumerate(tolerations):
        later = (other for other in tolerations[index + 1 :] if other != toleration)
        if not any(_covers(other, toleration) for other in result) and not any(
            _covers(other, toleration) for other in later
        ):
            result.append(toleration)
    return result


def _covers(wide: Object, narrow: Object) -> bool:
    """Whether all that `narrow` tolerates is tolerated by `wide`."""
    if wide == narrow:
        return True
    is_for_all_keys = not wide.get("key") and wide.get("operator") == "Exists"
    if wide.get("key", "") != narrow.get("key", "") and not is_for_all_keys:
        return False
    if wide.get("effect") and wide["effect"] != narrow.get("effect", ""):
        return False
    if wide.get("effect") == "NoExecute" and not _lasts_as_long(wide, narrow):
        return False
    if wide.get("operator") == "Exists":
        return True
    return narrow.get("operator") == "Equal" and wide.get("value", "") == narrow.get("value", "")


def _lasts_as_long(wide: Object, narrow: Object) -> bool:
    limit_s, wanted_s = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    return limit_s is None or (wanted_s is not None and wanted_s <= limit_s)
