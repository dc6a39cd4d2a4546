"""Admission of pods for PriorityClass and RuntimeClass: sets priority and overhead of new pods from their classes.

The wiring of `up` calls `make_system_classes` before the API server starts, and `admit_pods`; from then on `Objects`
calls the admission functions before it stores a pod or a PriorityClass.

Source: upstream's admission plugins Priority and RuntimeClass, and the classes that its API server creates. Differs:
the runtime class `simulated` needs no object.
"""

from collections.abc import Iterable
from functools import partial

from podscaler.api.kinds.pods import pod_admission, pod_classes
from podscaler.api.kinds.policy import priorityclass, runtimeclass
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.storage.change_log import StoreEvent

_PRIORITIES = priorityclass.RESOURCE.key
_RUNTIMES = runtimeclass.RESOURCE.key
_PODS = "pods"
_SIMULATED = "simulated"
"""Pods of this class are simulated by the node, not run; the class exists without an object."""


async def make_system_classes(registry: Registry) -> None:
    """Create the missing ones of the priority classes that every cluster has."""
    for name, content in priorityclass.SYSTEM.items():
        if registry.find(_PRIORITIES, "", name) is None:
            await registry.create(_PRIORITIES, {"metadata": {"name": name}, **content})


def admit_pods(objects: Objects) -> None:
    """Register the admission of new pods, and of PriorityClasses (at most one is the default), with `objects`."""
    classes = _Classes(objects)
    objects.listen(classes.invalidate)
    objects.admit(_PODS, partial(_admit_pod, objects, classes))
    objects.admit(_PRIORITIES, partial(_admit_priority_class, objects, classes))


class _Classes:
    """The stored classes; the default priority class is cached until a PriorityClass changes."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._default: Object | None = None
        self._is_cached = False

    def invalidate(self, events: Iterable[StoreEvent]) -> None:
        """Invalidate the cache where the events of a commit change a PriorityClass."""
        if any(event.subject.resource == _PRIORITIES for event in events):
            self._is_cached = False

    def find(self, resource: str, name: str) -> Object | None:
        """A class by its name, None where it does not exist."""
        entry = self._objects.find(resource, "", name)
        return entry.decode() if entry is not None else None

    def default_priority(self) -> Object | None:
        """The class of pods without one: the default class, of several the one with the lowest value; None without."""
        if not self._is_cached:
            stored = (entry.decode() for entry in self._objects.list(_PRIORITIES).entries)
            defaults = [each for each in stored if each.get("globalDefault")]
            self._default = min(defaults, key=lambda each: int(each.get("value", 0)), default=None)
            self._is_cached = True
        return self._default


def _admit_pod(objects: Objects, classes: _Classes, pod: Object, stored: Object | None) -> None:
    if stored is not None:
        return
    spec = pod.setdefault("spec", {})
    why = _set_priority(classes, spec)
    if not why:
        pod_admission.tolerate(spec)
        why = _set_runtime(classes, spec)
    if why:
        raise api_errors.forbidden(objects.resource(_PODS), api_errors.name_at_admission(pod), why)


def _set_priority(classes: _Classes, spec: Object) -> str:
    """Set the priority of a new pod's spec; returns why it is forbidden, empty where it is not."""
    name = spec.get("priorityClassName", "")
    found = classes.find(_PRIORITIES, name) if name else classes.default_priority()
    if name and found is None:
        return f"no PriorityClass with name {name} was found"
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    return pod_classes.apply_priority_class(spec, found)


def _set_runtime(classes: _Classes, spec: Object) -> str:
    """Set the overhead of a new pod's spec; returns as `_set_priority`."""
    name = spec.get("runtimeClassName")
    if name == "":
        raise api_errors.error_without_reason("resource name may not be empty")
    found = classes.find(_RUNTIMES, name) if name else None
    if name and found is None and name != _SIMULATED:
        return f'pod rejected: RuntimeClass "{name}" not found'
    return pod_classes.apply_runtime_class(spec, found)


def _admit_priority_class(objects: Objects, classes: _Classes, new: Object, stored: Object | None) -> None:
    found = classes.default_priority() if new.get("globalDefault") else None
    if found is None or (stored is not None and found["metadata"]["name"] == stored["metadata"]["name"]):
        return
    why = f"PriorityClass {found['metadata']['name']} is already marked as default. Only one default can exist"
    raise api_errors.forbidden(objects.resource(_PRIORITIES), api_errors.name_at_admission(new), why)
