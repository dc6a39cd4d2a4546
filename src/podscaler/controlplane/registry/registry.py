"""The API client of controllers and node in the same process as the API server (the place of client-go's clientset).

`cli.up.control_plane` creates one `Registry`; controllers call it in place of HTTP. A new kind of read or write: a
method here that calls one of `registry.objects`. Invariants:

1. Writes pass the same admission, validation and defaulting as requests over HTTP, as the user `users.SYSTEM`.
2. Kinds are named by `Resource.key` (`pods`, `deployments.apps`); objects are dicts in their storage version.
3. `get`, `find` and writes return the caller's own copy. Objects from `list`, `owned_by` and `watch` may be shared:
   they must not be changed, and may lack metadata.managedFields.
4. Errors are `podscaler.base.errors.StatusError`, as over HTTP (`code` 404, 409, 422, ...). Besides those that a method
   names, every write raises 400, 403 and 500 as over HTTP, and 503 once the store is closed.
5. Reads come from memory and never wait; writes return once they are durable.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from podscaler.api.resource.resources import Resource
from podscaler.base.errors import StatusError
from podscaler.controlplane.registry import acting_user, users
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.entries import Entry, deep_copy
from podscaler.controlplane.storage.options import (
    LATEST,
    Author,
    DeleteOptions,
    ListOptions,
    Preconditions,
    UpdateOptions,
)
from podscaler.controlplane.storage.watching import Subscription

Object = dict[str, Any]

CONTROLLERS = "kube-controller-manager"
"""The field manager of controllers."""
_UNTRACKED_SUBRESOURCES = frozenset({"binding", "address"})
"""Subresources whose fields the server sets: they have no field manager."""
WRITES_PER_ITERATION = 32
"""How many writes of controllers and node start in an iteration of the event loop, so that requests proceed."""
EVENTS_PER_ITERATION = 50
"""How many events a watch returns in one iteration: a commit of 500 deletions, which a dozen controllers watch, would
block the event loop."""
MAX_RECENT_VIEWS = 1024
"""How many decoded versions of objects of other kinds than `_CACHED_KINDS` are shared."""
_GONE_CODE = 410
"""The code of the StatusError that ends a watch whose consumer fell behind the change log."""
_CACHED_KINDS = frozenset({"pods", "endpointslices.discovery.k8s.io"})
"""Kinds that controllers list again and again: decoded once for each version."""


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """One watch event: the object in its new state (for DELETED: in its last one), with its resourceVersion."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: Object


class Views:
    """Decoded objects that the readers of this process share: decoded once for each version, without managedFields.

    The objects of `_CACHED_KINDS` are kept until they are superseded; of other kinds the latest MAX_RECENT_VIEWS are
    kept, so that a change that a dozen controllers watch is decoded once.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._recent: deque[Entry] = deque()

    def of(self, entry: Entry) -> Object:
        """The object, which must not be changed; it is decoded, and kept, unless it was kept before."""
        if entry.view is None:
            entry.view = entry.decode()
            entry.view["metadata"].pop("managedFields", None)
            if entry.resource not in _CACHED_KINDS or not self._objects.is_current(entry):
                self._recent.append(entry)
                if len(self._recent) > MAX_RECENT_VIEWS:
                    self._recent.popleft().view = None
        return entry.view

    def listed(self, entry: Entry) -> Object:
        """The object as lists return it: shared for kinds in `_CACHED_KINDS`, else the caller's own copy."""
        return self.of(entry) if entry.resource in _CACHED_KINDS else entry.decode()


class IterationLimiter:
    """Limits how many callers proceed in an iteration of the event loop; the others wait for later ones, in order."""

    def __init__(self, per_iteration: int = WRITES_PER_ITERATION) -> None:
        self._per_iteration = per_iteration
        self._free_slots = per_iteration
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        """Return when the caller may proceed: at once if this iteration has a slot left."""
        if self._free_slots == self._per_iteration:  # the first caller of this iteration
            asyncio.get_running_loop().call_soon(self._begin_iteration)
        if self._free_slots:
            self._free_slots -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def _begin_iteration(self) -> None:
        """Begin an iteration: all slots are free again, and the waiting callers take them first."""
        self._free_slots = self._per_iteration
        while self._waiting and self._free_slots:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._free_slots -= 1
        if self._free_slots < self._per_iteration:
            asyncio.get_running_loop().call_soon(self._begin_iteration)


