"""Computes metadata.managedFields (which manager owns which fields) at every write, by `api.managed_fields`.

`registry.object_writer` calls it inside a transaction, `registry.scale_field_managers` for Scales,
`apiserver.handlers.patching` and `server_side_apply` for apply patches. An *entry* is an element of managedFields. For
example kubectl sets spec.replicas of a Deployment: the entry of the manager `kubectl` gains `f:spec.f:replicas`, the
entry of the former owner loses it.

Differs: objects are compared after the fields that a write cannot change (the status, for a write of the object) were
carried over; kube-apiserver compares what the client sent without those fields. The result is the same.

Source: the API server's use of field managers in its handlers, and its strategies' reset fields.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from podscaler.api.crd import webhook_conversion
from podscaler.api.crd.webhook_conversion import ConversionNeeded
from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError
from podscaler.api.managed_fields import field_sets, managed_kinds, manager_names, message_types, structural_types
from podscaler.api.managed_fields.field_sets import FieldSet
from podscaler.api.managed_fields.field_types import FieldType
from podscaler.api.managed_fields.managed_kinds import ManagedKind
from podscaler.api.managed_fields.managers import Entries, without_times
from podscaler.api.managed_fields.scale_fields import ScaleFields
from podscaler.api.managed_fields.updating import ConversionError, Versions
from podscaler.api.resource.resources import Object, Resource, Version
from podscaler.api.schema import canonical, schema, unstructured
from podscaler.api.text.json_text import DecodeError
from podscaler.base.clock import rfc3339
from podscaler.controlplane.registry import object_preparation
from podscaler.controlplane.storage.entries import deep_copy
from podscaler.controlplane.storage.options import Author

# Sets of fields that a write leaves out: a write of the object owns no status, one of the status no spec.
_STATUS_FIELDS = field_sets.of(("f:status",))
_SPEC_FIELDS = field_sets.of(("f:spec",))
_SPEC_AND_METADATA_FIELDS = field_sets.of(("f:spec",), ("f:metadata",))
_IGNORED_IN_STATUS_WRITES = {
    "deployments.apps": field_sets.of(("f:spec",), ("f:metadata", "f:labels")),
    "pods": field_sets.of(("f:spec",), ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")),
}
"""By `Resource.key`; other built-in kinds ignore `_SPEC_FIELDS`. A new exception of a kind: a line here."""
FindVersion = Callable[[str], Version | None]
"""From an apiVersion (`apps/v1`) to the version of a kind, None if it is not served."""
_ANY_OBJECT = structural_types.of_kind({})
"""The type of kinds without a schema."""
SUBRESOURCE_MAX_BYTES = 256
"""The longest `subresource` that a client may send in an entry."""
_DEFAULT_REPLICAS_PATH = ("f:spec", "f:replicas")


@dataclass(frozen=True, slots=True)
class Update:
    """An update before it is stored.

    Attributes:
        old, new: the object before and after, as stored (storage version), without managedFields.
        new_as_managed: `new`, with overridden fields as they were sent (`Strategy.seen_by_managers`); the same dict if
            there are none.
        stored_entries: the entries of the stored object.
        sent_entries: the entries that the client sent and that differ from the stored ones; None if it sent none.
        now_ns: the time of the write, nanoseconds since the epoch.
        subresource: the subresource of the request, empty for the object itself.
    """

    old: Object
    new: Object
    new_as_managed: Object
    stored_entries: Sequence[Any]
    sent_entries: Sequence[Any] | None
    now_ns: int
    subresource: str = ""


class FieldManagers:
    """Computes the managedFields of all served kinds; `version` arguments are apiVersions (`apps/v1`).

    Args:
        resources: the served kinds by `Resource.key`; the mapping may change.
    """

    def __init__(self, resources: Mapping[str, Resource]) -> None:
        self._resources = resources

    def kind(self, resource: Resource, subresource: str = "") -> ManagedKind:
        """How fields are tracked in writes through a subresource (`status`), or (empty) of the object itself."""
        find = partial(self._find_version, resource)
        ignored = _ignored_fields(resource, subresource)
        versions = Versions(partial(_find_type, find), partial(_convert, find), ignored)
        return ManagedKind(versions, partial(_empty_object, find), subresource)

    def entries_of_new(self, resource: Resource, obj: Object, author: Author, now_ns: int) -> Entries:
        """The entries of a new object (decoded, defaulted, with its apiVersion), including those that the client sent.

        Raises ConversionNeeded.
        """
        kind = self.kind(resource)
        stored_version = str(obj["apiVersion"])
        version = author.api_version or stored_version
        sent_entries = obj["metadata"].get("managedFields")
        new = _stored_form(self._find_version(resource, stored_version), obj)
        if version != stored_version:
            new = kind.versions.convert(new, stored_version, version)
        return managed_kinds.entries_after_create(
            kind, new, sent_entries, kind.writer(author.manager, version, rfc3339(now_ns))
        )

    def entries_after(self, resource: Resource, update: Update, author: Author | None) -> tuple[Sequence[Any], bool]:
        """The entries after an update, and whether it changes the object or its entries (other than their times).

        An object without entries is not tracked: it gets none.

        Args:
            resource: the kind.
            update: the update.
            author: the writer; None if the sent entries replace the stored ones.

        Raises ConversionNeeded.
        """
        is_same = object_preparation.is_same(update.new, update.old)
        if author is None:
            entries = update.stored_entries if update.sent_entries is None else update.sent_entries
        else:
            sent_entries = None if update.subresource else update.sent_entries  # as upstream, which ignores them there
            base_entries = managed_kinds.entries_before_update(update.stored_entries, sent_entries) or []
            is_unaffected = is_same and update.new_as_managed is update.new and base_entries is update.stored_entries
            entries = base_entries
            if base_entries and not is_unaffected:
                entries = self._entries_after_update_or_stored(resource, update, base_entries, author)
        return entries, not (is_same and _equal_except_times(entries, update.stored_entries))

    def _entries_after_update_or_stored(
        self, resource: Resource, update: Update, base_entries: Sequence[Any], author: Author
    ) -> Sequence[Any]:
        """The entries after an update; the stored ones if a conversion webhook fails, as upstream keeps them then."""
        try:
            return self._entries_after_update(resource, update, base_entries, author)
        except ConversionNeeded as needed:
            if webhook_conversion.has_failed(needed):
                return update.stored_entries
            needed.is_optional = True
            raise

    def _entries_after_update(
        self, resource: Resource, update: Update, base_entries: Sequence[Any], author: Author
    ) -> Entries:
        """The entries `base_entries` after an update by `author`, compared in the version that the author wrote.

        Raises ConversionNeeded.
        """
        kind = self.kind(resource, update.subresource)
        version = author.api_version or self.storage_version(resource)
        old, new = (self._in_version(resource, obj, version) for obj in (update.old, update.new_as_managed))
        writer = kind.writer(author.manager, version, rfc3339(update.now_ns))
        return managed_kinds.entries_after_update(kind, old, new, base_entries, writer)

    def _in_version(self, resource: Resource, obj: Object, version: str) -> Object:
        """An object in `version`; it may have been stored when another one was the storage version."""
        stored_version = str(obj["apiVersion"])
        if stored_version == version:
            return obj
        if self._find_version(resource, stored_version) is None:
            stored_version = self.storage_version(resource)
            obj = {**obj, "apiVersion": stored_version}
        return self.kind(resource).versions.convert(obj, stored_version, version)

    def stored_object(self, resource: Resource, obj: Object, version: str) -> Object:
        """A copy of a stored object in `version` without managedFields, for apply patches.

        Raises KeyError for a version that is not served, ConversionNeeded.
        """
        target = self._find_version(resource, version)
        if target is None:
            raise KeyError(version)
        copy = deep_copy(obj)
        take_entries(copy)
        return _stored_form(target, target.from_storage(copy))

    def storage_version(self, resource: Resource) -> str:
        """The apiVersion in which objects of a kind are stored."""
        stored_kind = self._resources.get(resource.storage_key, resource)
        return api_version(stored_kind, stored_kind.storage_version)

    def scale_fields(self, resource: Resource) -> ScaleFields:
        """How ownership of the replicas maps between an object and its Scale; `resource` is that of the request."""
        siblings = self._resources_stored_together(resource)
        versions = frozenset(api_version(kind, served.version) for kind in siblings for served in kind.versions)
        return ScaleFields(versions, _replicas_path(resource), api_version(resource, resource.versions[0].version))

    def _find_version(self, resource: Resource, version: str) -> Version | None:
        """The version of a kind, also of another API group that is stored together with it; None if not served."""
        own_version = _version_in(resource, version)
        if own_version is not None:
            return own_version
        candidates = (_version_in(sibling, version) for sibling in self._resources_stored_together(resource))
        return next((candidate for candidate in candidates if candidate is not None), None)

    def _resources_stored_together(self, resource: Resource) -> list[Resource]:
        """All resources whose objects are stored together, including the given one."""
        return [kind for kind in self._resources.values() if kind.storage_key == resource.storage_key]


def take_entries(obj: Object) -> Entries | None:
    """Remove metadata.managedFields from an object, in place, and return them; None if it has none."""
    metadata = obj.get("metadata") or {}
    entries: Entries | None = metadata.pop("managedFields", None)
    return entries


def set_entries(obj: Object, entries: Sequence[Any] | None) -> None:
    """Set metadata.managedFields of an object, in place; without entries the field is removed."""
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def validate_entries(entries: Sequence[Mapping[str, Any]] | None) -> list[FieldError]:
    """The field errors of managers and subresources in managedFields that a client sent; empty for valid ones."""
    errors: list[FieldError] = []
    for index, managed_fields_entry in enumerate(entries or ()):
        field_path = f"metadata.managedFields[{index}]"
        errors += manager_names.errors(f"{field_path}.manager", managed_fields_entry.get("manager", ""))
        if len(managed_fields_entry.get("subresource", "").encode()) > SUBRESOURCE_MAX_BYTES:
            errors.append(field.too_long(f"{field_path}.subresource", SUBRESOURCE_MAX_BYTES))
    return errors


def _equal_except_times(entries: Sequence[Mapping[str, Any]], other_entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether entries are equal except for their times."""
    return entries == other_entries or without_times(entries) == without_times(other_entries)


