"""Who owns what after an object was created, updated or patched.

Called by whoever stores objects, with the object before and after.

Rules: what a write changed belongs to its writer from now on, and to nobody else who owned it; what it removed belongs
to nobody; what it left alone stays as it was. Sets are read in the version that their managers wrote; managers of
versions that are no longer served are forgotten. More than ten updaters are too many: the oldest become one.

Source: structured-merge-diff's Updater; apimachinery's field managers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from podscaler.api.managed_fields import capping, comparing, field_sets
from podscaler.api.managed_fields.comparing import FieldChanges
from podscaler.api.managed_fields.field_sets import Set
from podscaler.api.managed_fields.managers import Managed, Manager, Managers
from podscaler.api.managed_fields.types import FieldType

Object = dict[str, Any]

SERVERS_OWN: Set = {
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
"""What nobody owns, because it is the server's."""


class ConversionError(ValueError):
    """An object that cannot be had in another version; the text says why, in upstream's words."""

    def within(self, doing: str) -> "ConversionError":
        """The same, with what was being done before it."""
        return ConversionError(f"{doing}: {self}")


@dataclass(frozen=True, slots=True)
class Versions:
    """An object's kind in all its versions.

    Attributes:
        types: by apiVersion, how an object is typed in it.
        convert: an object (in the form in which it is stored) from one apiVersion to another. Raises ConversionError
            for one that no decoder has seen yet.
        ignored: what a write through this path cannot change, whatever it sends.
    """

    types: Callable[[str], FieldType | None]
    convert: Callable[[Object, str, str], Object]
    ignored: Set


@dataclass(frozen=True, slots=True)
class FieldWriter:
    """Who writes, in which version, and when.

    Attributes:
        now: as RFC 3339, whole seconds.
    """

    manager: Manager
    version: str
    now: str


def updated(managers: Managers, old: Object, new: Object, writer: FieldWriter, versions: Versions) -> Managers:
    """Who manages what after `writer` made `new` of `old`.

    Args:
        managers: before.
        old, new: in the writer's version, in the form in which they are stored; `old` is the empty object on create.
        writer: who writes.
        versions: of the kind.
    """
    changes = Changes(old, new, writer.version, versions)
    after = taken_away(managers, changes, but=writer.manager)
    own = _own(after.pop(writer.manager, None), changes, writer)
    if own is not None:
        after[writer.manager] = own
    return capping.capped(after)


def _own(before: Managed | None, changes: "Changes", writer: FieldWriter) -> Managed | None:
    """What the writer manages afterwards, None for nothing; its time is new if it wrote anything."""
    found = changes.of(writer.version)
    if found is None:
        return before
    written = field_sets.difference(found.written, SERVERS_OWN)
    kept = before or Managed({}, writer.version)
    fields = field_sets.union(field_sets.difference(kept.fields, found.removed), written)
    if not fields:
        return None
    kept = kept.with_fields(fields)
    return kept.at(writer.now) if written else kept


class Changes:
    """What a write changed, as seen in each version; computed when it is asked for."""

    def __init__(self, old: Object, new: Object, version: str, versions: Versions) -> None:
        self._old = old
        self._new = new
        self._version = version
        self._versions = versions
        self._known: dict[str, FieldChanges | None] = {}

    def of(self, version: str) -> FieldChanges | None:
        """The change in a version, None where that is not served."""
        if version not in self._known:
            self._known[version] = self._compare(version)
        return self._known[version]

    def _compare(self, version: str) -> FieldChanges | None:
        kind = self._versions.types(version)
        if kind is None:
            return None
        old, new = self._old, self._new
        if version != self._version:
            old = self._converted(old, version, "old")
            new = self._converted(new, version, "new")
        return comparing.compare(old, new, kind).without(self._versions.ignored)

    def _converted(self, obj: Object, version: str, which: str) -> Object:
        try:
            return self._versions.convert(obj, self._version, version)
        except ConversionError as error:
            raise error.within(f"failed to convert {which} object") from None


def taken_away(managers: Managers, changes: Changes, *, but: Manager | None = None) -> Managers:
    """The managers without what a write changed or removed, except for `but`, who keeps everything."""
    after: Managers = {}
    for manager, managed in managers.items():
        found = changes.of(managed.version)
        if found is None:
            continue
        fields = managed.fields
        if manager != but:
            fields = field_sets.difference(field_sets.difference(fields, found.written), found.removed)
        if fields:
            after[manager] = managed.with_fields(fields)
    return after
