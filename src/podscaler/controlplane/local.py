"""The Registry for what runs in the same process: controllers and node see the API server's objects as plain dicts.

Wired by `podscaler up`. Writes pass the same rules as over HTTP, as those of `users.SYSTEM`; what a caller leaves out
is defaulted here, since nobody decoded it.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal

import msgspec

from podscaler.api.resources import Object, Resource
from podscaler.controlplane.access import acting, users
from podscaler.controlplane.objects import Objects
from podscaler.controlplane.options import LATEST, Author, DeleteOptions, ListOptions, Preconditions, UpdateOptions
from podscaler.controlplane.registry import Change
from podscaler.controlplane.watching import Subscription

CONTROLLERS = "kube-controller-manager"
"""The name under which controllers write."""
_UNTRACKED = frozenset({"binding", "address"})
"""What the server gives an object: nobody owns it."""


class LocalRegistry:
    """`podscaler.controlplane.registry.Registry` over `Objects`.

    Args:
        objects: where objects are.
        manager: who writes, as managedFields tell it.
    """

    def __init__(self, objects: Objects, manager: str = CONTROLLERS) -> None:
        self._objects = objects
        self._manager = manager

    def acting_as(self, manager: str) -> "LocalRegistry":
        """The same objects for another writer."""
        return LocalRegistry(self._objects, manager)

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
        return [entry.decode() for entry in entries if wanted <= entry.labels.items()]

    def owned_by(self, resource: str, uid: str) -> Sequence[Object]:
        """Objects with an ownerReference to `uid`; of a kind that is served no longer there are none."""
        if not self._objects.knows(resource):
            return []
        return [entry.decode() for entry in self._objects.owned_by(resource, uid)]

    async def create(self, resource: str, obj: Object) -> Object:
        """Create a copy of `obj`. Raises StatusError 403, 404 (namespace), 409, 422."""
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
        with acting.as_user(users.SYSTEM):
            await self._objects.delete(resource, namespace, name, options=options)

    def watch(self, resource: str, *, initial: bool = True) -> AsyncIterator[Change]:
        """Changes from the moment of this call on; with `initial`, first an ADDED for each object there is."""
        options = LATEST if initial else ListOptions(resource_version=str(self._objects.revision))
        return _changes(self._objects.watch(resource, options=options))


async def _changes(subscription: Subscription) -> AsyncIterator[Change]:
    while True:
        for notice in (await subscription.batch()).notices:
            yield Change(notice.type, notice.entry.decode())


def _copied(obj: Object) -> Object:
    """A deep copy of JSON-ready data: encoding and decoding is quicker than walking through it."""
    copy: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copy


def _default(record: Resource, obj: Object) -> None:
    """Fill in the defaults of the storage version."""
    for version in record.versions:
        if version.version == record.storage_version:
            version.default(obj)
