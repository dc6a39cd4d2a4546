"""What a create, an update and a delete decide, inside a transaction.

`Objects` calls it through the store. The order of checks is upstream's: admission (namespaces), preconditions, the
change itself, the version it rests on, the kind's preparation, what the server gives the object (`allocation`),
validation, uniqueness.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource
from podscaler.controlplane.registry import allocation, deletion, field_managers, generated_names, namespaces, preparing
from podscaler.controlplane.registry.allocation import Allocation, Give
from podscaler.controlplane.registry.field_managers import FieldManagers
from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import SERVER, Author, DeleteOptions, UpdateOptions
from podscaler.controlplane.storage.transactions import Transaction

Admission = Callable[[Object, Object | None], None]
"""Called with an object to be written and the stored one (None on create); may complete the first or raise StatusError.
"""

Change = Callable[[Object], Object]
"""From the stored object (a copy, storage version) to the wanted one; synchronous; may raise StatusError."""


@dataclass(slots=True)
class Replacement:
    """A change to `wanted` whatever is stored: what a PUT is. It is given no copy of what it does not look at.

    Attributes:
        replaced: the version in place of which it was written, once it was.
    """

    wanted: Object
    replaced: Entry | None = None

    def __call__(self, stored: Object) -> Object:
        """As any `Change`."""
        return self.wanted


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a delete did: the newest version (if gone, the last, as of its end), and whether the object is gone."""

    entry: Entry
    gone: bool


