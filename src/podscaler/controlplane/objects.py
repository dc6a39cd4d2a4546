"""The objects of the API server by kind: every read and write of HTTP, controllers and node ends here.

`server` calls it with what it decoded; `local.LocalRegistry` gives it to controllers and node as a `Registry`. Objects
come and go in their storage version; entries carry them as bytes. Reads come from memory and never wait. Writes are
decided one after the other (`change` functions see the newest version, so a read-change-write is atomic) and return
once they are durable. Refusals are `StatusError` in upstream's words.
"""

from collections.abc import Callable
from dataclasses import dataclass

from podscaler.api.resources import Object, Resource
from podscaler.controlplane.entries import Entry
from podscaler.controlplane.options import (
    LATEST,
    PLAIN_DELETE,
    PLAIN_UPDATE,
    DeleteOptions,
    ListOptions,
    UpdateOptions,
)
from podscaler.controlplane.watching import Subscription

Change = Callable[[Object], Object]
"""From the stored object (a copy, storage version) to the wanted one; synchronous; may raise StatusError."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a list found: entries in key order, the revision they are of, and how to go on.

    `continue_token` is empty on the last page; `remaining` is upstream's remainingItemCount, None where not told.
    """

    entries: list[Entry]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a delete did: the last (or newest) version, and whether the object is gone or only marked."""

    entry: Entry
    gone: bool


class Objects:
    """See the module. `resource` arguments are `Resource.key`; one that is not served is a KeyError."""

    def resource(self, key: str) -> Resource:
        """The record of a served kind."""
        raise NotImplementedError

    @property
    def revision(self) -> int:
        """The newest committed resourceVersion."""
        raise NotImplementedError

    def get(self, resource: str, namespace: str, name: str, *, resource_version: str = "") -> Entry:
        """The newest version. Raises StatusError 404; for a `resource_version` still to come 504, for no number 500."""
        raise NotImplementedError

    def list(self, resource: str, namespace: str = "", *, options: ListOptions = LATEST) -> Page:
        """Entries of a namespace (`""`: all) in key order. Raises StatusError 400, 410, 422, 504."""
        raise NotImplementedError

    def watch(self, resource: str, namespace: str = "", *, options: ListOptions = LATEST) -> Subscription:
        """Changes from `options.resource_version` on (unset or 0: first an ADDED for each object there is).

        Raises StatusError 400, 410 (too old; upstream sends it as an ERROR event), 422, 504.
        """
        raise NotImplementedError

    async def create(self, resource: str, obj: Object, *, dry_run: bool = False) -> Entry:
        """Store a new object. Raises StatusError 403, 404 (namespace), 409, 422, 500."""
        raise NotImplementedError

    async def update(
        self,
        resource: str,
        namespace: str,
        name: str,
        change: Change,
        *,
        options: UpdateOptions = PLAIN_UPDATE,
    ) -> Entry:
        """Replace the object by `change(stored)`: PUT ignores the argument, PATCH patches it.

        A metadata.resourceVersion in the result that is not the stored one is a 409. Raises StatusError 404, 409, 422,
        500 and whatever `change` raises. A change that changes nothing returns the stored version.
        """
        raise NotImplementedError

    async def delete(
        self, resource: str, namespace: str, name: str, *, options: DeleteOptions = PLAIN_DELETE
    ) -> Deleted:
        """Delete or mark for deletion. Raises StatusError 403, 404, 409, 422."""
        raise NotImplementedError

    async def delete_collection(
        self, resource: str, namespace: str, *, selection: ListOptions = LATEST, options: DeleteOptions = PLAIN_DELETE
    ) -> Page:
        """Delete all that `selection` selects; the page has them as they were before."""
        raise NotImplementedError

    def get_scale(self, resource: str, namespace: str, name: str) -> Object:
        """The autoscaling/v1 Scale of an object. Raises StatusError 404."""
        raise NotImplementedError

    async def update_scale(
        self,
        resource: str,
        namespace: str,
        name: str,
        change: Change,
        *,
        options: UpdateOptions = PLAIN_UPDATE,
    ) -> Object:
        """Replace the scale by `change(scale)`; only spec.replicas counts. Raises StatusError 404, 409, 422, 500."""
        raise NotImplementedError

    async def compact(self) -> int:
        """Forget the history up to now, as etcd's compaction does; returns the oldest revision to resume from."""
        raise NotImplementedError
