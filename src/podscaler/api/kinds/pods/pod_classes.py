"""Applies the PriorityClass and the RuntimeClass of a new pod to its spec.

Called by `podscaler.controlplane.admission.pod_classes`, which reads the classes. The functions that apply or set
something change the pod spec in place and return why the pod is rejected, for the message of the API error; empty if it
is admitted. A rejected pod may be changed in part. A new field of a class is applied in `apply_priority_class` or
`apply_runtime_class`. Quantities were checked when they were decoded.

Source: Kubernetes' admission plugins Priority and RuntimeClass, and their merging of tolerations.
"""

from collections.abc import Sequence

from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object

DEFAULT_POLICY = "PreemptLowerPriority"
_NO_CLASS: Object = {"value": 0, "preemptionPolicy": DEFAULT_POLICY}


def apply_priority_class(spec: Object, priority_class: Object | None) -> str:
    """Sets priority and preemption policy of the class (None: priority 0); a pod with other values is rejected."""
    class_or_default = priority_class or _NO_CLASS
    priority = class_or_default.get("value", 0)
    rejection_message = _set_class_value(spec, "priority", priority, "integer value of priority")
    policy = class_or_default.get("preemptionPolicy")
    if rejection_message or not policy:
        return rejection_message
    return _set_class_value(spec, "preemptionPolicy", policy, "string value of PreemptionPolicy")


def _set_class_value(spec: Object, field: str, class_value: object, description: str) -> str:
    """Sets a field of the pod spec to the value of the class; rejects a pod that has another value.

    Args:
        description: the words for the field in the message.
    """
    if spec.get(field) not in (None, class_value):
        reason = f"must not be provided in pod spec; priority admission controller computed {class_value}"
        return f"the {description} ({spec[field]}) {reason} from the given PriorityClass name"
    spec[field] = class_value
    return ""


def apply_runtime_class(spec: Object, runtime_class: Object | None) -> str:
    """Adds overhead, node selector and tolerations of the class; a pod with other values is rejected.

    Without a class (None) a pod must not have an overhead.
    """
    runtime = runtime_class or {}
    return _set_overhead(spec, runtime.get("overhead")) or _set_scheduling(spec, runtime.get("scheduling") or {})


def _set_overhead(spec: Object, overhead: Object | None) -> str:
    """Sets the overhead of the RuntimeClass, None if it has none; rejects a pod that has another overhead."""
    if overhead is None:
        message = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        return message if spec.get("overhead") else ""
    pod_fixed = overhead.get("podFixed") or {}
    if spec.get("overhead") and _quantities(spec["overhead"]) != _quantities(pod_fixed):
        return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    if pod_fixed:
        spec["overhead"] = dict(pod_fixed)
    return ""


def _quantities(resources: Object) -> dict[str, Quantity]:
    """The quantities of a ResourceList, by resource name, to compare by value."""
    return {name: Quantity.parse(str(amount)) for name, amount in resources.items()}


def _set_scheduling(spec: Object, scheduling: Object) -> str:
    """Adds the node selector and the tolerations of the RuntimeClass; rejects a pod with a conflicting selector."""
    node_selector = dict(spec.get("nodeSelector") or {})
    for key, value in sorted((scheduling.get("nodeSelector") or {}).items()):
        pod_value = node_selector.setdefault(key, value)
        if pod_value != value:
            requirement = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            return f"conflict: {requirement}; pod.spec.nodeSelector[{key}] = {pod_value}"
    if node_selector:
        spec["nodeSelector"] = node_selector
    if scheduling.get("tolerations"):
        spec["tolerations"] = _merge_tolerations(spec.get("tolerations") or [], scheduling["tolerations"])
    return ""


def _merge_tolerations(pod_tolerations: Sequence[Object], class_tolerations: Sequence[Object]) -> list[Object]:
    """All tolerations of both lists, without those that another one covers; of equal ones the first is kept."""
    tolerations = [*pod_tolerations, *class_tolerations]
    merged: list[Object] = []
    for index, toleration in enumerate(tolerations):
        later_tolerations = [other for other in tolerations[index + 1 :] if other != toleration]
        if not any(_covers(other, toleration) for other in [*merged, *later_tolerations]):
            merged.append(toleration)
    return merged


def _covers(wide: Object, narrow: Object) -> bool:
    """Whether all that `narrow` tolerates is tolerated by `wide`, whose empty effect is for all effects.

    An empty key with the operator Exists is for all keys; the operator Exists is for all values.
    """
    if wide == narrow:
        return True
    is_for_all_keys = not wide.get("key") and wide.get("operator") == "Exists"
    if wide.get("key", "") != narrow.get("key", "") and not is_for_all_keys:
        return False
    if wide.get("effect") and wide["effect"] != narrow.get("effect", ""):
        return False
    if wide.get("effect") == "NoExecute" and not _tolerates_as_long(wide, narrow):
        return False
    if wide.get("operator") == "Exists":
        return True
    return narrow.get("operator") == "Equal" and wide.get("value", "") == narrow.get("value", "")


def _tolerates_as_long(wide: Object, narrow: Object) -> bool:
    """Whether `wide` tolerates a NoExecute taint at least as long as `narrow`; no tolerationSeconds: forever."""
    wide_s, narrow_s = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    return wide_s is None or (narrow_s is not None and narrow_s <= wide_s)