class ObjectWriter:
    """Decides about writes.

    Args:
        resources: the served kinds by `Resource.key`; may grow.
        random: for generated names and uids.
    """

    def __init__(self, resources: Mapping[str, Resource], random: Random) -> None:
        self._resources = resources
        self._random = random
        self.field_managers = FieldManagers(resources)
        self.admissions: dict[str, list[Admission]] = {}

    def named(self, resource: Resource) -> Resource:
        """The record of two faces of one kind that stores it; what is wrong with an object is told in its name."""
        return self._resources.get(resource.storage_key, resource)

    def create(
        self,
        transaction: Transaction,
        resource: Resource,
        obj: Object,
        give: Give = allocation.nothing,
        author: Author | None = SERVER,
    ) -> Entry:
        """Store a new object and what `give` gives it. Raises StatusError 400, 403, 404 (namespace), 409, 422, 500.

        Without an author, the object says itself who manages its fields.
        """
        metadata = obj.setdefault("metadata", {})
        if not transaction.is_dry and _is_version(metadata.get("resourceVersion") or ""):
            raise api_errors.unnamed_failure("resourceVersion should not be set on objects to be created")
        self._check_namespace(transaction, resource, metadata)
        self._set_type(resource, obj)
        sent = managed = metadata.get("managedFields")
        if author is not None:
            managed = self.field_managers.created(resource, obj, author, transaction.now_ns)
        self._admit(resource, obj, None)
        self._set_name(transaction, resource, obj["metadata"])
        preparing.complete_new(resource, obj, uid=self._new_uid(), now_ns=transaction.now_ns)
        with give(obj, None, is_dry=transaction.is_dry) as grant:
            faults = preparing.new_faults(resource, obj) + field_managers.faults(managed if sent else None)
            self._refuse(resource, obj, faults)
            self._check_unique(transaction, resource, obj["metadata"])
            new = preparing.stored_form(self.named(resource), grant.filled(obj))
            field_managers.set_entries(new, managed)
            return _put(transaction, resource, new, grant)

    def apply(
        self,
        transaction: Transaction,
        resource: Resource,
        key: str,
        change: Change,
        options: UpdateOptions,
        give: Give = allocation.nothing,
    ) -> tuple[Entry, bool]:
        """Store what `change` makes of the object at `key`, or of `{}` where there is none: then it is a new one.

        Returns the object, and whether it is new. Raises as `create` and `update`.
        """
        namespace, _, name = key.rpartition("/")
        found = transaction.find(resource.storage_key, namespace, name) is not None
        if found or options.subresource:
            return self.update(transaction, resource, key, change, options, give), False
        new = change({})
        new["metadata"].pop("resourceVersion", None)
        return self.create(transaction, resource, new, give, options.author), True

    def update(
        self,
        transaction: Transaction,
        resource: Resource,
        key: str,
        change: Change,
        options: UpdateOptions,
        give: Give = allocation.nothing,
    ) -> Entry:
        """Store what `change` makes of the object at `key`, and what `give` gives it.

        Through a subresource nothing is given. Raises StatusError 404, 409, 422, 500.
        """
        stored = self._get(transaction, resource, key)
        self._check_preconditions(resource, stored, options)
        old, new = stored.decode(), _changed(stored, change)
        live, sent = field_managers.take_entries(old), field_managers.take_entries(new)
        if sent == live:
            sent = None
        if not options.subresource:
            self._admit(resource, new, old)
        preparing.check_version(resource, new, stored)
        self._set_type(resource, new)
        seen_by_managers = resource.strategy.seen_by_managers(new)
        preparing.complete_update(resource, new, old, options.subresource)
        given = allocation.nothing if options.subresource else give
        with given(new, old, is_dry=transaction.is_dry) as grant:
            faults = preparing.update_faults(resource, new, old, options.subresource) + field_managers.faults(sent)
            self._refuse(resource, new, faults)
            new = preparing.stored_form(self.named(resource), new, old)
            if deletion.is_due(resource, new, old):
                transaction.remove(stored)
                return entries.from_object(resource.storage_key, new, stored.revision)
            seen = seen_by_managers(new)
            update = field_managers.Update(old, new, seen, live or [], sent, transaction.now_ns, options.subresource)
            managed, changed = self.field_managers.settled(resource, update, options.author)
            if not (changed or grant.spec):
                return stored
            if grant.spec:  # after its managers: what the server gives belongs to none of them
                new = preparing.stored_form(self.named(resource), grant.filled(new), old)
            field_managers.set_entries(new, managed)
            return _put(transaction, resource, new, grant)

    def delete(self, transaction: Transaction, resource: Resource, key: str, options: DeleteOptions) -> Deleted:
        """Mark or remove the object at `key`. Raises StatusError 403, 404, 409."""
        stored = self._get(transaction, resource, key)
        if options.forces_unreadable:
            raise api_errors.readable(resource, stored.key, stored.name)
        namespaces.check_delete(resource, stored.name)
        if stored.name in resource.strategy.permanent_names:
            why = resource.strategy.permanent_names[stored.name]
            raise api_errors.forbidden(self.named(resource), stored.name, why)
        deletion.check_preconditions(self.named(resource), stored, options)
        plan = deletion.plan(resource, stored.decode(), options, transaction.now_ns)
        newest = stored
        if plan.marked is not None and not preparing.is_same(plan.marked, stored.decode()):
            newest = transaction.put(resource.storage_key, plan.marked)
        if plan.gone:
            newest = transaction.remove(newest)
        return Deleted(newest, plan.gone)

    def _get(self, transaction: Transaction, resource: Resource, key: str) -> Entry:
        namespace, _, name = key.rpartition("/")
        stored = transaction.find(resource.storage_key, namespace, name)
        if stored is None:
            raise api_errors.not_found(resource, name)
        return stored

    def _admit(self, resource: Resource, new: Object, old: Object | None) -> None:
        for admission in self.admissions.get(resource.key, ()):
            admission(new, old)

    def _check_namespace(self, transaction: Transaction, resource: Resource, metadata: Object) -> None:
        if not resource.namespaced:
            return
        namespace = metadata.get("namespace", "")
        if not namespace:
            raise api_errors.bad_request("an empty namespace may not be set during creation")
        served = self._resources.get(namespaces.NAMESPACES)
        if served is not None:
            name = metadata.get("name", "")
            namespaces.check_create(served, self.named(resource), transaction, namespace, name)

    def _check_unique(self, transaction: Transaction, resource: Resource, metadata: Object) -> None:
        other = transaction.find(resource.storage_key, metadata.get("namespace", ""), metadata["name"])
        if other is not None:
            is_going = "deletionTimestamp" in other.decode()["metadata"]
            raise api_errors.already_exists(resource, metadata["name"], is_going=is_going)

    def _set_type(self, resource: Resource, obj: Object) -> None:
        """Objects name the version in which they are stored, first of all their fields."""
        stored = self.named(resource)
        version = f"{stored.group}/{stored.storage_version}" if stored.group else stored.storage_version
        if obj.get("kind") == stored.kind and obj.get("apiVersion") == version:
            return
        rest = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
        obj.clear()
        obj.update({"kind": stored.kind, "apiVersion": version, **rest})

    def _set_name(self, transaction: Transaction, resource: Resource, metadata: Object) -> None:
        prefix = metadata.get("generateName", "")
        if metadata.get("name") or not prefix:
            return
        namespace = metadata.get("namespace", "")
        for _ in range(generated_names.ATTEMPTS):
            metadata["name"] = generated_names.generated_name(prefix, self._random)
            if transaction.find(resource.storage_key, namespace, metadata["name"]) is None:
                return
        raise api_errors.no_unique_name(resource, metadata["name"])

    def _new_uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _check_preconditions(self, resource: Resource, stored: Entry, options: UpdateOptions) -> None:
        wanted = options.preconditions
        named = self.named(resource)
        if wanted.uid and wanted.uid != stored.uid:
            raise api_errors.uid_conflict(named, stored.key, stored.name, wanted=wanted.uid, found=stored.uid)
        if wanted.resource_version and wanted.resource_version != str(stored.revision):
            raise api_errors.conflict(resource, stored.name)

    def _refuse(self, resource: Resource, obj: Object, errors: list[FieldError]) -> None:
        if errors:
            raise api_errors.invalid(self.named(resource), obj["metadata"].get("name", ""), errors)


def _put(transaction: Transaction, resource: Resource, new: Object, grant: Allocation) -> Entry:
    entry = transaction.put(resource.storage_key, new)
    if not transaction.is_dry:
        grant.keep()
        transaction.on_failure(grant.undo)
    return entry


def _changed(stored: Entry, change: Change) -> Object:
    if isinstance(change, Replacement):
        change.replaced = stored
        return change.wanted
    return change(stored.decode())


def _is_version(text: str) -> bool:
    """Whether a resourceVersion says anything: upstream's store takes zero, and what is no number, for none."""
    return text.isascii() and text.isdigit() and int(text) != 0
