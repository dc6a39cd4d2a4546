"""The garbage collector: deletes or orphans the dependents of deleted objects.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop` over all stored kinds. An owner (`owners`) is
solid (it exists), waiting (for the deletion of its dependents, in the foreground) or gone. Actions:

| the object                                     | action                                                             |
|------------------------------------------------|--------------------------------------------------------------------|
| is being deleted, finalizer `orphan`           | references to it are removed from dependents, then the finalizer   |
| is being deleted, `foregroundDeletion`         | blocking dependents are deleted, then the finalizer is removed     |
| is being deleted otherwise                     | none                                                               |
| has a solid owner                              | references to the other owners are removed                         |
| has a waiting owner and dependents of its own  | it is deleted in the foreground                                    |
| has only owners that are gone or waiting       | it is deleted, with the policy of its own finalizers               |

A dependent has an ownerReference to its owner. A new action: a row, and a case in `sync` or `_collect_object`. Which
objects are dependents is read from the registry; the collector itself indexes only the references of each object, to
find what a change or deletion affects.

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
"""The `Resource.key` of kinds without owners and dependents, of which there are many objects."""
REQUEUE_S = 5.0
"""How often an owner that waits for its dependents is checked, besides their changes."""

_Policy = Literal["Background", "Foreground", "Orphan"]
"""A propagation policy."""
_References = tuple[tuple[str, bool], ...]
"""The ownerReferences of an object: uid and blockOwnerDeletion of each."""


class GarbageCollector(Reconciler[Key]):
    """Reconciles objects of all stored kinds that have owners or are owners.

    Args:
        registry: the objects.
        resources: all served kinds; those that are stored as objects of another kind (`stored_as`) are left out.
    """

    name = "generic-garbage-collector"

    def __init__(self, registry: Registry, resources: Iterable[Resource]) -> None:
        self._registry = registry
        stored = [
            resource
            for resource in resources
            if resource.stored and not resource.stored_as and resource.key not in IGNORED
        ]
        self._resources = [resource.key for resource in stored]
        self._kinds = OwnerKinds(stored)
        self._references: dict[str, _References] = {}
        """By the uid of each object that has owners."""
        self._dependent_counts: Counter[str] = Counter()
        """How many of these references each owner has, by its uid."""
        self._waiting: dict[str, Key] = {}
        """The keys of owners that wait for blocking dependents, by uid."""
        self._is_primed = False

    def watches(self) -> Sequence[Watched[Key]]:
        """Every stored kind."""
        return [Watched(resource, partial(self._index_change, resource)) for resource in self._resources]

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
        """Take the action of the module's table for one object.

        Returns the seconds until the next check of an owner that waits, otherwise None. Raises StatusError.
        """
        resource, _, _ = key
        obj = self._registry.find(*key)
        if obj is None:
            return None
        if "deletionTimestamp" not in obj["metadata"]:
            await self._collect_object(resource, obj)
            return None
        if ORPHAN in owners.finalizers(obj):
            await self._orphan_dependents(key, obj)
        elif FOREGROUND in owners.finalizers(obj):
            return await self._delete_dependents(key, obj)
        return None

    def _index_change(self, resource: str, event: ObjectEvent) -> Iterator[Key]:
        """Index the references of a changed object; yields the keys of the objects that may need an action now.

        These are: the dependents of a deleted object; an object whose references changed, or that is being deleted with
        a finalizer; and waiting owners that the object no longer blocks.
        """
        obj, key = event.object, (resource, *selection.key_of(event.object))
        uid = obj["metadata"]["uid"]
        old_references = self._references.pop(uid, ())
        new_references = () if event.type == "DELETED" else _reference_facts(obj)
        has_dependents = uid in self._dependent_counts  # most objects have none: then no kind is searched for them
        self._update_dependent_counts(old_references, new_references)
        if event.type == "DELETED":
            self._waiting.pop(uid, None)
            if has_dependents:
                yield from ((kind, *selection.key_of(dependent)) for kind, dependent in self._dependents(uid))
        else:
            if new_references:
                self._references[uid] = new_references
            is_finalizing = owners.finalizers(obj) and "deletionTimestamp" in obj["metadata"]
            if new_references != old_references or is_finalizing:
                yield key
        for owner_uid, blocks_deletion in old_references:
            if (owner_uid, blocks_deletion) not in new_references and owner_uid in self._waiting:
                yield self._waiting[owner_uid]

    def _update_dependent_counts(self, old_references: _References, new_references: _References) -> None:
        """Update the number of indexed dependents of each owner."""
        for owner_uid, _ in new_references:
            self._dependent_counts[owner_uid] += 1
        for owner_uid, _ in old_references:
            self._dependent_counts[owner_uid] -= 1
            if not self._dependent_counts[owner_uid]:
                del self._dependent_counts[owner_uid]

    def _dependents(self, uid: str) -> Iterator[tuple[str, Object]]:
        """The objects that have an ownerReference to `uid`, each with the `Resource.key` of its kind."""
        for resource in self._resources:
            for obj in self._registry.owned_by(resource, uid):
                yield resource, obj

    async def _collect_object(self, resource: str, obj: Object) -> None:
        """Delete an object without a solid owner, or remove its references to owners that are gone or waiting."""
        classified = owners.classify(obj, self._registry, self._kinds)
        leaving_uids = {*classified.gone, *classified.waiting}
        if not leaving_uids:
            return
        if classified.solid:
            await self._remove_references(resource, obj, leaving_uids)
            return
        has_dependents = next(self._dependents(obj["metadata"]["uid"]), None) is not None
        if classified.waiting and has_dependents:
            await self._unblock_cycles(obj)
            await self._delete_object(resource, obj, "Foreground")
        else:
            await self._delete_object(resource, obj, _own_policy(obj))

    async def _unblock_cycles(self, obj: Object) -> None:
        """Clear blockOwnerDeletion in dependents of `obj` that wait themselves: each would wait for the other."""
        uid = obj["metadata"]["uid"]

        def unblock(newest: Object) -> None:
            for reference in ownership.references(newest):
                if reference["uid"] == uid:
                    reference["blockOwnerDeletion"] = False

        for resource, dependent in list(self._dependents(uid)):
            if owners.is_waiting(dependent):
                await write_errors.ignoring_gone(self._registry.mutate(resource, *selection.key_of(dependent), unblock))

    async def _delete_dependents(self, key: Key, obj: Object) -> float | None:
        """Delete the dependents that block the deletion of `obj` in the foreground, then remove its finalizer.

        Returns the seconds until the next check while dependents remain, otherwise None.
        """
        uid = obj["metadata"]["uid"]
        blocking = [
            (resource, dependent) for resource, dependent in self._dependents(uid) if owners.blocks(dependent, uid)
        ]
        if not blocking:
            self._waiting.pop(uid, None)
            await write_errors.remove_finalizer(self._registry, *key, FOREGROUND)
            return None
        self._waiting[uid] = key
        for resource, dependent in blocking:
            if "deletionTimestamp" not in dependent["metadata"]:
                await self._collect_object(resource, dependent)
        return REQUEUE_S

    async def _orphan_dependents(self, key: Key, obj: Object) -> None:
        """Remove the references to `obj` from its dependents, then the finalizer from `obj`."""
        uid = obj["metadata"]["uid"]
        for resource, dependent in list(self._dependents(uid)):
            await self._remove_references(resource, dependent, {uid})
        await write_errors.remove_finalizer(self._registry, *key, ORPHAN)

    async def _remove_references(self, resource: str, obj: Object, owner_uids: set[str]) -> None:
        """Remove the ownerReferences to these uids from a stored object, which may be gone."""

        def release(newest: Object) -> None:
            for owner_uid in owner_uids:
                ownership.release(newest, owner_uid)

        await write_errors.ignoring_gone(self._registry.mutate(resource, *selection.key_of(obj), release))

    async def _delete_object(self, resource: str, obj: Object, policy: _Policy) -> None:
        """Delete an object with a propagation policy; one that is gone or replaced is ignored."""
        uid = obj["metadata"]["uid"]
        await write_errors.ignoring_gone(
            self._registry.delete(resource, *selection.key_of(obj), uid=uid, propagation=policy), or_replaced=True
        )


def _reference_facts(obj: Object) -> _References:
    """The uid and blockOwnerDeletion of each ownerReference of an object."""
    return tuple(
        (reference["uid"], bool(reference.get("blockOwnerDeletion"))) for reference in ownership.references(obj)
    )


def _own_policy(obj: Object) -> _Policy:
    """The propagation policy that the finalizers of an object stand for; Background without one."""
    if ORPHAN in owners.finalizers(obj):
        return "Orphan"
    return "Foreground" if FOREGROUND in owners.finalizers(obj) else "Background"
