"""Indexes of selectors and orphans that controllers keep up to date from their watches; keys and labels of objects.

`owner_index`, `apps.disruption` and the endpoint controllers look up in them which keys to sync after a change; `sync`
reads the objects themselves from the registry. A lookup takes time in proportion to the objects of one namespace.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector, SelectorError
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import ownership, pods
from podscaler.controlplane.registry.registry import ObjectEvent

Key = tuple[str, str]
"""Namespace and name."""
T = TypeVar("T")


def key_of(obj: Object) -> Key:
    """Namespace (empty for cluster-scoped kinds) and name of an object."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def own_keys(event: ObjectEvent) -> list[Key]:
    """A list of the key of the changed object: the `Watched.get_keys` for the kind that a controller syncs."""
    return [key_of(event.object)]


def labels_of(obj: Object) -> Mapping[str, str]:
    """The labels of an object; empty without any."""
    labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return labels


def object_selector(obj: Object) -> Selector:
    """The label selector in `spec.selector` of a Deployment, ReplicaSet and the like. Raises SelectorError."""
    return selectors.from_label_selector(obj["spec"].get("selector"))


class SelectorIndex:
    """The selectors of the objects of one kind (ReplicaSets, Services, ...), for finding those that select an object.

    Args:
        selector_of: returns the selector of an object, None if it has none; a SelectorError counts as None.
    """

    def __init__(self, selector_of: Callable[[Object], Selector | None] = object_selector) -> None:
        self._selector_of = selector_of
        self._selectors: defaultdict[str, dict[str, Selector]] = defaultdict(dict)
        """By namespace and name of the selecting object."""

    def replace(self, objects: Iterable[Object]) -> list[Key]:
        """Index these objects and no others; returns the keys of those with a selector."""
        self._selectors.clear()
        for obj in objects:
            self.update(ObjectEvent("ADDED", obj))
        return self.keys()

    def update(self, event: ObjectEvent) -> list[Key]:
        """Index the selector of a changed object, or remove it if there is none; returns the object's key in a list."""
        namespace, name = key_of(event.object)
        try:
            selector = None if event.type == "DELETED" else self._selector_of(event.object)
        except SelectorError:
            selector = None
        if selector is not None:
            self._selectors[namespace][name] = selector
        else:
            _discard_entry(self._selectors, namespace, name)
        return [(namespace, name)]

    def keys(self) -> list[Key]:
        """The keys of all objects with a selector."""
        return [(namespace, name) for namespace, by_name in self._selectors.items() for name in by_name]

    def keys_selecting(self, obj: Object) -> list[Key]:
        """The keys of the indexed objects in the namespace of `obj` whose selector matches its labels."""
        namespace, _ = key_of(obj)
        labels = labels_of(obj)
        selector_by_name = self._selectors.get(namespace, {})
        return [(namespace, name) for name, selector in selector_by_name.items() if selector.matches(labels)]


class OrphanIndex:
    """The objects of one kind that no controller owns and that are not being deleted."""

    def __init__(self) -> None:
        self._labels: defaultdict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)
        """The labels of the orphans, by namespace and name."""

    def replace(self, objects: Iterable[Object]) -> None:
        """Index these objects and no others."""
        self._labels.clear()
        for obj in objects:
            self.update(ObjectEvent("ADDED", obj))

    def update(self, event: ObjectEvent) -> None:
        """Index a changed object of the kind, or remove it if it is gone or no orphan any more."""
        obj = event.object
        namespace, name = key_of(obj)
        is_gone = event.type == "DELETED" or pods.is_terminating(obj)
        if is_gone or ownership.controller_of(obj) is not None:
            _discard_entry(self._labels, namespace, name)
        else:
            self._labels[namespace][name] = labels_of(obj)

    def names_matching(self, namespace: str, selector: Selector) -> list[str]:
        """The names of the orphans of a namespace that the selector matches."""
        return [name for name, labels in self._labels.get(namespace, {}).items() if selector.matches(labels)]


def _discard_entry(index: dict[str, dict[str, T]], namespace: str, name: str) -> None:
    """Remove an entry of a namespace, and the namespace with its last one."""
    entries = index.get(namespace, {})
    entries.pop(name, None)
    if not entries:
        index.pop(namespace, None)
