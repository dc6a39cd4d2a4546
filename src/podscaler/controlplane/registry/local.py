"""The Registry for what runs in the same process: controllers and node see the API server's objects as plain dicts.

Wired by `podscaler up`. Writes pass the same rules as over HTTP, as those of `users.SYSTEM`; what a caller leaves out
is defaulted here, since nobody decoded it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal

import msgspec

from podscaler.api.resource.resources import Object, Resource
from podscaler.controlplane.registry import acting, users
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import ObjectEvent
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import (
    LATEST,
    Author,
    DeleteOptions,
    ListOptions,
    Preconditions,
    UpdateOptions,
)
from podscaler.controlplane.storage.watching import Subscription

CONTROLLERS = "kube-controller-manager"
"""The name under which controllers write."""
_UNTRACKED = frozenset({"binding", "address"})
"""What the server gives an object: nobody owns it."""

WRITES_IN_A_PASS = 32
"""How many writes of controllers and node are decided in one pass of the event loop: requests get their turn, too."""
CHANGES_IN_A_PASS = 50
"""How many changes a watch gives in one pass: a commit of 500 deletions is given to a dozen controllers."""
PASSING_VIEWS = 1024
_KEPT_VIEWS = frozenset({"pods", "endpointslices.discovery.k8s.io"})
"""What controllers read as a whole again and again: decoded once for each version."""


class Views:
    """Objects as readers of this process share them: decoded once for each version, without managedFields.

    Those of current pods and slices are kept until they are superseded, of the others the latest 1,024: a change that
    a dozen controllers watch is decoded once.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._passing: deque[Entry] = deque()

    def of(self, entry: Entry) -> Object:
        """The object, which must not be changed."""
        if entry.view is None:
            entry.view = entry.decode()
            entry.view["metadata"].pop("managedFields", None)
            if entry.resource not in _KEPT_VIEWS or not self._objects.is_current(entry):
                self._passing.append(entry)
                if len(self._passing) > PASSING_VIEWS:
                    self._passing.popleft().view = None
        return entry.view

    def listed(self, entry: Entry) -> Object:
        """The object as lists give it: shared where that is kept, else the caller's own."""
        return self.of(entry) if entry.resource in _KEPT_VIEWS else entry.decode()


class Turns:
    """Lets a number of writes, or long steps, begin in a pass of the event loop; others wait for the next, in order."""

    def __init__(self, in_a_pass: int = WRITES_IN_A_PASS) -> None:
        self._in_a_pass = in_a_pass
        self._left = in_a_pass
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Return when it is the caller's turn: at once, where the pass has one left."""
        if self._left == self._in_a_pass:
            asyncio.get_running_loop().call_soon(self._renew)
        if self._left:
            self._left -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def _renew(self) -> None:
        self._left = self._in_a_pass
        while self._waiting and self._left:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._left -= 1
        if self._left < self._in_a_pass:
            asyncio.get_running_loop().call_soon(self._renew)


