"""Updates the managers of an object's fields after a create, update or patch.

Called by `managed_kinds`, with the object before and after; `applying` and `pruning` use `Changes` and `Versions`. A
field that the API server begins to set: UNOWNED_FIELDS.

Rules: the writer becomes the only owner of the fields that it changed; removed fields have no owner; the owners of
other fields stay. The sets of a manager are compared in the version that it wrote; managers of versions that are no
longer served are dropped. The number of updaters is limited (`cap_updaters`).

Source: structured-merge-diff's Updater; apimachinery's field managers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from podscaler.api.managed_fields import comparing, field_sets
from podscaler.api.managed_fields.comparing import FieldChanges
from podscaler.api.managed_fields.field_sets import FieldSet
from podscaler.api.managed_fields.field_types import FieldType
from podscaler.api.managed_fields.managers import UPDATE, ManagedFields, Manager, Managers

Object = dict[str, Any]

_UPDATERS_MAX = 10
"""Where there are more managers of updates (updaters), the oldest ones of a version are merged into one, _ANCIENT."""

_ANCIENT = "ancient-changes"
"""The name of the manager of such a merged entry."""

UNOWNED_FIELDS: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        field_sets.SELF: {},
        "f:clusterName": {},
        "f:creationTimestamp": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:name": {},
        "f:namespace": {},
        "f:resourceVersion": {},
        "f:selfLink": {},
        "f:uid": {},
    },
}
"""The fields that the API server sets, which have no owner."""


class ConversionError(ValueError):
    """An object cannot be converted to another version; str() is kube-apiserver's message."""

    def within(self, context: str) -> "ConversionError":
        """The same error with a context before its text, such as `failed to convert old object`."""
        return ConversionError(f"{context}: {self}")


@dataclass(frozen=True, slots=True)
class Versions:
    """A kind in all its versions.

    Attributes:
        find_type: from an apiVersion to the type of objects; None for a version that is not served.
        convert: converts an object in stored form from one apiVersion to another. Raises ConversionError.
        ignored: the fields that the written resource cannot change, such as the status through the object itself.
    """

    find_type: Callable[[str], FieldType | None]
    convert: Callable[[Object, str, str], Object]
    ignored: FieldSet

    def type_of(self, version: str) -> FieldType:
        """The type in a served version. Raises KeyError for another."""
        field_type = self.find_type(version)
        if field_type is None:
            raise KeyError(version)
        return field_type


@dataclass(frozen=True, slots=True)
class FieldWriter:
    """A manager that writes.

    Attributes:
        manager: its identity.
        version: the apiVersion of the write.
        now: the time of the write, RFC 3339 in whole seconds.
    """

    manager: Manager
    version: str
    now: str


def update_managers(managers: Managers, old: Object, new: Object, writer: FieldWriter, versions: Versions) -> Managers:
    """The managers after a write that is no apply.

    Args:
        managers: the managers of the old object.
        old, new: the stored objects in the writer's version; `old` is the empty object on create.
        writer: the writing manager.
        versions: the versions of the kind.

    Raises:
        ConversionError: an object cannot be converted to the version of another manager.
    """
    changes = Changes(old, new, writer.version, versions)
    managers_after = without_changed_fields(managers, changes, exempt=writer.manager)
    written_fields = _fields_of_writer(managers_after.pop(writer.manager, None), changes, writer)
    if written_fields is not None:
        managers_after[writer.manager] = written_fields
    return cap_updaters(managers_after)


def _fields_of_writer(
    managed_before: ManagedFields | None, changes: "Changes", writer: FieldWriter
) -> ManagedFields | None:
    """The writer's fields after the write (None without fields), with the time of the write if it set a field.

    They stay as they were if the writer's version is not served. Raises ConversionError.
    """
    field_changes = changes.of(writer.version)
    if field_changes is None:
        return managed_before
    written_fields = field_sets.difference(field_changes.written, UNOWNED_FIELDS)
    earlier = managed_before or ManagedFields({}, writer.version)
    fields = field_sets.union(field_sets.difference(earlier.fields, field_changes.removed), written_fields)
    if not fields:
        return None
    managed_after = earlier.with_fields(fields)
    return managed_after.at(writer.now) if written_fields else managed_after


class Changes:
    """The changed fields of a write in each version, computed on demand."""

    def __init__(self, old: Object, new: Object, version: str, versions: Versions) -> None:
        self._old = old
        self._new = new
        self._version = version
        self._versions = versions
        self._changes_by_version: dict[str, FieldChanges | None] = {}

    def of(self, version: str) -> FieldChanges | None:
        """The changed fields in a version, without the ignored ones; None if it is not served.

        Raises ConversionError.
        """
        if version not in self._changes_by_version:
            self._changes_by_version[version] = self._compare_in_version(version)
        return self._changes_by_version[version]

    def _compare_in_version(self, version: str) -> FieldChanges | None:
        """As `of`, without the cache."""
        field_type = self._versions.find_type(version)
        if field_type is None:
            return None
        old, new = self._old, self._new
        if version != self._version:
            old = self._convert_object(old, version, "old")
            new = self._convert_object(new, version, "new")
        return comparing.compare(old, new, field_type).without(self._versions.ignored)

    def _convert_object(self, obj: Object, version: str, object_name: str) -> Object:
        """The object in another version. Raises ConversionError, which calls it the `old` or `new` object."""
        try:
            return self._versions.convert(obj, self._version, version)
        except ConversionError as error:
            raise error.within(f"failed to convert {object_name} object") from None


def without_changed_fields(managers: Managers, changes: Changes, *, exempt: Manager) -> Managers:
    """The managers without the fields that a write changed or removed; the manager `exempt` keeps all of its fields.

    Managers without any field left, and those of versions that are not served, are dropped. Raises ConversionError.
    """
    managers_after: Managers = {}
    for manager, managed in managers.items():
        field_changes = changes.of(managed.version)
        if field_changes is None:
            continue
        fields = managed.fields
        if manager != exempt:
            fields = field_sets.difference(field_sets.difference(fields, field_changes.written), field_changes.removed)
        if fields:
            managers_after[manager] = managed.with_fields(fields)
    return managers_after


def cap_updaters(managers: Managers) -> Managers:
    """The managers, changed in place, with at most _UPDATERS_MAX updaters, or one for each version if these are more.

    Source: apimachinery's cap on managers.
    """
    updaters = [manager for manager in managers if manager.operation == UPDATE]
    excess = len(updaters) - _UPDATERS_MAX
    if excess <= 0:
        return managers
    updaters.sort(key=lambda manager: (managers[manager].time, manager.identifier))
    oldest_by_version: dict[str, Manager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        version = managers[manager].version
        if version in oldest_by_version:
            _merge_into_ancient(managers, manager, oldest_by_version[version])
            excess -= 1
        else:
            oldest_by_version[version] = manager
    return managers


def _merge_into_ancient(managers: Managers, manager: Manager, oldest: Manager) -> None:
    """Merge an updater into the manager _ANCIENT of its version, in place; a new one takes the fields of `oldest`.

    Updaters are merged by time, so that the time of the last one is that of the entry.
    """
    managed = managers[manager]
    ancient_manager = Manager(_ANCIENT, UPDATE, managed.version)
    ancient = managers.get(ancient_manager)
    if ancient is None:
        ancient = managers.pop(oldest)
    del managers[manager]
    fields = field_sets.union(managed.fields, ancient.fields)
    managers[ancient_manager] = ManagedFields(fields, managed.version, managed.time)