class Registry:
    """Reads, writes and watches API objects for one component.

    `resource` arguments are `Resource.key`; a kind that is not served is a KeyError where nothing else is said.

    Args:
        objects: the stored objects.
        manager: the field manager of writes.
        shared: another registry of this process, whose views and limiters this one uses too; None for the first.
    """

    def __init__(self, objects: Objects, manager: str = CONTROLLERS, *, shared: "Registry | None" = None) -> None:
        self._objects = objects
        self._manager = manager
        self._views: Views = shared._views if shared else Views(objects)
        self._write_limiter: IterationLimiter = shared._write_limiter if shared else IterationLimiter()
        self._pause_limiter: IterationLimiter = shared._pause_limiter if shared else IterationLimiter(1)

    def acting_as(self, manager: str) -> "Registry":
        """A registry of the same objects that writes as another field manager; it shares the limiters of this one."""
        return Registry(self._objects, manager, shared=self)

    def get(self, resource: str, namespace: str, name: str) -> Object:
        """The object (namespace `""` for cluster-scoped kinds). Raises StatusError 404."""
        return self._objects.get(resource, namespace, name).decode()

    def find(self, resource: str, namespace: str, name: str) -> Object | None:
        """As `get`, None if there is no object, or the kind is no longer served."""
        entry = self._objects.find(resource, namespace, name) if self._objects.knows(resource) else None
        return entry.decode() if entry else None

    def list(self, resource: str, namespace: str = "", *, labels: Mapping[str, str] | None = None) -> Sequence[Object]:
        """Objects of a namespace (`""`: of all) that carry all of `labels`, in key order."""
        required_labels = (labels or {}).items()
        entries = self._objects.list(resource, namespace).entries
        return [self._views.listed(entry) for entry in entries if required_labels <= entry.labels.items()]

    def owned_by(self, resource: str, uid: str) -> Sequence[Object]:
        """Objects with an ownerReference (controller or not) to `uid`; the cost is proportional to their number.

        Empty if the kind is no longer served.
        """
        if not self._objects.knows(resource):
            return []
        return [self._views.listed(entry) for entry in self._objects.owned_by(resource, uid)]

    async def create(self, resource: str, obj: Object) -> Object:
        """Create a copy of `obj` (with metadata.namespace if namespaced). Raises StatusError 404, 409, 422."""
        await self._write_limiter.acquire()
        new = deep_copy(obj)
        _set_defaults(self._objects.resource(resource), new)
        with acting_user.as_user(users.SYSTEM):
            return (await self._objects.create(resource, new, author=Author(self._manager))).decode()

    async def update(self, resource: str, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object by a copy of `obj`; `subresource="status"` replaces only its status.

        Kinds may have more subresources (`Strategy.prepare_subresource_update`): `binding` sets a pod's spec.nodeName,
        `finalize` a namespace's spec.finalizers. An update that changes nothing keeps the resourceVersion.

        Raises StatusError 404, 422; 409 for another uid, or another metadata.resourceVersion if it is set.
        """
        metadata = obj["metadata"]
        uid = metadata.get("uid", "")
        kind = self._objects.resource(resource)
        unmanaged = {
            **obj,
            "metadata": {name: field_value for name, field_value in metadata.items() if name != "managedFields"},
        }

        def change(_stored: Object) -> Object:
            new = deep_copy(unmanaged)
            if subresource != "status":
                _set_defaults(kind, new)
            return new

        namespace, name = metadata.get("namespace", ""), metadata["name"]
        return await self._update(resource, namespace, name, change, self._options(subresource, uid))

    async def mutate(
        self, resource: str, namespace: str, name: str, change: Callable[[Object], None], *, subresource: str = ""
    ) -> Object:
        """Apply `change` (in place, synchronous) to the newest version and store it; it cannot conflict.

        Raises:
            StatusError: 404, 422.
            Exception: whatever `change` raises.
        """
        kind = self._objects.resource(resource)

        def changed(stored: Object) -> Object:
            change(stored)
            if subresource != "status":
                _set_defaults(kind, stored)
            return stored

        return await self._update(resource, namespace, name, changed, self._options(subresource))

    def _options(self, subresource: str, uid: str = "") -> UpdateOptions:
        """The options of an update by this component; with `uid` only of the object that has it."""
        author = None if subresource in _UNTRACKED_SUBRESOURCES else Author(self._manager)
        return UpdateOptions(subresource, Preconditions(uid=uid), author=author)

    async def _update(
        self, resource: str, namespace: str, name: str, change: Callable[[Object], Object], options: UpdateOptions
    ) -> Object:
        """Update an object as the system user, when a write slot is free; returns the stored object."""
        await self._write_limiter.acquire()
        with acting_user.as_user(users.SYSTEM):
            return (await self._objects.update(resource, namespace, name, change, options=options)).decode()

    async def delete(
        self,
        resource: str,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        grace_period_s: int | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] | None = None,
    ) -> None:
        """Delete an object; one with finalizers stays, with a deletionTimestamp, until they are removed.

        Args:
            resource, namespace, name: the object.
            uid: its uid; None to delete any object of that name.
            grace_period_s: for kinds with graceful deletion (pods); 0 to delete at once, None for its own period.
            propagation: what happens to dependents; None for the kind's default.

        Raises StatusError 404, 409 (another uid).
        """
        options = DeleteOptions(
            grace_period_s=grace_period_s, propagation=propagation or "", preconditions=Preconditions(uid=uid or "")
        )
        await self._write_limiter.acquire()
        with acting_user.as_user(users.SYSTEM):
            await self._objects.delete(resource, namespace, name, options=options)

    async def pause(self) -> None:
        """Return in a later iteration of the event loop, in which no other caller's pause ends.

        For work on thousands of objects between two steps: no iteration runs more than one of the steps that follow.
        """
        await asyncio.sleep(0)
        await self._pause_limiter.acquire()

    def watch(self, resource: str, *, initial: bool = True) -> AsyncIterator[ObjectEvent]:
        """Events of all namespaces from the moment of this call on; with `initial`, first an ADDED for each object.

        No event is lost or duplicated. For a consumer that falls behind the change log the iterator raises StatusError
        410; the caller then watches again, or uses `watch_renewed`.
        """
        options = LATEST if initial else ListOptions(resource_version=str(self._objects.revision))
        return _object_events(self._objects.watch(resource, options=options), self._views)

    async def watch_renewed(
        self, resource: str, *, on_watch: Callable[[], None] | None = None
    ) -> AsyncIterator[ObjectEvent]:
        """As `watch` with initial events, without an end: a watch that ends with StatusError 410 is replaced.

        A new watch begins with an ADDED for each stored object and has no DELETED for objects that were deleted between
        two watches: the caller removes those in `on_watch`.

        Args:
            resource: the `Resource.key` of the kind.
            on_watch: called after each watch is created (also the first) and before its events: objects that are
                deleted later have a DELETED in the watch.

        Raises:
            StatusError: any but 410.
        """
        while True:
            events = self.watch(resource)
            if on_watch is not None:
                on_watch()
            try:
                async for event in events:
                    yield event
            except StatusError as error:
                if error.code != _GONE_CODE:
                    raise


async def _object_events(subscription: Subscription, views: Views) -> AsyncIterator[ObjectEvent]:
    """The events of a subscription with decoded objects, without an end. Raises StatusError 410."""
    while True:
        batch = await subscription.batch()
        for number, event in enumerate(batch.events, 1):
            yield ObjectEvent(event.type, views.of(event.entry))
            if number % EVENTS_PER_ITERATION == 0:
                await asyncio.sleep(0)  # let other tasks run


def _set_defaults(kind: Resource, obj: Object) -> None:
    """Set the defaults of the storage version, in place."""
    for version in kind.versions:
        if version.version == kind.storage_version:
            version.default(obj)
