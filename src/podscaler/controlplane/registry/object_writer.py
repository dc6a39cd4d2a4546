"""Decides creates, updates and deletes inside a transaction (the place of kube-apiserver's generic registry store).

`Objects` calls it through the store. The order of checks is kube-apiserver's, as clients see the first error only:
preconditions, the change itself, admission, the resourceVersion, the kind's preparation (`object_preparation`),
allocation (`allocation`), validation, uniqueness.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from podscaler.api.crd.webhook_conversion import ConversionNeeded
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import api_errors, semantics
from podscaler.api.resource.resources import Object, Resource
from podscaler.base.errors import Cause
from podscaler.controlplane.registry import deletion, field_managers, generated_names, object_preparation
from podscaler.controlplane.registry.allocation import Allocation, Allocator, allocate_nothing
from podscaler.controlplane.registry.field_managers import FieldManagers
from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import SERVER, Author, DeleteOptions, UpdateOptions
from podscaler.controlplane.storage.transactions import Transaction

Admission = Callable[[Object, Object | None], None]
"""An admission plugin: gets the object to write and the stored one (None on create); may change the first or raise
StatusError."""
Charge = Callable[[Transaction, Resource, Object, Object | None], None]
"""Charges a validated object, which replaces the stored one (None on create), to quotas in the same transaction; may
raise StatusError 403."""
Change = Callable[[Object], Object]
"""From the stored object (a copy, storage version) to the new one; synchronous; may raise StatusError."""

NAMESPACES = "namespaces"
PERMANENT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


@dataclass(slots=True)
class Replacement:
    """A `Change` for a PUT: the new object does not depend on the stored one, which is not decoded for it.

    Attributes:
        wanted: the new object.
        replaced: the version that was replaced, None before the write.
    """

    wanted: Object
    replaced: Entry | None = None

    def __call__(self, stored: Object) -> Object:
        """See `Change`."""
        return self.wanted


@dataclass(frozen=True, slots=True)
class Deleted:
    """The result of a delete.

    Attributes:
        entry: the newest version; for a removed object its last one with the resourceVersion of the deletion.
        gone: whether the object was removed; False if it was only marked.
    """

    entry: Entry
    gone: bool


class ObjectWriter:
    """Decides the writes of all served kinds; every method gets the transaction of one write.

    Args:
        resources: the served kinds by `Resource.key`; the mapping may change.
        random: for generated names and uids.

    Attributes:
        field_managers: computes the managedFields.
        admissions: the admission plugins by `Resource.key`, or `KEY/SUBRESOURCE`, called in order.
        allocators: the allocators by `Resource.key`; kinds without one allocate nothing.
        charge: charges objects to quotas; None if nothing is charged.
    """

    def __init__(self, resources: Mapping[str, Resource], random: Random) -> None:
        self._resources = resources
        self._random = random
        self.field_managers = FieldManagers(resources)
        self.admissions: dict[str, list[Admission]] = {}
        self.allocators: dict[str, Allocator] = {}
        self.charge: Charge | None = None

    def stored_kind(self, resource: Resource) -> Resource:
        """The kind under which the objects of a kind are stored (Events of two API groups are); errors name it."""
        return self._resources.get(resource.storage_key, resource)

    def create(
        self, transaction: Transaction, resource: Resource, obj: Object, author: Author | None = SERVER, uid: str = ""
    ) -> Entry:
        """Store a new object, which is changed in place.

        Args:
            transaction: the transaction of the write.
            resource: the kind.
            obj: the object in the storage version.
            author: the writer, who becomes the manager of all fields; None to store the object's own managedFields.
            uid: the object's uid; empty to generate one.

        Raises StatusError 400, 403, 404 (its namespace does not exist), 409, 422, 500.
        """
        metadata = obj.setdefault("metadata", {})
        if not transaction.is_dry and _is_version(metadata.get("resourceVersion") or ""):
            raise api_errors.error_without_reason("resourceVersion should not be set on objects to be created")
        self._check_namespace(transaction, resource, metadata)
        self._set_type(resource, obj)
        sent = managed_fields = metadata.get("managedFields")
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):  # of a webhook; nobody manages them
            metadata.pop(name, None)
        if author is not None:
            managed_fields = self.field_managers.entries_of_new(resource, obj, author, transaction.now_ns)
        self.admit(resource, obj, None)
        self._set_name(transaction, resource, obj["metadata"])
        uid = uid or str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        object_preparation.complete_new(resource, obj, uid=uid, now_ns=transaction.now_ns)
        allocate = self.allocators.get(resource.key, allocate_nothing)
        with allocate(obj, None, is_dry=transaction.is_dry) as allocation:
            errors = object_preparation.validate_new(resource, obj)
            errors += field_managers.validate_entries(managed_fields if sent else None)
            self._raise_invalid(resource, obj, errors)
            self._check_unique(transaction, resource, obj["metadata"])
            if self.charge is not None:
                self.charge(transaction, resource, obj, None)
            new = object_preparation.stored_form(self.stored_kind(resource), allocation.applied_to(obj))
            field_managers.set_entries(new, managed_fields)
            return _put(transaction, resource, new, allocation)

    def apply(
        self, transaction: Transaction, resource: Resource, key: str, change: Change, options: UpdateOptions
    ) -> tuple[Entry, bool]:
        """Update the object at `key` by `change`, or create `change({})` if there is none.

        Returns the entry, and whether it is new. Raises as `create` and `update`.
        """
        namespace, _, name = key.rpartition("/")
        exists = transaction.find(resource.storage_key, namespace, name) is not None
        if exists or options.subresource:
            return self.update(transaction, resource, key, change, options), False
        new = change({})
        new["metadata"].pop("resourceVersion", None)
        return self.create(transaction, resource, new, options.author), True

    def update(
        self, transaction: Transaction, resource: Resource, key: str, change: Change, options: UpdateOptions
    ) -> Entry:
        """Replace the object at `key` by `change(stored)`; nothing is allocated for a subresource.

        Raises StatusError 404, 409, 422, 500, and whatever `change` raises.
        """
        stored = self._get(transaction, resource, key)
        self._check_preconditions(resource, stored, options)
        old, new = self.prepared(resource, stored), self._changed(resource, stored, change)
        live_entries, sent_entries = field_managers.take_entries(old), field_managers.take_entries(new)
        if sent_entries == live_entries:
            sent_entries = None
        self.admit(resource, new, old, options.subresource)
        object_preparation.check_version(resource, new, stored)
        self._set_type(resource, new)
        seen_by_managers = resource.strategy.seen_by_managers(new)
        object_preparation.complete_update(resource, new, old, options.subresource)
        allocator = None if options.subresource else self.allocators.get(resource.key)
        with (allocator or allocate_nothing)(new, old, is_dry=transaction.is_dry) as allocation:
            errors = object_preparation.validate_update(resource, new, old, options.subresource)
            self._raise_invalid(resource, new, errors + field_managers.validate_entries(sent_entries))
            if self.charge is not None and not options.subresource:
                self.charge(transaction, resource, new, old)
            new = object_preparation.stored_form(self.stored_kind(resource), new, old)
            if deletion.is_last_finalizer_removed(resource, new, old):
                transaction.remove(stored)
                return entries.from_object(resource.storage_key, new, stored.revision)
            new_as_managed = seen_by_managers(new)
            old_to_compare, is_outdated = self._in_storage_version(resource, old, stored)
            update = field_managers.Update(
                old=old_to_compare,
                new=new,
                seen=new_as_managed,
                stored_entries=live_entries or [],
                sent=sent_entries,
                now_ns=transaction.now_ns,
                subresource=options.subresource,
            )
            managed_fields, is_changed = self.field_managers.entries_after(resource, update, options.author)
            if not (is_changed or allocation.spec or is_outdated):
                return stored
            if allocation.spec:  # after the managers: allocated fields belong to none of them
                new = object_preparation.stored_form(self.stored_kind(resource), allocation.applied_to(new), old)
            field_managers.set_entries(new, managed_fields)
            return _put(transaction, resource, new, allocation)

    def delete(self, transaction: Transaction, resource: Resource, key: str, options: DeleteOptions) -> Deleted:
        """Mark or remove the object at `key`. Raises StatusError 403, 404, 409."""
        stored = self._get(transaction, resource, key)
        if options.forces_unreadable:
            raise api_errors.unsafe_delete_conflict(resource, stored.key, stored.name)
        if resource.key == NAMESPACES and stored.name in PERMANENT_NAMESPACES:
            raise api_errors.forbidden(resource, stored.name, "this namespace may not be deleted")
        if stored.name in resource.strategy.permanent_names:
            reason = resource.strategy.permanent_names[stored.name]
            raise api_errors.forbidden(self.stored_kind(resource), stored.name, reason)
        deletion.check_preconditions(self.stored_kind(resource), stored, options)
        plan = deletion.plan(resource, stored.decode(), options, transaction.now_ns)
        newest = stored
        if plan.marked is not None and not object_preparation.is_same(plan.marked, stored.decode()):
            newest = transaction.put(resource.storage_key, plan.marked)
        if plan.gone:
            newest = transaction.remove(newest)
        return Deleted(newest, plan.gone)

    def prepared(self, resource: Resource, stored: Entry) -> Object:
        """A copy of a stored object in the version in which the hooks of a kind get it. Raises ConversionNeeded."""
        obj = stored.decode()
        if resource.strategy.convert is not None:
            try:
                resource.strategy.convert(obj)
            except ConversionNeeded as needed:
                needed.stored_revision = stored.revision
                raise
        return obj

    def _changed(self, resource: Resource, stored: Entry, change: Change) -> Object:
        """`change(stored)`, without decoding the stored object for a `Replacement`."""
        if isinstance(change, Replacement):
            change.replaced = stored
            return change.wanted if resource.strategy.convert is None else semantics.copied(change.wanted)
        return change(self.prepared(resource, stored))

    def _in_storage_version(self, resource: Resource, old: Object, stored: Entry) -> tuple[Object, bool]:
        """The old object in the storage version without managedFields, and whether it is stored in another version."""
        if resource.strategy.convert is None:
            return old, False
        converted = self.prepared(self.stored_kind(resource), stored)
        field_managers.take_entries(converted)
        return converted, converted["apiVersion"] != stored.decode()["apiVersion"]

    def _get(self, transaction: Transaction, resource: Resource, key: str) -> Entry:
        """The stored object at `key`. Raises StatusError 404."""
        namespace, _, name = key.rpartition("/")
        stored = transaction.find(resource.storage_key, namespace, name)
        if stored is None:
            raise api_errors.not_found(resource, name)
        return stored

    def admit(self, resource: Resource, new: Object, old: Object | None, subresource: str = "") -> None:
        """Call the admission plugins of a kind or subresource, which may change `new`. Raises StatusError 403, 422."""
        for admission in self.admissions.get(f"{resource.key}/{subresource}" if subresource else resource.key, ()):
            admission(new, old)

    def _check_namespace(self, transaction: Transaction, resource: Resource, metadata: Object) -> None:
        """Raise StatusError 404 if the namespace does not exist, 403 if it is being deleted.

        Source: admission plugin NamespaceLifecycle.
        """
        if not resource.namespaced:
            return
        namespace = metadata.get("namespace", "")
        if not namespace:
            raise api_errors.bad_request("an empty namespace may not be set during creation")
        namespace_kind = self._resources.get(NAMESPACES)
        if namespace_kind is None:
            return
        namespace_entry = transaction.find(NAMESPACES, "", namespace)
        if namespace_entry is None:
            raise api_errors.not_found(namespace_kind, namespace)
        stored_namespace = namespace_entry.decode()
        if (
            stored_namespace["metadata"].get("deletionTimestamp")
            or (stored_namespace.get("status") or {}).get("phase") == "Terminating"
        ):
            reason = f"unable to create new content in namespace {namespace} because it is being terminated"
            message = f"namespace {namespace} is being terminated"
            cause = Cause(reason="NamespaceTerminating", message=message, field="metadata.namespace")
            raise api_errors.forbidden(self.stored_kind(resource), metadata.get("name", ""), reason, cause=cause)

    def _check_unique(self, transaction: Transaction, resource: Resource, metadata: Object) -> None:
        """Raise StatusError 409 if there is an object of that name."""
        existing = transaction.find(resource.storage_key, metadata.get("namespace", ""), metadata["name"])
        if existing is not None:
            is_being_deleted = "deletionTimestamp" in existing.decode()["metadata"]
            raise api_errors.already_exists(resource, metadata["name"], is_being_deleted=is_being_deleted)

    def _set_type(self, resource: Resource, obj: Object) -> None:
        """Set kind and apiVersion of the storage version, as the first fields of the object.

        An object of a kind that a webhook converts is converted to the kind's own version instead. Raises
        ConversionNeeded if that conversion is not known yet.
        """
        if resource.strategy.convert is not None:
            resource.strategy.convert(obj)
            return
        stored = self.stored_kind(resource)
        version = f"{stored.group}/{stored.storage_version}" if stored.group else stored.storage_version
        if obj.get("kind") == stored.kind and obj.get("apiVersion") == version:
            return
        other_fields = {name: field_value for name, field_value in obj.items() if name not in ("kind", "apiVersion")}
        obj.clear()
        obj.update({"kind": stored.kind, "apiVersion": version, **other_fields})

    def _set_name(self, transaction: Transaction, resource: Resource, metadata: Object) -> None:
        """Generate a name from generateName if the object has none. Raises StatusError 409 if all tried ones exist."""
        prefix = metadata.get("generateName", "")
        if metadata.get("name") or not prefix:
            return
        namespace = metadata.get("namespace", "")
        for _ in range(generated_names.ATTEMPTS):
            metadata["name"] = generated_names.generated_name(prefix, self._random)
            if transaction.find(resource.storage_key, namespace, metadata["name"]) is None:
                return
        raise api_errors.no_unique_name(resource, metadata["name"])

    def _check_preconditions(self, resource: Resource, stored: Entry, options: UpdateOptions) -> None:
        """Raise StatusError 409 if the uid or resourceVersion that the client requires is not the stored one."""
        uid, resource_version = options.preconditions.uid, options.preconditions.resource_version
        if uid and uid != stored.uid:
            stored_kind = self.stored_kind(resource)
            raise api_errors.uid_conflict(stored_kind, stored.key, stored.name, expected_uid=uid, actual_uid=stored.uid)
        if resource_version and resource_version != str(stored.revision):
            raise api_errors.conflict(resource, stored.name)

    def _raise_invalid(self, resource: Resource, obj: Object, errors: list[FieldError]) -> None:
        """Raise StatusError 422 if there are errors."""
        if errors:
            raise api_errors.invalid(self.stored_kind(resource), obj["metadata"].get("name", ""), errors)


def _put(transaction: Transaction, resource: Resource, new: Object, allocation: Allocation) -> Entry:
    """Store an object and keep its allocated values; a dry run keeps nothing."""
    entry = transaction.put(resource.storage_key, new)
    if not transaction.is_dry:
        allocation.commit()
        transaction.on_failure(allocation.undo)
    return entry


def _is_version(resource_version: str) -> bool:
    """Whether a resourceVersion is set: kube-apiserver's store treats zero and invalid numbers as unset."""
    return resource_version.isascii() and resource_version.isdigit() and int(resource_version) != 0