class LocalRegistry:
    """`podscaler.controlplane.registry.registry.Registry` over `Objects`.

    Args:
        objects: where objects are.
        manager: who writes, as managedFields tell it.
        views, turns, steps: those of another registry of the same process, to share them.
    """

    def __init__(
        self,
        objects: Objects,
        manager: str = CONTROLLERS,
        *,
        views: Views | None = None,
        turns: Turns | None = None,
        steps: Turns | None = None,
    ) -> None:
        self._objects = objects
        self._manager = manager
        self._views = views or Views(objects)
        self._turns = turns or Turns()
        self._steps = steps or Turns(1)

    def acting_as(self, manager: str) -> "LocalRegistry":
        """The same objects for another writer."""
        return LocalRegistry(self._objects, manager, views=self._views, turns=self._turns, steps=self._steps)

    def get(self, resource: str, namespace: str, name: str) -> Object:
        """The object. Raises StatusError 404."""
        return self._objects.get(resource, namespace, name).decode()

    def find(self, resource: str, namespace: str, name: str) -> Object | None:
        """The object, None where there is none; of a kind that is served no longer there are none."""
        entry = self._objects.find(resource, namespace, name) if self._objects.knows(resource) else None
        return entry.decode() if entry else None

    def list(self, resource: str, namespace: str = "", *, labels: Mapping[str, str] | None = None) -> Sequence[Object]:
        """Objects of a namespace (`""`: of all) that carry all of `labels`, in key order."""
        wanted = (labels or {}).items()
        entries = self._objects.list(resource, namespace).entries
        return [self._views.listed(entry) for entry in entries if wanted <= entry.labels.items()]

    def owned_by(self, resource: str, uid: str) -> Sequence[Object]:
        """Objects with an ownerReference to `uid`; of a kind that is served no longer there are none."""
        if not self._objects.knows(resource):
            return []
        return [self._views.listed(entry) for entry in self._objects.owned_by(resource, uid)]

    async def create(self, resource: str, obj: Object) -> Object:
        """Create a copy of `obj`. Raises StatusError 403, 404 (namespace), 409, 422."""
        await self._turns.take()
        new = _copied(obj)
        _default(self._objects.resource(resource), new)
        with acting.as_user(users.SYSTEM):
            return (await self._objects.create(resource, new, author=Author(self._manager))).decode()

    async def update(self, resource: str, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object by a copy of `obj`. Raises StatusError 404, 409, 422."""
        metadata = obj["metadata"]
        uid = metadata.get("uid", "")
        options = self._options(subresource, Preconditions(uid=uid))
        record = self._objects.resource(resource)

        bare = {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}

        def change(_stored: Object) -> Object:
            new = _copied(bare)
            if subresource != "status":
                _default(record, new)
            return new

        namespace, name = metadata.get("namespace", ""), metadata["name"]
        await self._turns.take()
        with acting.as_user(users.SYSTEM):
            return (await self._objects.update(resource, namespace, name, change, options=options)).decode()

    async def mutate(
        self, resource: str, namespace: str, name: str, change: Callable[[Object], None], *, subresource: str = ""
    ) -> Object:
        """Apply `change` to the newest object and store it. Raises StatusError 404, 422, and what `change` raises."""
        record = self._objects.resource(resource)

        def changed(stored: Object) -> Object:
            change(stored)
            if subresource != "status":
                _default(record, stored)
            return stored

        options = self._options(subresource, Preconditions())
        await self._turns.take()
        with acting.as_user(users.SYSTEM):
            return (await self._objects.update(resource, namespace, name, changed, options=options)).decode()

    def _options(self, subresource: str, preconditions: Preconditions) -> UpdateOptions:
        author = None if subresource in _UNTRACKED else Author(self._manager)
        return UpdateOptions(subresource, preconditions, author=author)

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
        """Delete, gracefully where the kind has a grace period. Raises StatusError 403, 404, 409."""
        options = DeleteOptions(
            grace_period_s=grace_period_s, propagation=propagation or "", preconditions=Preconditions(uid=uid or "")
        )
        await self._turns.take()
        with acting.as_user(users.SYSTEM):
            await self._objects.delete(resource, namespace, name, options=options)

    async def pause(self) -> None:
        """Return in a later pass of the event loop, in which no other caller's pause ends."""
        await asyncio.sleep(0)
        await self._steps.take()

    def watch(self, resource: str, *, initial: bool = True) -> AsyncIterator[ObjectEvent]:
        """Changes from the moment of this call on; with `initial`, first an ADDED for each object there is."""
        options = LATEST if initial else ListOptions(resource_version=str(self._objects.revision))
        return _changes(self._objects.watch(resource, options=options), self._views)


async def _changes(subscription: Subscription, views: Views) -> AsyncIterator[ObjectEvent]:
    while True:
        batch = await subscription.batch()
        for number, notice in enumerate(batch.notices, 1):
            yield ObjectEvent(notice.type, views.of(notice.entry))
            if number % CHANGES_IN_A_PASS == 0:
                await asyncio.sleep(0)  # there may be more: others first


def _copied(obj: Object) -> Object:
    """A deep copy of JSON-ready data: encoding and decoding is quicker than walking through it."""
    copy: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copy


def _default(record: Resource, obj: Object) -> None:
    """Fill in the defaults of the storage version."""
    for version in record.versions:
        if version.version == record.storage_version:
            version.default(obj)
