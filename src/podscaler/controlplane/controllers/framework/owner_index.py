"""Whom a change concerns, for a controller whose objects keep others by their labels, as Deployments do ReplicaSets.

The controllers of workloads ask it from their watches. A change of a keeper concerns itself; one of what is kept
concerns its controller or, where it has none, every keeper whose selector matches it and that may adopt it.
"""

from collections.abc import Callable, Iterable

from podscaler.api.machinery.selectors import Selector, SelectorError
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import ownership, selection
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry


class Keeping:
    """See the module.

    Args:
        keepers: the resource of those that keep (`replicasets.apps`).
        kind: their kind, as ownerReferences name it.
        kept: the resource of what they keep (`pods`).
        selector: that of a keeper. Raises SelectorError.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        keepers: str,
        kind: str,
        kept: str,
        selector: Callable[[Object], Selector] = selection.object_selector,
    ) -> None:
        self._registry = registry
        self._keepers = keepers
        self._kind = kind
        self._kept = kept
        self._selector = selector
        self._selecting = selection.Selecting()
        self._orphans = selection.Orphans()

    def prime(self) -> list[Key]:
        """Rebuild the indexes from what there is; the keys of all keepers."""
        self._selecting.clear()
        self._orphans.clear()
        for kept in self._registry.list(self._kept):
            self._orphans.note(ObjectEvent("ADDED", kept))
        for keeper in self._registry.list(self._keepers):
            self._note(keeper)
        return self.keys()

    def keys(self) -> list[Key]:
        """Those of all keepers."""
        return list(self._selecting.keys())

    def orphans(self, namespace: str, selector: Selector) -> list[str]:
        """Names of what nobody keeps and the selector matches."""
        return list(self._orphans.matching(namespace, selector))

    def of_keeper(self, change: ObjectEvent) -> Iterable[Key]:
        """Whom a change of a keeper concerns."""
        if change.type == "DELETED":
            self._selecting.drop(change.object)
        else:
            self._note(change.object)
        return [selection.key_of(change.object)]

    def of_kept(self, change: ObjectEvent) -> Iterable[Key]:
        """Whom a change of something kept concerns."""
        self._orphans.note(change)
        owner = ownership.controller_of(change.object)
        if owner is None:
            return [] if change.type == "DELETED" else self._selecting.matching(change.object)
        return [(selection.key_of(change.object)[0], owner["name"])] if owner["kind"] == self._kind else []

    def _note(self, keeper: Object) -> None:
        try:
            self._selecting.put(keeper, self._selector(keeper))
        except SelectorError:
            self._selecting.drop(keeper)
