"""The garbage collector: deletes or orphans the dependents of deleted objects.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop` over all stored kinds. Owners are solid,
waiting or gone (`owners`). Actions:

| the object                                     | action                                                             |
|------------------------------------------------|--------------------------------------------------------------------|
| is being deleted, finalizer `orphan`           | references to it are removed from dependents, then the finalizer   |
| is being deleted, `foregroundDeletion`         | blocking dependents are deleted, then the finalizer is removed     |
| is being deleted otherwise                     | none                                                               |
| has a solid owner                              | references to the other owners are removed                         |
| has a waiting owner and dependents of its own  | it is deleted in the foreground                                    |
| has only owners that are gone or waiting       | it is deleted, with the policy of its own finalizers               |

Source: documentation of garbage collection.
Differs: the registry is never stale, so upstream's graph of virtual nodes is not needed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Literal

from podscaler.api.resource.resources import Object, Resource
from podscaler.controlplane.controllers.framework import ownership, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.gc import owners
from podscaler.controlplane.controllers.gc.owners import FOREGROUND, ORPHAN, OwnerKinds
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

Key = tuple[str, str, str]
"""Resource key, namespace, name."""

IGNORED = frozenset({"events"})
"""Kinds without owners and dependents, of which there are many objects."""
REQUEUE_S = 5.0

_OwnerFacts = tuple[tuple[str, bool], ...]


class GarbageCollector(Reconciler[Key]):
    """Reconciles objects of all stored kinds that have owners or are owners.

    Args:
        registry: the objects.
        resources: all stored kinds.
    """

    name = "generic-garbage-collector"

    def __init__(self, registry: Registry, resources: Iterable[Resource]) -> None:
        self._registry = registry
        stored = [
            resource
            for resource in resources
            if resource.stored and not resource.stored_as and resource.key not in IGNORED
        ]
        self._resources = [one.key for one in stored]
        self._kinds = OwnerKinds(stored)
        self._owners: dict[str, _OwnerFacts] = {}
        self._owned: Counter[str] = Counter()
        self._waiting: dict[str, Key] = {}
        self._is_primed = False

    def watches(self) -> Sequence[Watched[Key]]:
        """Every stored kind."""
        return [Watched(resource, partial(self._keys_of, resource)) for resource in self._resources]

    def prime(self) -> Iterable[Key]:
        """All objects with owners or finalizers, after a watch broke; at the start the watches list them anyway."""
        if not self._is_primed:
            self._is_primed = True
            return []
        return [
            (resource, *selection.key_of(obj))
            for resource in self._resources
            for obj in self._registry.list(resource)
            if ownership.references(obj) or owners.finalizers(obj)
        ]

    async def sync(self, key: Key) -> float | None:
        """Take the action of the module's table for one object."""
        obj = self._registry.find(*key)
        if obj is None:
            return None
        if "deletionTimestamp" not in obj["metadata"]:
            await self._collect(key[0], obj)
            return None
        if ORPHAN in owners.finalizers(obj):
            await self._orphan_dependents(key, obj)
        elif FOREGROUND in owners.finalizers(obj):
            return await self._delete_dependents(key, obj)
        return None

    def _keys_of(self, resource: str, event: ObjectEvent) -> Iterator[Key]:
        """Note the owners of a changed object; yields the objects that may have to be collected now."""
        obj, key = event.object, (resource, *selection.key_of(event.object))
        uid = obj["metadata"]["uid"]
        before, now = self._owners.pop(uid, ()), _owner_facts(obj)
        is_owner = uid in self._owned
        self._recount(before, () if event.type == "DELETED" else now)
        if event.type == "DELETED":
            self._waiting.pop(uid, None)
            now = ()
            for other, dependent in self._dependents(uid) if is_owner else ():
                yield other, *selection.key_of(dependent)
        else:
            if now:
                self._owners[uid] = now
            if now != before or (owners.finalizers(obj) and "deletionTimestamp" in obj["metadata"]):
                yield key
        for owner, fact in before:
            if (owner, fact) not in now and owner in self._waiting:
                yield self._waiting[owner]

    def _recount(self, before: _OwnerFacts, now: _OwnerFacts) -> None:
        """Update the number of indexed dependents of each owner."""
        for owner, _ in now:
            self._owned[owner] += 1
        for owner, _ in before:
            self._owned[owner] -= 1
            if not self._owned[owner]:
                del self._owned[owner]

    def _dependents(self, uid: str) -> Iterator[tuple[str, Object]]:
        for resource in self._resources:
            for obj in self._registry.owned_by(resource, uid):
                yield resource, obj

    async def _collect(self, resource: str, obj: Object) -> None:
        """Delete an object without a solid owner, or remove its references to owners that are gone or waiting."""
        classified = owners.classify(obj, self._registry, self._kinds)
        leaving = {*classified.gone, *classified.waiting}
        if not leaving:
            return
        if classified.solid:
            await self._remove_references(resource, obj, leaving)
            return
        has_dependents = next(self._dependents(obj["metadata"]["uid"]), None) is not None
        if classified.waiting and has_dependents:
            await self._unblock_cycles(obj)
            await self._delete(resource, obj, "Foreground")
        else:
            await self._delete(resource, obj, _own_policy(obj))

    async def _unblock_cycles(self, obj: Object) -> None:
        """Clear blockOwnerDeletion of dependents that wait themselves: they and `obj` would wait for each other."""
        uid = obj["metadata"]["uid"]

        def unblock(newest: Object) -> None:
            for reference in ownership.references(newest):
                if reference["uid"] == uid:
                    reference["blockOwnerDeletion"] = False

        for resource, dependent in list(self._dependents(uid)):
            if owners.is_waiting(dependent):
                await write_errors.ignoring_gone(self._registry.mutate(resource, *selection.key_of(dependent), unblock))

    async def _delete_dependents(self, key: Key, obj: Object) -> float | None:
        """Delete the dependents that block a deletion in the foreground, then remove its finalizer."""
        uid = obj["metadata"]["uid"]
        blocking = [(resource, one) for resource, one in self._dependents(uid) if owners.blocks(one, uid)]
        if not blocking:
            self._waiting.pop(uid, None)
            await write_errors.remove_finalizer(self._registry, *key, FOREGROUND)
            return None
        self._waiting[uid] = key
        for resource, dependent in blocking:
            if "deletionTimestamp" not in dependent["metadata"]:
                await self._collect(resource, dependent)
        return REQUEUE_S

    async def _orphan_dependents(self, key: Key, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        for resource, dependent in list(self._dependents(uid)):
            await self._remove_references(resource, dependent, {uid})
        await write_errors.remove_finalizer(self._registry, *key, ORPHAN)

    async def _remove_references(self, resource: str, obj: Object, uids: set[str]) -> None:
        def change(newest: Object) -> None:
            for uid in uids:
                ownership.release(newest, uid)

        await write_errors.ignoring_gone(self._registry.mutate(resource, *selection.key_of(obj), change))

    async def _delete(self, resource: str, obj: Object, policy: Literal["Background", "Foreground", "Orphan"]) -> None:
        uid = obj["metadata"]["uid"]
        await write_errors.ignoring_gone(
            self._registry.delete(resource, *selection.key_of(obj), uid=uid, propagation=policy), another=True
        )


def _owner_facts(obj: Object) -> _OwnerFacts:
    return tuple(
        (reference["uid"], bool(reference.get("blockOwnerDeletion"))) for reference in ownership.references(obj)
    )


def _own_policy(obj: Object) -> Literal["Background", "Foreground", "Orphan"]:
    if ORPHAN in owners.finalizers(obj):
        return "Orphan"
    return "Foreground" if FOREGROUND in owners.finalizers(obj) else "Background"
