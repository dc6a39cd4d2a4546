"""Sets priority and overhead of new pods from their PriorityClass and RuntimeClass (two admission plugins).

`podscaler up` calls `make_system_classes` before the API server starts, and `register`; from then on `Objects` calls
the admission functions before it stores a pod or a PriorityClass. `api.kinds.pods.pod_classes` changes the pod.

Source: kube-apiserver's admission plugins Priority and RuntimeClass, and the classes that it creates at its start.
Differs: the runtime class `simulated` needs no object.
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

_PRIORITY_CLASSES = priorityclass.RESOURCE.key
_RUNTIME_CLASSES = runtimeclass.RESOURCE.key
_PODS = "pods"
_SIMULATED_CLASS = "simulated"
"""Pods of this class are simulated by the node, not run; the class exists without an object."""


async def make_system_classes(registry: Registry) -> None:
    """Create the missing priority classes of every cluster, such as system-node-critical. Raises StatusError."""
    for name, content in priorityclass.SYSTEM.items():
        if registry.find(_PRIORITY_CLASSES, "", name) is None:
            await registry.create(_PRIORITY_CLASSES, {"metadata": {"name": name}, **content})


def register(objects: Objects) -> None:
    """Register the admission of new pods, and of PriorityClasses (at most one is the default), with `objects`."""
    classes = _ClassReader(objects)
    objects.listen(classes.invalidate)
    objects.add_admission(_PODS, partial(_admit_pod, objects, classes))
    objects.add_admission(_PRIORITY_CLASSES, partial(_admit_priority_class, objects, classes))


class _ClassReader:
    """The stored classes; the default priority class is cached until a PriorityClass changes."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._default: Object | None = None
        self._is_default_cached = False

    def invalidate(self, events: Iterable[StoreEvent]) -> None:
        """Invalidate the cache if the events of a commit change a PriorityClass."""
        if any(event.subject.resource == _PRIORITY_CLASSES for event in events):
            self._is_default_cached = False

    def find(self, resource: str, name: str) -> Object | None:
        """A class by its name, None if it does not exist."""
        entry = self._objects.find(resource, "", name)
        return entry.decode() if entry is not None else None

    def default_priority(self) -> Object | None:
        """The class with globalDefault, of several the one with the lowest value; None if there is none."""
        if not self._is_default_cached:
            stored = (entry.decode() for entry in self._objects.list(_PRIORITY_CLASSES).entries)
            defaults = [priority_class for priority_class in stored if priority_class.get("globalDefault")]
            self._default = min(defaults, key=_priority_of, default=None)
            self._is_default_cached = True
        return self._default


def _priority_of(priority_class: Object) -> int:
    """The priority of the pods of a class."""
    return int(priority_class.get("value", 0))


def _admit_pod(objects: Objects, classes: _ClassReader, pod: Object, stored: Object | None) -> None:
    """The admission function of pods; updates pass. Raises StatusError 403, or 500 for an empty runtimeClassName."""
    if stored is not None:
        return
    spec = pod.setdefault("spec", {})
    reason = _set_priority(classes, spec)
    if not reason:
        pod_admission.tolerate(spec)
        reason = _set_runtime(classes, spec)
    if reason:
        raise api_errors.forbidden(objects.resource(_PODS), api_errors.name_at_admission(pod), reason)


def _set_priority(classes: _ClassReader, spec: Object) -> str:
    """Set the priority in a new pod's spec; returns why the pod is forbidden, empty if it is not."""
    name = spec.get("priorityClassName", "")
    priority_class = classes.find(_PRIORITY_CLASSES, name) if name else classes.default_priority()
    if name and priority_class is None:
        return f"no PriorityClass with name {name} was found"
    if priority_class is not None:
        spec["priorityClassName"] = priority_class["metadata"]["name"]
    return pod_classes.apply_priority_class(spec, priority_class)


def _set_runtime(classes: _ClassReader, spec: Object) -> str:
    """Set the overhead in a new pod's spec; returns why the pod is forbidden or empty text. Raises StatusError 500."""
    name = spec.get("runtimeClassName")
    if name == "":  # as kube-apiserver, whose look-up of the class fails
        raise api_errors.error_without_reason("resource name may not be empty")
    runtime_class = classes.find(_RUNTIME_CLASSES, name) if name else None
    if name and runtime_class is None and name != _SIMULATED_CLASS:
        return f'pod rejected: RuntimeClass "{name}" not found'
    return pod_classes.apply_runtime_class(spec, runtime_class)


def _admit_priority_class(objects: Objects, classes: _ClassReader, new: Object, stored: Object | None) -> None:
    """The admission function of PriorityClasses. Raises StatusError 403 for a second default."""
    default = classes.default_priority() if new.get("globalDefault") else None
    if default is None or (stored is not None and default["metadata"]["name"] == stored["metadata"]["name"]):
        return
    reason = f"PriorityClass {default['metadata']['name']} is already marked as default. Only one default can exist"
    raise api_errors.forbidden(objects.resource(_PRIORITY_CLASSES), api_errors.name_at_admission(new), reason)
