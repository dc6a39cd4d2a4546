"""The garbage collector: dependents follow their owners, in the background, in the foreground, or are orphaned.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop` over all stored kinds. What it does to an
object:

| the object                                   | done                                                          |
|----------------------------------------------|---------------------------------------------------------------|
| being deleted, finalizer `orphan`            | dependents lose their reference to it, then it its finalizer  |
| being deleted, `foregroundDeletion`          | blocking dependents are deleted, and at last the finalizer    |
| being deleted otherwise                      | nothing                                                       |
| some owner is solid                          | references to the others are taken off                        |
| an owner waits, and it has dependents itself | it is deleted in the foreground                               |
| all owners are gone or wait                  | it is deleted, as its own finalizers say                      |

Source: documentation of garbage collection. Differs: facts come from the registry, which is never behind, so
upstream's graph of virtual nodes is not needed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Literal

from podscaler.api.resource.resources import Object, Resource
from podscaler.controlplane.controllers.framework import ownership, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.controllers.gc import owners
from podscaler.controlplane.controllers.gc.owners import FOREGROUND, ORPHAN, OwnerKinds
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

Key = tuple[str, str, str]
"""Resource key, namespace, name."""

IGNORED = frozenset({"events"})
"""Kinds that own nothing and are owned by nobody, but are many."""
LOOK_AGAIN_S = 5.0

_OwnerFacts = tuple[tuple[str, bool], ...]


class GarbageCollector:
    """See the module.

    Args:
        resources: all stored kinds.
    """

    name = "generic-garbage-collector"

    def __init__(self, registry: Registry, resources: Iterable[Resource]) -> None:
        self._registry = registry
        stored = [one for one in resources if one.stored and not one.stored_as and one.key not in IGNORED]
        self._resources = [one.key for one in stored]
        self._kinds = OwnerKinds(stored)
        self._owners: dict[str, _OwnerFacts] = {}
        self._owned: Counter[str] = Counter()
        self._waiting: dict[str, Key] = {}
        self._is_primed = False

    def watches(self) -> Sequence[Watched[Key]]:
        """Every stored kind."""
        return [Watched(resource, partial(self._of_change, resource)) for resource in self._resources]

    def prime(self) -> Iterable[Key]:
        """Everything with owners or finalizers, after a watch broke; at the start the watches themselves bring it."""
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
        """Look at one object; see the module."""
        obj = self._registry.find(*key)
        if obj is None:
            return None
        if "deletionTimestamp" not in obj["metadata"]:
            await self._judge(key[0], obj)
            return None
        if ORPHAN in owners.finalizers(obj):
            await self._orphan_dependents(key, obj)
        elif FOREGROUND in owners.finalizers(obj):
            return await self._delete_dependents(key, obj)
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Nothing more than the log: no user caused it."""

    def _of_change(self, resource: str, change: ObjectEvent) -> Iterator[Key]:
        obj, key = change.object, (resource, *selection.key_of(change.object))
        uid = obj["metadata"]["uid"]
        before, now = self._owners.pop(uid, ()), _facts(obj)
        is_owner = uid in self._owned
        self._recount(before, () if change.type == "DELETED" else now)
        if change.type == "DELETED":
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
        """Keep the number of known dependents of each owner: one that is not known yet is judged when it is."""
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

    async def _judge(self, resource: str, obj: Object) -> None:
        """Delete an object whose owners are gone or waiting for it, or take off such owners."""
        found = owners.classify(obj, self._registry, self._kinds)
        leaving = {*found.gone, *found.waiting}
        if not leaving:
            return
        if found.solid:
            await self._take_off(resource, obj, leaving)
            return
        has_dependents = next(self._dependents(obj["metadata"]["uid"]), None) is not None
        if found.waiting and has_dependents:
            await self._unblock_cycles(obj)
            await self._delete(resource, obj, "Foreground")
        else:
            await self._delete(resource, obj, _own_policy(obj))

    async def _unblock_cycles(self, obj: Object) -> None:
        """A dependent that waits itself would wait for `obj`, which waits for it."""
        uid = obj["metadata"]["uid"]

        def unblock(newest: Object) -> None:
            for reference in ownership.references(newest):
                if reference["uid"] == uid:
                    reference["blockOwnerDeletion"] = False

        for resource, dependent in list(self._dependents(uid)):
            if owners.is_waiting(dependent):
                await write_errors.ignoring_gone(self._registry.mutate(resource, *selection.key_of(dependent), unblock))

    async def _delete_dependents(self, key: Key, obj: Object) -> float | None:
        uid = obj["metadata"]["uid"]
        blocking = [(resource, one) for resource, one in self._dependents(uid) if owners.blocks(one, uid)]
        if not blocking:
            self._waiting.pop(uid, None)
            await self._drop_finalizer(key, FOREGROUND)
            return None
        self._waiting[uid] = key
        for resource, dependent in blocking:
            if "deletionTimestamp" not in dependent["metadata"]:
                await self._judge(resource, dependent)
        return LOOK_AGAIN_S

    async def _orphan_dependents(self, key: Key, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        for resource, dependent in list(self._dependents(uid)):
            await self._take_off(resource, dependent, {uid})
        await self._drop_finalizer(key, ORPHAN)

    async def _take_off(self, resource: str, obj: Object, uids: set[str]) -> None:
        def change(newest: Object) -> None:
            for uid in uids:
                ownership.release(newest, uid)

        await write_errors.ignoring_gone(self._registry.mutate(resource, *selection.key_of(obj), change))

    async def _drop_finalizer(self, key: Key, finalizer: str) -> None:
        def change(newest: Object) -> None:
            newest["metadata"]["finalizers"] = [one for one in owners.finalizers(newest) if one != finalizer]

        await write_errors.ignoring_gone(self._registry.mutate(*key, change))

    async def _delete(self, resource: str, obj: Object, policy: Literal["Background", "Foreground", "Orphan"]) -> None:
        uid = obj["metadata"]["uid"]
        await write_errors.ignoring_gone(
            self._registry.delete(resource, *selection.key_of(obj), uid=uid, propagation=policy), another=True
        )


def _facts(obj: Object) -> _OwnerFacts:
    return tuple((one["uid"], bool(one.get("blockOwnerDeletion"))) for one in ownership.references(obj))


def _own_policy(obj: Object) -> Literal["Background", "Foreground", "Orphan"]:
    if ORPHAN in owners.finalizers(obj):
        return "Orphan"
    return "Foreground" if FOREGROUND in owners.finalizers(obj) else "Background"
