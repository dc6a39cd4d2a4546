"""Managers and their fields, decoded from and encoded to the entries of metadata.managedFields.

    parse([{"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": ...}, ...}])

    {Manager("kubectl", "Apply"): Managed({"f:spec": ...}, "apps/v1", ...)}

Called by `updating`, `applying`, `managed_kinds` and `scale_fields`. A manager is identified by its name, operation,
subresource and (for updates) apiVersion; one that applies stays the same when it changes its version.

Source: apimachinery's managedfields package; the wire format of metav1.ManagedFieldsEntry.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podscaler.api.managed_fields import field_sets, path_elements
from podscaler.api.managed_fields.field_sets import Set

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
        parts = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.version,
            "subresource": self.subresource,
        }
        return path_elements.shown_value({name: value for name, value in parts.items() if value})


@dataclass(frozen=True, slots=True)
class Managed:
    """The fields of one manager.

    Attributes:
        fields: the set of its fields; not empty.
        version: the apiVersion in which the fields are named.
        time: the time of the last change, RFC 3339 (UTC, whole seconds); empty if unknown.
        entry: the stored entry, except for its time; None if the fields differ from the stored ones.
    """

    fields: Set
    version: str
    time: str = ""
    entry: Mapping[str, Any] | None = None

    def with_fields(self, fields: Set) -> "Managed":
        """The same with other fields."""
        return self if fields is self.fields else Managed(fields, self.version, self.time)

    def at(self, time: str) -> "Managed":
        """The same, changed at another time."""
        return Managed(self.fields, self.version, time, self.entry)


Managers = dict[Manager, Managed]


def updater(name: str, version: str, subresource: str) -> Manager:
    """The manager of creates, updates and patches."""
    return Manager(name or UNKNOWN, UPDATE, version, subresource)


def applier(name: str, subresource: str) -> Manager:
    """The manager of applies."""
    return Manager(name or UNKNOWN, APPLY, subresource=subresource)


def parse(entries: Iterable[Any]) -> Managers:
    """The managers of stored entries; the last of several entries of one manager counts."""
    managers: Managers = {}
    for entry in entries:
        operation, version = entry.get("operation", ""), entry.get("apiVersion", "")
        known_as = "" if operation == APPLY else version
        manager = Manager(entry.get("manager", ""), operation, known_as, entry.get("subresource", ""))
        managers[manager] = Managed(entry.get("fieldsV1") or {}, version, entry.get("time") or "", entry)
    return managers


def parse_sent(entries: Sequence[Any]) -> Managers:
    """The managers of a client's entries, with their sets in canonical form. Raises EntriesError."""
    for entry in entries:
        _check(entry)
    return {
        manager: replace(record, fields=_read(record.fields), entry=None) for manager, record in parse(entries).items()
    }


def is_reset(entries: Sequence[Any] | None) -> bool:
    """Whether a client removes all managers: by an empty list, or by one empty entry."""
    return entries is not None and (not entries or (len(entries) == 1 and not entries[0]))


def to_entries(managers: Iterable[tuple[Manager, Managed]]) -> Entries:
    """The entries of managers: those that apply first, then by time, name, version, subresource."""
    pairs = sorted(managers, key=lambda pair: _order(*pair))
    return [_entry(manager, managed) for manager, managed in pairs]


def without_times(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Entries without their times."""
    return [{name: value for name, value in entry.items() if name != "time"} for entry in entries]


def _order(manager: Manager, managed: Managed) -> tuple[str, str, str, str, str]:
    return manager.operation, managed.time, manager.name, managed.version, manager.subresource


def _entry(manager: Manager, managed: Managed) -> dict[str, Any]:
    """The entry of managedFields; one that did not change is written as it was read, but for the time."""
    if managed.entry is not None:
        return {**managed.entry, "time": managed.time} if managed.time else dict(managed.entry)
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": managed.version,
        "time": managed.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": field_sets.ordered(managed.fields),
        "subresource": manager.subresource,
    }
    return {name: value for name, value in entry.items() if value or name == "fieldsV1"}


def _check(entry: Any) -> None:
    if entry.get("operation") not in (APPLY, UPDATE):
        raise EntriesError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise EntriesError("apiVersion must not be empty")
    if entry.get("fieldsType") != "FieldsV1":
        raise EntriesError(f'invalid fieldsType "{entry.get("fieldsType", "")}"')


def _read(fields: Any) -> Set:
    try:
        return _read_set(fields)
    except path_elements.ElementError as error:
        raise EntriesError(str(error)) from None


def _read_set(fields: Any) -> Set:
    """The set of the nested objects of `fieldsV1`. Raises EntriesError; elements of unknown form are dropped."""
    if not isinstance(fields, dict):
        raise EntriesError("a set is no object")
    field_set: Set = {}
    for text, node in fields.items():
        element = text if text == field_sets.SELF else path_elements.parsed(text)
        if element:
            field_set[element] = _read_set(node)
    return field_set
