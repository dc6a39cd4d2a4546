"""Decodes field managers and their fields from the entries of metadata.managedFields, and encodes them.

    parse([{"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": ...}, ...}])

    {Manager("kubectl", "Apply"): ManagedFields({"f:spec": ...}, "apps/v1", ...)}

Called by `updating`, `applying`, `managed_kinds` and `scale_fields`. A manager is identified by its name, operation,
subresource and (for updates) apiVersion; one that applies stays the same when it changes its version. A new member of
entries: `parse` and `_to_entry`.

Source: apimachinery's managedfields package; the wire format of metav1.ManagedFieldsEntry.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podscaler.api.managed_fields import field_sets, path_elements
from podscaler.api.managed_fields.field_sets import FieldSet

Entries = list[dict[str, Any]]
"""metadata.managedFields as JSON-ready data."""

UNKNOWN = "unknown"
APPLY = "Apply"
UPDATE = "Update"


class EntriesError(ValueError):
    """Entries of a client are invalid; str() is the reason."""


@dataclass(frozen=True, slots=True)
class Manager:
    """The identity of a manager.

    Attributes:
        name: the field manager that the client names (`kubectl`).
        operation: APPLY or UPDATE.
        version: the apiVersion of an updater's writes; empty for one that applies.
        subresource: the written subresource; empty for the object itself.
    """

    name: str
    operation: str
    version: str = ""
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """The text by which kube-apiserver sorts managers."""
        identity = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.version,
            "subresource": self.subresource,
        }
        return path_elements.value_text({name: value for name, value in identity.items() if value})


@dataclass(frozen=True, slots=True)
class ManagedFields:
    """The fields of one manager.

    Attributes:
        fields: the set of its fields; not empty.
        version: the apiVersion in which the fields are named.
        time: the time of the last change, RFC 3339 (UTC, whole seconds); empty if unknown.
        entry: the stored entry, except for its time; None if the fields differ from the stored ones.
    """

    fields: FieldSet
    version: str
    time: str = ""
    entry: Mapping[str, Any] | None = None

    def with_fields(self, fields: FieldSet) -> "ManagedFields":
        """The same with other fields."""
        return self if fields is self.fields else ManagedFields(fields, self.version, self.time)

    def at(self, time: str) -> "ManagedFields":
        """The same, changed at another time."""
        return ManagedFields(self.fields, self.version, time, self.entry)


Managers = dict[Manager, ManagedFields]
"""Manager -> its fields."""


def updater(name: str, version: str, subresource: str) -> Manager:
    """The manager of creates, updates and patches; UNKNOWN stands for an empty name."""
    return Manager(name or UNKNOWN, UPDATE, version, subresource)


def applier(name: str, subresource: str) -> Manager:
    """The manager of applies; UNKNOWN stands for an empty name."""
    return Manager(name or UNKNOWN, APPLY, subresource=subresource)


def parse(entries: Iterable[Any]) -> Managers:
    """The managers of stored entries (objects; not validated further); of entries of one manager the last counts."""
    managers: Managers = {}
    for entry in entries:
        operation, version = entry.get("operation", ""), entry.get("apiVersion", "")
        manager_version = "" if operation == APPLY else version
        manager = Manager(entry.get("manager", ""), operation, manager_version, entry.get("subresource", ""))
        managers[manager] = ManagedFields(entry.get("fieldsV1") or {}, version, entry.get("time") or "", entry)
    return managers


def parse_sent(entries: Sequence[Any]) -> Managers:
    """The managers of a client's entries, with their sets in canonical form. Raises EntriesError."""
    for entry in entries:
        _check_entry(entry)
    return {
        manager: replace(managed, fields=_canonical_set(managed.fields), entry=None)
        for manager, managed in parse(entries).items()
    }


def is_reset(entries: Sequence[Any] | None) -> bool:
    """Whether a client removes all managers: by an empty list, or by one empty entry; False for None (none sent)."""
    if entries is None:
        return False
    return not entries or (len(entries) == 1 and not entries[0])


def to_entries(managers: Iterable[tuple[Manager, ManagedFields]]) -> Entries:
    """The entries of (manager, its fields): those that apply first, then by time, name, version, subresource."""
    sorted_managers = sorted(managers, key=lambda manager_with_fields: _sort_key(*manager_with_fields))
    return [_to_entry(manager, managed) for manager, managed in sorted_managers]


def without_times(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Entries without their times, by which the registry compares entries."""
    return [{name: value for name, value in entry.items() if name != "time"} for entry in entries]


def _sort_key(manager: Manager, managed: ManagedFields) -> tuple[str, str, str, str, str]:
    return manager.operation, managed.time, manager.name, managed.version, manager.subresource


def _to_entry(manager: Manager, managed: ManagedFields) -> dict[str, Any]:
    """The entry of managedFields; one that did not change is written as it was read, but for the time."""
    if managed.entry is not None:
        return {**managed.entry, "time": managed.time} if managed.time else dict(managed.entry)
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": managed.version,
        "time": managed.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": field_sets.sort_elements(managed.fields),
        "subresource": manager.subresource,
    }
    return {name: value for name, value in entry.items() if value or name == "fieldsV1"}


def _check_entry(entry: Any) -> None:
    """Raise EntriesError, with kube-apiserver's message, for an entry that is not valid."""
    if entry.get("operation") not in (APPLY, UPDATE):
        raise EntriesError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise EntriesError("apiVersion must not be empty")
    if entry.get("fieldsType") != "FieldsV1":
        raise EntriesError(f'invalid fieldsType "{entry.get("fieldsType", "")}"')


def _canonical_set(fields_v1: Any) -> FieldSet:
    """The set of a client's `fieldsV1`. Raises EntriesError."""
    try:
        return _canonical_node(fields_v1)
    except path_elements.ElementError as error:
        raise EntriesError(str(error)) from None


def _canonical_node(fields_v1: Any) -> FieldSet:
    """The node of a member of `fieldsV1`. Raises EntriesError, ElementError; elements of unknown form are dropped."""
    if not isinstance(fields_v1, dict):
        raise EntriesError("a set is no object")
    field_set: FieldSet = {}
    for element_text, node in fields_v1.items():
        element = element_text if element_text == field_sets.SELF else path_elements.parse(element_text)
        if element:
            field_set[element] = _canonical_node(node)
    return field_set