def _version_in(resource: Resource, version: str) -> Version | None:
    """The version of a resource, None if its own group does not serve it."""
    return next((served for served in resource.versions if api_version(resource, served.version) == version), None)


def api_version(resource: Resource, version: str) -> str:
    """The apiVersion of a version of a kind: `apps/v1`, `v1`."""
    return f"{resource.group}/{version}" if resource.group else version


def _ignored_fields(resource: Resource, subresource: str) -> FieldSet:
    """The fields of which a write through `subresource` becomes no owner."""
    if not resource.has_status:
        return {}
    if subresource == "status":
        if resource.is_custom:
            return _SPEC_AND_METADATA_FIELDS
        return _IGNORED_IN_STATUS_WRITES.get(resource.key, _SPEC_FIELDS)
    return {} if subresource else _STATUS_FIELDS


def _replicas_path(resource: Resource) -> tuple[str, ...]:
    """The path of the replicas of a kind in managedFields, such as ("f:spec", "f:replicas")."""
    custom_path = resource.scale.custom_path if resource.scale is not None else ""
    return tuple(f"f:{name}" for name in custom_path.split(".") if name) or _DEFAULT_REPLICAS_PATH


def _find_type(find: FindVersion, version: str) -> FieldType | None:
    """The types of a version's fields; None if the version is not served."""
    served = find(version)
    if served is None:
        return None
    if served.fields_type is not None:
        return served.fields_type
    return message_types.of_message(served.message) if schema.find_message(served.message) else _ANY_OBJECT


def _empty_object(find: FindVersion, version: str) -> Object:
    """The empty object of a version."""
    return _stored_form(find(version), {})


def _stored_form(version: Version | None, obj: Object) -> Object:
    """A decoded object in its stored form: fields in the schema's order, without empty values."""
    has_schema = version is not None and schema.find_message(version.message)
    return canonical.canonical(obj, version.message) if version is not None and has_schema else obj


def _convert(find: FindVersion, obj: Object, version: str, target_version: str) -> Object:
    """An object of `version` converted to `target_version`.

    Raises:
        KeyError: for a version that is not served.
        ConversionError: for an object that cannot be decoded.
        ConversionNeeded: for an object that a webhook has to convert.
    """
    source, target = find(version), find(target_version)
    if source is None or target is None:
        raise KeyError(target_version)
    copy = deep_copy(obj)
    if schema.find_message(source.message):
        try:
            copy = unstructured.decode(copy, source.message).obj
        except DecodeError as error:
            kind = f"{version}, Kind={obj.get('kind', '')}"
            raise ConversionError(f"unable to convert unstructured object to {kind}: {error}") from None
    return _stored_form(target, target.from_storage(source.to_storage(copy)))
