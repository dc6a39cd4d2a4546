"""Decides creates, updates and deletes inside a transaction (the place of kube-apiserver's generic registry store).

`registry.objects` passes the methods of `ObjectWriter` to `storage.store.Store.write`. Clients see the first error
only, so the order of the steps matters:

* create: namespace, admission, generated name, preparation (`registry.object_preparation`), allocation
  (`registry.allocation`), validation, quota, resourceVersion, uniqueness of the name;
* update: preconditions, the change itself, admission, resourceVersion, preparation, allocation, validation, quota.

A check of one kind is a hook of its `Strategy` (`api.resource.resources`); a check of all kinds goes into both methods.
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


@dataclass(slots=True)
class Replacement:
    """A `Change` for a PUT: the new object does not depend on the stored one, so the change needs no copy of that.

    Attributes:
        new: the new object, which the write may change in place.
        replaced: set by the write: the stored version that was replaced; None before.
    """

    new: Object
    replaced: Entry | None = None

    def __call__(self, stored: Object) -> Object:
        """See `Change`."""
        return self.new


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

    An `object_key` is an `Entry.key`: `NAMESPACE/NAME`, or `NAME` for cluster-scoped kinds.

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

        Raises:
            StatusError: 400, 403, 404 (its namespace, or a role that it names, does not exist), 409, 422, 500.
            ConversionNeeded: a webhook has to convert the object first.
        """
        metadata = obj.setdefault("metadata", {})
        self._check_namespace(transaction, resource, metadata)
        self._convert_for_hooks(resource, obj)
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):  # before managedFields: no manager owns them
            metadata.pop(name, None)
        sent_entries = metadata.get("managedFields")
        managed_fields = sent_entries
        if author is not None:  # without those sent entries that cannot be parsed
            managed_fields = self.field_managers.entries_of_new(resource, obj, author, transaction.now_ns)
        self.admit(resource, obj, None)
        self._set_name(transaction, resource, obj["metadata"])
        uid = uid or str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        object_preparation.complete_new(resource, obj, uid=uid, now_ns=transaction.now_ns)
        allocate = self._allocator(resource, "")
        with allocate(obj, None, is_dry=transaction.is_dry) as allocation:
            errors = object_preparation.validate_new(resource, obj)
            errors += field_managers.validate_entries(managed_fields if sent_entries else None)
            self._check_no_errors(resource, obj, errors)
            if self.charge is not None:
                self.charge(transaction, resource, obj, None)
            self._check_new(transaction, resource, obj["metadata"])
            new = object_preparation.stored_form(self.stored_kind(resource), allocation.applied_to(obj))
            field_managers.set_entries(new, managed_fields)
            return _store_allocated(transaction, resource, new, allocation)

    def apply(
        self, transaction: Transaction, resource: Resource, object_key: str, change: Change, options: UpdateOptions
    ) -> tuple[Entry, bool]:
        """Update the object by `change`, or create `change({})` if there is none; a subresource creates nothing.

        Returns the entry, and whether it is new. Raises as `create` and `update`.
        """
        if options.subresource or _find_object(transaction, resource, object_key) is not None:
            return self.update(transaction, resource, object_key, change, options), False
        new = change({})
        new["metadata"].pop("resourceVersion", None)  # `create` would reject it
        return self.create(transaction, resource, new, options.author), True

    def update(
        self, transaction: Transaction, resource: Resource, object_key: str, change: Change, options: UpdateOptions
    ) -> Entry:
        """Replace the object by `change(stored)`, which is changed in place; returns the newest entry.

        An update that removes the last finalizer of an object that is being deleted removes the object.

        Raises:
            StatusError: 403, 404, 409, 422, 500.
            ConversionNeeded: a webhook has to convert an object first.
            Exception: whatever `change` raises.
        """
        stored = _get_object(transaction, resource, object_key)
        self._check_preconditions(resource, stored, options)
        old, new = self.decode_for_hooks(resource, stored), self._apply_change(resource, stored, change)
        stored_entries, sent_entries = field_managers.take_entries(old), field_managers.take_entries(new)
        if sent_entries == stored_entries:
            sent_entries = None
        self.admit(resource, new, old, options.subresource)
        object_preparation.check_version(resource, new, stored)
        self._convert_for_hooks(resource, new)
        to_managed_form = resource.strategy.seen_by_managers(new)  # reads fields as sent, before they are overridden
        object_preparation.complete_update(resource, new, old, options.subresource)
        allocate = self._allocator(resource, options.subresource)
        with allocate(new, old, is_dry=transaction.is_dry) as allocation:
            errors = object_preparation.validate_update(resource, new, old, options.subresource)
            self._check_no_errors(resource, new, errors + field_managers.validate_entries(sent_entries))
            if self.charge is not None and not options.subresource:
                self.charge(transaction, resource, new, old)
            new = object_preparation.stored_form(self.stored_kind(resource), new, old)
            if deletion.is_last_finalizer_removed(resource, new, old):
                transaction.remove(stored)
                return entries.from_object(resource.storage_key, new, stored.revision)
            old_to_compare, is_stored_outdated = self._in_storage_version(resource, old, stored)
            update = field_managers.Update(
                old=old_to_compare,
                new=new,
                new_as_managed=to_managed_form(new),
                stored_entries=stored_entries or [],
                sent_entries=sent_entries,
                now_ns=transaction.now_ns,
                subresource=options.subresource,
            )
            managed_fields, is_changed = self.field_managers.entries_after(resource, update, options.author)
            if not (is_changed or allocation.spec or is_stored_outdated):  # the resourceVersion stays
                return stored
            if allocation.spec:  # after the managers: allocated fields belong to none of them
                new = object_preparation.stored_form(self.stored_kind(resource), allocation.applied_to(new), old)
            field_managers.set_entries(new, managed_fields)
            return _store_allocated(transaction, resource, new, allocation)

    def delete(self, transaction: Transaction, resource: Resource, object_key: str, options: DeleteOptions) -> Deleted:
        """Mark or remove the object. Raises StatusError 403, 404, 409."""
        stored = _get_object(transaction, resource, object_key)
        if options.forces_unreadable:  # for objects that cannot be read, and this one can be
            raise api_errors.unsafe_delete_conflict(resource, stored.key, stored.name)
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

    def decode_for_hooks(self, resource: Resource, stored: Entry) -> Object:
        """A copy of a stored object in the version in which the functions of its `Resource` get it.

        Raises ConversionNeeded, with the revision of `stored`.
        """
        obj = stored.decode()
        if resource.strategy.convert is not None:
            try:
                resource.strategy.convert(obj)
            except ConversionNeeded as needed:
                needed.stored_revision = stored.revision
                raise
        return obj

    def _apply_change(self, resource: Resource, stored: Entry, change: Change) -> Object:
        """`change(stored)`, where a `Replacement` also gets the replaced version. Raises as `change`."""
        if not isinstance(change, Replacement):
            return change(self.decode_for_hooks(resource, stored))
        change.replaced = stored
        may_be_decided_again = resource.strategy.convert is not None  # after a conversion, with the object as sent
        return semantics.copied(change.new) if may_be_decided_again else change.new

    def _in_storage_version(self, resource: Resource, old: Object, stored: Entry) -> tuple[Object, bool]:
        """The old object in the storage version without managedFields, and whether it is stored in another version.

        Raises ConversionNeeded.
        """
        if resource.strategy.convert is None:
            return old, False
        converted = self.decode_for_hooks(self.stored_kind(resource), stored)
        field_managers.take_entries(converted)
        return converted, converted["apiVersion"] != stored.decode()["apiVersion"]

    def _allocator(self, resource: Resource, subresource: str) -> Allocator:
        """The allocator of a kind; a write through a subresource allocates nothing."""
        return allocate_nothing if subresource else self.allocators.get(resource.key, allocate_nothing)

    def admit(self, resource: Resource, new: Object, old: Object | None, subresource: str = "") -> None:
        """Call the admission plugins of a kind or subresource, which may change `new`.

        Raises whatever they raise: StatusError 403; 404 for a missing role, 500 for a missing name.
        """
        for admission in self.admissions.get(f"{resource.key}/{subresource}" if subresource else resource.key, ()):
            admission(new, old)

    def _check_namespace(self, transaction: Transaction, resource: Resource, metadata: Object) -> None:
        """Raise StatusError 400 without a namespace, 404 if it does not exist, 403 if it is being deleted.

        Where Namespaces are not served, every namespace exists. Source: the admission plugin NamespaceLifecycle.
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

    def _check_new(self, transaction: Transaction, resource: Resource, metadata: Object) -> None:
        """Raise StatusError 500 for a resourceVersion, 409 if there is an object of that name."""
        # a dry run does not reach the storage, which checks the version in kube-apiserver
        if not transaction.is_dry and _is_resource_version_set(metadata.get("resourceVersion") or ""):
            raise api_errors.error_without_reason("resourceVersion should not be set on objects to be created")
        existing = transaction.find(resource.storage_key, metadata.get("namespace", ""), metadata["name"])
        if existing is not None:
            is_being_deleted = "deletionTimestamp" in existing.decode()["metadata"]
            raise api_errors.already_exists(resource, metadata["name"], is_being_deleted=is_being_deleted)

    def _convert_for_hooks(self, resource: Resource, obj: Object) -> None:
        """Bring an object, in place, into the version in which the functions of its `Resource` get it.

        If no webhook converts the kind, only kind and apiVersion are set, as the first fields. Raises ConversionNeeded.
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

    def _check_no_errors(self, resource: Resource, obj: Object, errors: list[FieldError]) -> None:
        """Raise StatusError 422 if there are errors."""
        if errors:
            raise api_errors.invalid(self.stored_kind(resource), obj["metadata"].get("name", ""), errors)


def _find_object(transaction: Transaction, resource: Resource, object_key: str) -> Entry | None:
    """The newest version of the object at `object_key`; None if there is none."""
    namespace, _, name = object_key.rpartition("/")
    return transaction.find(resource.storage_key, namespace, name)


def _get_object(transaction: Transaction, resource: Resource, object_key: str) -> Entry:
    """As `_find_object`. Raises StatusError 404 if there is no object."""
    stored = _find_object(transaction, resource, object_key)
    if stored is None:
        raise api_errors.not_found(resource, object_key.rpartition("/")[2])
    return stored


def _store_allocated(transaction: Transaction, resource: Resource, new: Object, allocation: Allocation) -> Entry:
    """Store an object and keep its allocated values; a dry run keeps nothing."""
    entry = transaction.put(resource.storage_key, new)
    if not transaction.is_dry:
        allocation.commit()
        transaction.on_failure(allocation.undo)
    return entry


def _is_resource_version_set(resource_version: str) -> bool:
    """Whether a resourceVersion counts as set: kube-apiserver's storage treats zero and invalid numbers as unset."""
    return resource_version.isascii() and resource_version.isdigit() and int(resource_version) != 0
