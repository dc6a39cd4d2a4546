"""Maps changes of owners and their dependents to the keys of owners, as Deployments own ReplicaSets.

Each workload controller makes one, and its watches call it. A change of an owner maps to itself. A change of a
dependent maps to its controller or, for an orphan, to every owner whose selector matches it and that may adopt it.
"""

from collections.abc import Callable

from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import ownership, selection
from podscaler.controlplane.controllers.framework.selection import Key, OrphanIndex, SelectorIndex
from podscaler.controlplane.registry.registry import ObjectEvent, Registry


class OwnerIndex:
    """An index for one kind of owners and one kind of dependents: from a watch event to the keys of owners to sync.

    Args:
        registry: where the objects are.
        owner_resource: the `Resource.key` of the owners (`replicasets.apps`).
        owner_kind: their kind, as ownerReferences name it.
        dependent_resource: the `Resource.key` of the dependents (`pods`).
        selector_of: returns the selector of an owner; an owner for which it raises SelectorError selects nothing.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        owner_resource: str,
        owner_kind: str,
        dependent_resource: str,
        selector_of: Callable[[Object], Selector] = selection.object_selector,
    ) -> None:
        self._registry = registry
        self._owner_resource = owner_resource
        self._owner_kind = owner_kind
        self._dependent_resource = dependent_resource
        self._selectors = SelectorIndex(selector_of)
        self._orphans = OrphanIndex()

    def prime(self) -> list[Key]:
        """Rebuild the indexes from the registry; returns the keys of the owners that have a valid selector."""
        self._orphans.replace(self._registry.list(self._dependent_resource))
        return self._selectors.replace(self._registry.list(self._owner_resource))

    def keys(self) -> list[Key]:
        """The keys of all owners that have a valid selector."""
        return self._selectors.keys()

    def orphan_names(self, namespace: str, selector: Selector) -> list[str]:
        """The names of the orphaned dependents of a namespace that a selector matches."""
        return self._orphans.names_matching(namespace, selector)

    def index_owner(self, event: ObjectEvent) -> list[Key]:
        """Index a changed owner, from its event; returns a list of its key."""
        return self._selectors.update(event)

    def index_dependent(self, event: ObjectEvent) -> list[Key]:
        """Index a changed dependent, from its event; returns the keys of the owners to sync."""
        self._orphans.update(event)
        owner = ownership.controller_of(event.object)
        if owner is None:
            return [] if event.type == "DELETED" else self._selectors.keys_selecting(event.object)
        if owner["kind"] != self._owner_kind:
            return []
        namespace, _ = selection.key_of(event.object)
        return [(namespace, owner["name"])]
