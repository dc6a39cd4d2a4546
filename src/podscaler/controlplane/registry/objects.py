"""Reads and writes the stored objects of all kinds, for HTTP handlers and `registry.Registry`.

Objects are passed in their storage version (the one API version in which a kind is stored); an `Entry` is one version
of an object as JSON bytes. Reads come from memory and never wait. Writes are decided one after the other (`change`
functions get the newest version, so a read-change-write is atomic) and return once they are durable. What a write
checks and changes is decided in `registry.object_writer`; a new kind of write needs a method there and here.

Errors are `StatusError` with the HTTP status code and kube-apiserver's message. Every write also raises 500 if the disk
fails or is full, 503 once the store is closed, and what admission raises (403, or the status of a webhook).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource
from podscaler.controlplane.registry import (
    deletion,
    remote_admission,
    remote_conversion,
    scale_field_managers,
    scale_objects,
)
from podscaler.controlplane.registry.allocation import Allocator
from podscaler.controlplane.registry.field_managers import FieldManagers
from podscaler.controlplane.registry.object_writer import (
    Admission,
    Change,
    Charge,
    Deleted,
    ObjectWriter,
    Replacement,
)
from podscaler.controlplane.registry.remote_admission import AdmitsNothing, AdmittedWrite, AsyncAdmission, UpdateSteps
from podscaler.controlplane.registry.remote_conversion import ConvertsNothing, RemoteConverter, Result
from podscaler.controlplane.storage import entries, listing, watching
from podscaler.controlplane.storage.change_log import StoreEvent
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.listing import ListPage
from podscaler.controlplane.storage.options import (
    LATEST,
    PLAIN_DELETE,
    PLAIN_UPDATE,
    SERVER,
    Author,
    DeleteOptions,
    ListOptions,
    UpdateOptions,
)
from podscaler.controlplane.storage.selection_predicate import selection
from podscaler.controlplane.storage.store import Store
from podscaler.controlplane.storage.transactions import Transaction
from podscaler.controlplane.storage.watching import Subscription, Watchers

_COLLECTION_BATCH = 100
"""How many objects of a collection one transaction deletes: it blocks the event loop for a few milliseconds."""


class Objects:
    """All stored objects; `resource` and `key` arguments are `Resource.key` (`pods`, `deployments.apps`).

    Methods raise KeyError for a kind that is not served.

    Args:
        store: where objects are stored.
        resources: the served kinds.
        random: for generated names and uids.

    Attributes:
        admission: admission that may wait, called besides the plugins of `add_admission`.
        converter: calls the webhooks that convert objects of a kind.
    """

    def __init__(self, store: Store, resources: Iterable[Resource], *, random: Random | None = None) -> None:
        self._store = store
        self._resources = {resource.key: resource for resource in resources}
        self._writer = ObjectWriter(self._resources, random or Random())
        self._watchers = Watchers(store)
        self.admission: AsyncAdmission = AdmitsNothing()
        self.converter: RemoteConverter = ConvertsNothing()

    def set_allocator(self, resource: str, allocator: Allocator) -> None:
        """Call `allocator` whenever an object of a kind is created or updated, to give it cluster-wide values."""
        self._writer.allocators[resource] = allocator

    def add_admission(self, resource: str, admission: Admission) -> None:
        """Call the admission plugin `admission` before every create and update of a kind, without its subresources.

        With `KEY/SUBRESOURCE` in place of a kind it is called before every update of that subresource.
        """
        self._writer.admissions.setdefault(resource, []).append(admission)

    def set_charge(self, charge: Charge) -> None:
        """Call `charge` for every validated create and update (not of subresources), in the same transaction."""
        self._writer.charge = charge

    def listen(self, listener: Callable[[list[StoreEvent]], None]) -> None:
        """Call `listener` with the events of every commit, in order, once reads return them."""
        self._store.listen(listener)

    def serve(self, resource: Resource) -> None:
        """Serve a kind, in place of the one with the same key."""
        self._resources[resource.key] = resource

    def withdraw(self, key: str) -> None:
        """Serve a kind no longer, and drop its table if that is empty; does nothing if it is not served."""
        withdrawn = self._resources.pop(key, None)
        if withdrawn is not None and not withdrawn.stored_as:
            self._store.drop_table(withdrawn.storage_key)

    def knows(self, key: str) -> bool:
        """Whether a kind is served; never raises KeyError."""
        return key in self._resources

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The served kinds."""
        return tuple(self._resources.values())

    def resource(self, key: str) -> Resource:
        """A served kind."""
        return self._resources[key]

    @property
    def revision(self) -> int:
        """The newest committed resourceVersion."""
        return self._store.revision

    def find(self, resource: str, namespace: str, name: str) -> Entry | None:
        """The newest version, None if there is no object."""
        return self._store.table(self._resources[resource].storage_key).find(entries.key_of(namespace, name))

    def get(self, resource: str, namespace: str, name: str, *, resource_version: str = "") -> Entry:
        """The newest version, which is at least as new as `resource_version`.

        Raises StatusError 404; 504 for a future `resource_version`, 500 for an invalid one.
        """
        oldest_revision = listing.parse_revision(resource_version)
        if oldest_revision > self.revision:
            raise api_errors.too_large_resource_version(oldest_revision, self.revision)
        entry = self.find(resource, namespace, name)
        if entry is None:
            raise api_errors.not_found(self._resources[resource], name)
        return entry

    def is_current(self, entry: Entry) -> bool:
        """Whether `entry` is the newest committed version of its object."""
        return self._store.table(entry.resource).find(entry.key) is entry

    def list(self, resource: str, namespace: str = "", *, options: ListOptions = LATEST) -> ListPage:
        """Entries of a namespace (`""`: all) in key order. Raises StatusError 400, 410, 422, 500, 504."""
        return listing.get_page(self._store, selection(self._resources[resource], namespace, options), options)

    def owned_by(self, resource: str, uid: str) -> Sequence[Entry]:
        """Entries with an ownerReference to `uid`; the cost is proportional to their number."""
        return self._store.table(self._resources[resource].storage_key).owned_by(uid)

    def watch(self, resource: str, namespace: str = "", *, options: ListOptions = LATEST) -> Subscription:
        """Events from `options.resource_version` on (unset or 0: first an ADDED for each object).

        Raises StatusError 400, 410 (too old; kube-apiserver sends it as an ERROR event), 422, 500, 504.
        """
        return watching.subscribe(self._watchers, selection(self._resources[resource], namespace, options), options)

    async def create(
        self, resource: str, obj: Object, *, dry_run: bool = False, author: Author | None = SERVER
    ) -> Entry:
        """Store `obj` (changed in place) as a new object. Raises StatusError 400, 403, 404 (namespace), 409, 422, 500.

        With `author` None the object's own managedFields are stored.
        """
        kind = self._resources[resource]
        if self.admission.selects(kind, "CREATE", ""):
            return await self._create_admitted(kind, obj, author, dry_run)
        return await self._create(kind, author, obj, uid="", dry_run=dry_run)

    async def _create(self, kind: Resource, author: Author | None, obj: Object, uid: str, dry_run: bool) -> Entry:
        """Create an object in a transaction, which is repeated after the objects are converted by a webhook."""

        def create(transaction: Transaction) -> Entry:
            if kind.strategy.convert is None:
                return self._writer.create(transaction, kind, obj, author, uid)
            new = entries.deep_copy(obj)
            try:
                return self._writer.create(transaction, kind, new, author, uid)
            finally:  # the next attempt has the same generated name
                obj["metadata"] = {**obj["metadata"], "name": new["metadata"].get("name", "")}

        return await self._write(kind, create, dry_run)

    async def _write(self, kind: Resource, decide: Callable[[Transaction], Result], dry_run: bool) -> Result:
        """The result of a write, which is decided again after each conversion that it needs."""
        if kind.strategy.convert is None:
            return await self._store.write(decide, dry_run=dry_run)
        return await remote_conversion.settled(self.converter, lambda: self._store.write(decide, dry_run=dry_run))

    async def converted(self, decide: Callable[[], Result]) -> Result:
        """The result of `decide`, which may need conversions. Raises StatusError 500; every error of `decide`."""

        async def run() -> Result:
            return decide()

        return await remote_conversion.settled(self.converter, run)

    async def _create_admitted(self, kind: Resource, obj: Object, author: Author | None, dry_run: bool) -> Entry:
        """Create an object after all admission, that of webhooks included."""
        self._writer.admit(kind, obj, None)  # for the webhooks; the write calls the plugins again
        metadata = obj.setdefault("metadata", {})
        namespace = metadata.get("namespace", "") if kind.namespaced else ""
        name = metadata.get("name", "")
        write = AdmittedWrite(kind, "CREATE", "", namespace, name, new=obj, old=None, is_dry=dry_run)
        return await remote_admission.admitted_create(self.admission, write, partial(self._create, kind, author))

    async def apply(
        self, resource: str, namespace: str, name: str, change: Change, *, options: UpdateOptions
    ) -> tuple[Entry, bool]:
        """Replace the object by `change(stored)`, or create `change({})`; returns the entry, and whether it is new.

        Raises as `create` and `update`.
        """
        kind = self._resources[resource]
        object_key = entries.key_of(namespace, name)
        is_admitted = any(  # which of the two the write is, has to be known before the webhooks are called
            self.admission.selects(kind, operation, options.subresource) for operation in ("CREATE", "UPDATE")
        )
        if is_admitted and self.find(resource, namespace, name) is not None:
            return await self.update(resource, namespace, name, change, options=options), False
        if is_admitted and not options.subresource:
            new = change({})
            new["metadata"].pop("resourceVersion", None)  # `create` would reject it
            return await self.create(resource, new, dry_run=options.dry_run, author=options.author), True
        return await self._write(
            kind,
            lambda transaction: self._writer.apply(transaction, kind, object_key, change, options),
            options.dry_run,
        )

    async def update(
        self, resource: str, namespace: str, name: str, change: Change, *, options: UpdateOptions = PLAIN_UPDATE
    ) -> Entry:
        """Replace the object by `change(stored)`: PUT ignores the argument, PATCH patches it.

        A change that changes nothing returns the stored version. Raises StatusError 403, 404, 409 (also for a
        metadata.resourceVersion in the result that is not the stored one), 422, 500, and whatever `change` raises.
        """
        kind = self._resources[resource]
        if self.admission.selects(kind, "UPDATE", options.subresource):
            return await self._update_admitted(kind, entries.key_of(namespace, name), change, options)
        return await self._update(kind, entries.key_of(namespace, name), change, options)

    async def _update(self, kind: Resource, object_key: str, change: Change, options: UpdateOptions) -> Entry:
        """Update the object at `object_key` in a transaction, which is repeated after conversions by a webhook."""

        def update(transaction: Transaction) -> Entry:
            return self._writer.update(transaction, kind, object_key, change, options)

        return await self._write(kind, update, options.dry_run)

    async def _update_admitted(self, kind: Resource, object_key: str, change: Change, options: UpdateOptions) -> Entry:
        """As `_update`, with webhooks and policies: they change the result, a dry run checks it, they validate that."""
        namespace, _, name = object_key.rpartition("/")

        def changed(stored: Entry) -> tuple[Object, Object]:
            if isinstance(change, Replacement):
                change.replaced = stored
            old = self._writer.decode_for_hooks(kind, stored)
            own_copy = self._writer.decode_for_hooks(kind, stored)  # `change` may change its argument
            new = entries.deep_copy(change(own_copy))
            if not options.subresource:  # of subresources the plugins run in the write only
                self._writer.admit(kind, new, old)
            return old, new

        async def store(new: Object, revision: int, dry_run: bool) -> tuple[Entry, Object]:
            attempt = _options_at_revision(options, revision, dry_run=dry_run)
            entry = await self._update(kind, object_key, lambda _stored: new, attempt)
            return entry, entry.decode()

        steps = UpdateSteps(
            partial(self.get, kind.key, namespace, name), lambda stored: self.converted(partial(changed, stored)), store
        )
        write = AdmittedWrite(
            kind, "UPDATE", options.subresource, namespace, name, new=None, old=None, is_dry=options.dry_run
        )
        return await remote_admission.admitted_update(self.admission, write, steps)

    async def delete(
        self, resource: str, namespace: str, name: str, *, options: DeleteOptions = PLAIN_DELETE
    ) -> Deleted:
        """Delete or mark for deletion. Raises StatusError 403, 404, 409, 422, 500."""
        kind = self._resources[resource]
        object_key = entries.key_of(namespace, name)
        deletion.check_options(options)
        if self.admission.selects(kind, "DELETE", ""):
            await self._admit_delete(kind, self.get(resource, namespace, name), options)
        return await self._store.write(
            lambda transaction: self._writer.delete(transaction, kind, object_key, options), dry_run=options.dry_run
        )

    async def _admit_delete(self, kind: Resource, entry: Entry, options: DeleteOptions) -> None:
        """Let webhooks review a deletion. Raises StatusError if one denies it."""
        old = entry.decode()
        write = AdmittedWrite(
            kind, "DELETE", "", entry.namespace, entry.name, new=None, old=old, is_dry=options.dry_run
        )
        await self.admission.mutate(write)
        await self.admission.validate(write)

    async def delete_collection(
        self,
        resource: str,
        namespace: str,
        *,
        list_options: ListOptions = LATEST,
        options: DeleteOptions = PLAIN_DELETE,
    ) -> ListPage:
        """Delete the objects that `list_options` selects, in batches that are no single transaction.

        Returns them in their state before. Raises as `list` and `delete`.
        """
        page = self.list(resource, namespace, options=list_options)
        deletion.check_options(options)
        if self.admission.selects(self._resources[resource], "DELETE", ""):
            for entry in page.entries:
                await self._admit_delete(self._resources[resource], entry, options)
        for batch_start in range(0, len(page.entries), _COLLECTION_BATCH):
            batch = page.entries[batch_start : batch_start + _COLLECTION_BATCH]
            await self._store.write(partial(self._delete_batch, resource, batch, options), dry_run=options.dry_run)
        return replace(page, revision=self.revision)

    def get_scale(self, resource: str, namespace: str, name: str) -> Object:
        """The autoscaling/v1 Scale of an object.

        Raises StatusError 404, 500 (a custom resource without replicas); ConversionNeeded: call it through `converted`.
        """
        kind = self._resources[resource]
        return scale_objects.served_scale(
            kind, self._writer.decode_for_hooks(kind, self.get(resource, namespace, name))
        )

    async def update_scale(
        self, resource: str, namespace: str, name: str, change: Change, *, options: UpdateOptions = PLAIN_UPDATE
    ) -> Object:
        """Replace the Scale by `change(scale)`, of which only spec.replicas and managedFields are stored.

        Raises as `update`; StatusError 400 for a custom resource without replicas.
        """
        kind = self._resources[resource]
        object_key = entries.key_of(namespace, name)
        if not self.admission.selects(kind, "UPDATE", "scale"):
            return await self._stored_scale(kind, await self._update_through_scale(kind, object_key, change, options))

        def changed(stored: Entry) -> tuple[Object, Object]:
            obj = self._writer.decode_for_hooks(kind, stored)
            old = scale_field_managers.scale_with_managers(self.field_managers, kind, obj)
            return old, change(entries.deep_copy(old))

        async def store(new: Object, revision: int, dry_run: bool) -> tuple[Entry, Object]:
            attempt = _options_at_revision(options, revision, dry_run=dry_run)
            entry = await self._update_through_scale(kind, object_key, lambda _scale: new, attempt)
            return entry, await self._stored_scale(kind, entry)

        steps = UpdateSteps(
            partial(self.get, resource, namespace, name), lambda stored: self.converted(partial(changed, stored)), store
        )
        write = AdmittedWrite(kind, "UPDATE", "scale", namespace, name, new=None, old=None, is_dry=options.dry_run)
        return await self._stored_scale(kind, await remote_admission.admitted_update(self.admission, write, steps))

    async def _stored_scale(self, kind: Resource, entry: Entry) -> Object:
        """The Scale of a stored object. Raises StatusError 500 if a conversion webhook fails."""
        return await self.converted(lambda: scale_objects.scale_of(kind, self._writer.decode_for_hooks(kind, entry)))

    async def _update_through_scale(
        self, kind: Resource, object_key: str, change: Change, options: UpdateOptions
    ) -> Entry:
        """The entry of the object at `object_key` after `change` was applied to its Scale."""
        rescale = partial(scale_field_managers.apply_scale_change, self.field_managers, kind, change, options.author)
        return await self._update(kind, object_key, rescale, replace(options, author=None))

    @property
    def field_managers(self) -> FieldManagers:
        """The field managers of the served kinds."""
        return self._writer.field_managers

    def counts(self) -> dict[str, int]:
        """The number of objects of each stored kind, by `Resource.key`."""
        return {key: len(self._store.table(key)) for key, kind in self._resources.items() if not kind.stored_as}

    def why_unavailable(self) -> str:
        """Why no writes are accepted, empty if they are."""
        return self._store.why_unavailable()

    async def compact(self) -> int:
        """Drop the change log, as etcd's compaction does; returns the compacted revision, the oldest to watch from."""
        return await self._store.compact()

    def _delete_batch(
        self, resource: str, batch: Sequence[Entry], options: DeleteOptions, transaction: Transaction
    ) -> None:
        """Delete the entries of a batch whose objects still exist."""
        kind = self._resources[resource]
        for entry in batch:
            stored = transaction.find(kind.storage_key, entry.namespace, entry.name)
            if stored is not None and stored.uid == entry.uid:
                self._writer.delete(transaction, kind, entry.key, options)


def _options_at_revision(options: UpdateOptions, revision: int, *, dry_run: bool) -> UpdateOptions:
    """The options of a write of the version that admission saw, unless the client requires another version."""
    required_version = options.preconditions.resource_version or str(revision)
    return replace(
        options, preconditions=replace(options.preconditions, resource_version=required_version), dry_run=dry_run
    )
