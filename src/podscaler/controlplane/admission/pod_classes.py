"""Classes of pods: every new pod has the priority and the overhead of the classes that it names, which must be there.

The wiring of `up` calls `make_system_classes` before anybody is served, and `admit_pods`; from then on `Objects` asks
before it stores a pod or a PriorityClass, whoever writes it.

Source: upstream's admission plugins Priority and RuntimeClass, and the classes that its API server makes. Differs: the
runtime class `simulated` needs no object.
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
_PLAYED = "simulated"
"""Pods of this class are played by the node, not run: it is known without being stored."""


async def make_system_classes(registry: Registry) -> None:
    """Create the priority classes that every cluster has, where they are missing."""
    for name, content in priorityclass.SYSTEM.items():
        if registry.find(_PRIORITIES, "", name) is None:
            await registry.create(_PRIORITIES, {"metadata": {"name": name}, **content})


def admit_pods(objects: Objects) -> None:
    """Judge and complete every pod that is created from now on, and have at most one default priority class."""
    classes = _Classes(objects)
    objects.listen(classes.notice)
    objects.admit(_PODS, partial(_admit_pod, objects, classes))
    objects.admit(_PRIORITIES, partial(_admit_priority_class, objects, classes))


class _Classes:
    """The stored classes; the default priority class is looked for once between two changes of such classes."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._default: Object | None = None
        self._is_known = False

    def notice(self, events: Iterable[StoreEvent]) -> None:
        """To be called with the events of every commit."""
        if any(event.subject.resource == _PRIORITIES for event in events):
            self._is_known = False

    def find(self, resource: str, name: str) -> Object | None:
        """A class by its name."""
        entry = self._objects.find(resource, "", name)
        return entry.decode() if entry is not None else None

    def default_priority(self) -> Object | None:
        """The class of pods that name none: of several the one with the lowest value."""
        if not self._is_known:
            stored = (entry.decode() for entry in self._objects.list(_PRIORITIES).entries)
            defaults = [each for each in stored if each.get("globalDefault")]
            self._default = min(defaults, key=lambda each: int(each.get("value", 0)), default=None)
            self._is_known = True
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
    name = spec.get("priorityClassName", "")
    found = classes.find(_PRIORITIES, name) if name else classes.default_priority()
    if name and found is None:
        return f"no PriorityClass with name {name} was found"
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    return pod_classes.apply_priority_class(spec, found)


def _set_runtime(classes: _Classes, spec: Object) -> str:
    name = spec.get("runtimeClassName")
    if name == "":
        raise api_errors.unnamed_failure("resource name may not be empty")
    found = classes.find(_RUNTIMES, name) if name else None
    if name and found is None and name != _PLAYED:
        return f'pod rejected: RuntimeClass "{name}" not found'
    return pod_classes.apply_runtime_class(spec, found)


def _admit_priority_class(objects: Objects, classes: _Classes, new: Object, stored: Object | None) -> None:
    found = classes.default_priority() if new.get("globalDefault") else None
    if found is None or (stored is not None and found["metadata"]["name"] == stored["metadata"]["name"]):
        return
    why = f"PriorityClass {found['metadata']['name']} is already marked as default. Only one default can exist"
    raise api_errors.forbidden(objects.resource(_PRIORITIES), api_errors.name_at_admission(new), why)
