"""What the classes that a new pod names make of it: its PriorityClass and its RuntimeClass.

Called by `podscaler.controlplane.admission.pod_classes`, which looks the classes up. Specs are changed in place; what
is returned is why there cannot be such a pod, empty if there can.

Source: upstream's admission plugins Priority and RuntimeClass.
"""

from podscaler.api.kinds.pods import toleration_merging
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object

DEFAULT_POLICY = "PreemptLowerPriority"
_NO_CLASS: Object = {"value": 0, "preemptionPolicy": DEFAULT_POLICY}


def prioritize(spec: Object, priority_class: Object | None) -> str:
    """Give a pod the priority of its class, which it may repeat and not contradict; 0 without a class."""
    found = priority_class or _NO_CLASS
    fault = _set(spec, "priority", found.get("value", 0), "integer value of priority")
    policy = found.get("preemptionPolicy")
    return fault or (_set(spec, "preemptionPolicy", policy, "string value of PreemptionPolicy") if policy else "")


def _set(spec: Object, name: str, computed: object, word: str) -> str:
    if spec.get(name) not in (None, computed):
        why = f"must not be provided in pod spec; priority admission controller computed {computed}"
        return f"the {word} ({spec[name]}) {why} from the given PriorityClass name"
    spec[name] = computed
    return ""


def run_with(spec: Object, runtime_class: Object | None) -> str:
    """Give a pod what running it costs besides its containers, and where it can run, as its runtime class says."""
    found = runtime_class or {}
    return _set_overhead(spec, found.get("overhead")) or _set_scheduling(spec, found.get("scheduling") or {})


def _set_overhead(spec: Object, overhead: Object | None) -> str:
    if overhead is None:
        unfounded = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        return unfounded if spec.get("overhead") else ""
    fixed = overhead.get("podFixed") or {}
    if spec.get("overhead") and _amounts(spec["overhead"]) != _amounts(fixed):
        return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    if fixed:
        spec["overhead"] = dict(fixed)
    return ""


def _amounts(resources: Object) -> dict[str, Quantity]:
    return {name: Quantity.parse(str(amount)) for name, amount in resources.items()}


def _set_scheduling(spec: Object, scheduling: Object) -> str:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in sorted((scheduling.get("nodeSelector") or {}).items()):
        own = selector.setdefault(key, value)
        if own != value:
            wanted = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            return f"conflict: {wanted}; pod.spec.nodeSelector[{key}] = {own}"
    if selector:
        spec["nodeSelector"] = selector
    if scheduling.get("tolerations"):
        spec["tolerations"] = toleration_merging.merged(spec.get("tolerations") or [], scheduling["tolerations"])
    return ""
