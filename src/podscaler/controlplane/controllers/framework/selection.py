"""Indexes by namespace that controllers keep from their watches: whose selectors match an object, which are orphans.

Each costs only what one namespace holds. They say what to look at, never what is: that is read from the registry.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import ownership, pods
from podscaler.controlplane.registry.registry import ObjectEvent

Key = tuple[str, str]
"""Namespace and name."""


def key_of(obj: Object) -> Key:
    """Namespace (empty for cluster-scoped kinds) and name of an object."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def labels_of(obj: Object) -> Mapping[str, str]:
    """Its labels, possibly none."""
    labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return labels


class Selecting:
    """Objects of one kind with a selector (ReplicaSets, Services, ...)."""

    def __init__(self) -> None:
        self._selectors: defaultdict[str, dict[str, Selector]] = defaultdict(dict)

    def put(self, obj: Object, selector: Selector) -> None:
        """Remember the selector of `obj`."""
        namespace, name = key_of(obj)
        self._selectors[namespace][name] = selector

    def drop(self, obj: Object) -> None:
        """Forget it."""
        namespace, name = key_of(obj)
        self._selectors[namespace].pop(name, None)
        if not self._selectors[namespace]:
            del self._selectors[namespace]

    def keys(self) -> Iterator[Key]:
        """All that are remembered."""
        for namespace, names in self._selectors.items():
            for name in names:
                yield namespace, name

    def matching(self, obj: Object) -> list[Key]:
        """Those in the namespace of `obj` whose selector matches its labels."""
        namespace, _ = key_of(obj)
        labels = labels_of(obj)
        found = self._selectors.get(namespace, {})
        return [(namespace, name) for name, selector in found.items() if selector.matches(labels)]

    def clear(self) -> None:
        """Forget all."""
        self._selectors.clear()


class Orphans:
    """Objects of one kind that no controller owns and that are not being deleted."""

    def __init__(self) -> None:
        self._labels: defaultdict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)

    def note(self, change: ObjectEvent) -> None:
        """Keep up with a change."""
        obj = change.object
        namespace, name = key_of(obj)
        gone = change.type == "DELETED" or pods.is_terminating(obj)
        if gone or ownership.controller_of(obj) is not None:
            self._labels[namespace].pop(name, None)
            if not self._labels[namespace]:
                del self._labels[namespace]
        else:
            self._labels[namespace][name] = labels_of(obj)

    def matching(self, namespace: str, selector: Selector) -> list[str]:
        """Names of those in the namespace that the selector matches."""
        return [name for name, labels in self._labels.get(namespace, {}).items() if selector.matches(labels)]

    def clear(self) -> None:
        """Forget all."""
        self._labels.clear()


def object_selector(obj: Object) -> Selector:
    """The selector in `spec.selector` of a Deployment, ReplicaSet and the like. Raises SelectorError."""
    return selectors.from_label_selector(obj["spec"].get("selector"))
