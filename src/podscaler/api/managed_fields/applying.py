"""Server-side apply: a configuration merged into an object, and who owns what afterwards.

Called by whoever serves apply patches.

Rules: the configuration's fields belong to its manager; where it changes fields of others, these are conflicts, or
(forced) taken from them; fields that the manager applied before, does not apply now, and nobody else owns are removed.

Source: structured-merge-diff's Updater.Apply; apimachinery's field managers.
"""

from dataclasses import dataclass
from typing import Any

from podscaler.api.managed_fields import checking, extracting, field_sets, merging, removing
from podscaler.api.managed_fields.conflicts import ConflictsError
from podscaler.api.managed_fields.field_sets import Set
from podscaler.api.managed_fields.managers import Managed, Managers
from podscaler.api.managed_fields.types import FieldType
from podscaler.api.managed_fields.updating import (
    SERVERS_OWN,
    Changes,
    ConversionError,
    FieldWriter,
    Object,
    Versions,
    taken_away,
)


class ConfigurationError(ValueError):
    """A configuration that does not fit its type; the text says where."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a configuration.

    Attributes:
        obj: the merged object, None where it is what was there.
        managers: afterwards.
    """

    obj: Object | None
    managers: Managers


def applied(
    managers: Managers, live: Object, config: Object, writer: FieldWriter, versions: Versions, *, force: bool
) -> Applied:
    """The outcome of applying `config`.

    Args:
        managers: before.
        live: in the writer's version, in the form in which it is stored; the empty object where there is none.
        config: as the client wrote it, in the writer's version.
        writer: who applies.
        versions: of the kind.
        force: take fields from others rather than refuse.

    Raises:
        ConfigurationError: for a configuration that does not fit.
        ConflictsError: where it would change fields of others and may not.
        ConversionError: where the merged object cannot be had in the version of another manager.
    """
    kind = _type(versions, writer.version)
    found = checking.faults(config, kind)
    if found:
        raise ConfigurationError(checking.summary(found))
    last = managers.get(writer.manager)
    fields = field_sets.without_trees(extracting.field_set(config, kind), versions.ignored)
    mine = Managed(fields, writer.version, last.time if last else "")
    claimed = {**managers, writer.manager: mine}
    new = _Pruning(claimed, writer.version, versions).pruned(merging.merged(live, config, kind), last)
    changes = Changes(live, new, writer.version, versions)
    if not force:
        _refuse_conflicts(claimed, changes, writer)
    after = taken_away(claimed, changes, but=writer.manager)
    changed = live != new
    _settle(after, writer, last, changed=changed)
    return Applied(new if changed else None, after)


def _settle(after: Managers, writer: FieldWriter, last: Managed | None, *, changed: bool) -> None:
    """Leave the applier what is not the server's, with the time of its last change."""
    mine = after.pop(writer.manager, None)
    fields = field_sets.difference(mine.fields, SERVERS_OWN) if mine else {}
    if not fields:
        return
    time = writer.now if changed else (last.time if last else "")
    if last is not None and (last.fields, last.version, last.time) == (fields, writer.version, time):
        after[writer.manager] = last
    else:
        after[writer.manager] = Managed(fields, writer.version, time)


def _refuse_conflicts(managers: Managers, changes: Changes, writer: FieldWriter) -> None:
    sets: dict[Any, Set] = {}
    for manager, managed in managers.items():
        found = changes.of(managed.version)
        if manager != writer.manager and found is not None:
            fields = field_sets.intersection(managed.fields, found.written)
            if fields:
                sets[manager] = fields
    if sets:
        raise ConflictsError(sets)


def _type(versions: Versions, version: str) -> FieldType:
    """The type in a version that is served. Raises KeyError for another."""
    kind = versions.types(version)
    if kind is None:
        raise KeyError(version)
    return kind


class _Pruning:
    """Removes what a manager applied before and does not apply now, where nobody else owns it.

    Args:
        managers: with what the applier claims now.
        version: of the applier.
        versions: of the kind.
    """

    def __init__(self, managers: Managers, version: str, versions: Versions) -> None:
        self._version = version
        self._versions = versions
        self._owned: dict[str, Set] = {}
        for managed in managers.values():
            self._owned[managed.version] = field_sets.union(self._owned.get(managed.version, {}), managed.fields)

    def pruned(self, merged: Object, last: Managed | None) -> Object:
        """`merged` without what `last` had and nobody has now."""
        kind = self._versions.types(last.version) if last and last.fields else None
        if last is None or kind is None:
            return merged
        whole = self._converted(
            merged, self._version, last.version, "failed to convert merged object to last applied version"
        )
        rest = removing.without(whole, extracting.with_named_fields(last.fields, kind), kind) or {}
        rest = self._with_owned(whole, rest, last.version)
        rest = _with_dangling(whole, rest, last.fields, kind)
        return self._converted(rest, last.version, self._version)

    def _with_owned(self, whole: Object, rest: Object, version: str) -> Object:
        """Put back what somebody owns; the version of the last configuration goes first, so that others can convert."""
        at = version
        for each in sorted(self._owned, key=lambda one: (one != version, one)):
            kind = self._versions.types(each)
            if kind is None:
                continue
            failed = "failed add back owned items: failed to convert {} object at version " + each
            whole = self._converted(whole, at, each, failed.format("merged"))
            rest = self._converted(rest, at, each, failed.format("pruned"))
            rest = _with_fields(whole, rest, self._owned[each], kind)
            at = each
        return self._converted(rest, at, version)

    def _converted(self, obj: Object, version: str, wanted: str, failed: str = "") -> Object:
        """An object in another version; `failed` says what it is that fails where it cannot be had."""
        if version == wanted:
            return obj
        try:
            return self._versions.convert(obj, version, wanted)
        except ConversionError as error:
            told = error.within(failed) if failed else error
            raise told.within("failed to prune fields") from None


def _with_fields(whole: Object, rest: Object, fields: Set, kind: FieldType) -> Object:
    """`whole` without what neither `rest` nor `fields` has."""
    kept = field_sets.union(_named(rest, kind), extracting.with_named_fields(fields, kind))
    return removing.without(whole, field_sets.difference(_named(whole, kind), kept), kind) or {}


def _with_dangling(whole: Object, rest: Object, last: Set, kind: FieldType) -> Object:
    """`whole` without what `rest` does not have and the last configuration had."""
    gone = field_sets.difference(_named(whole, kind), _named(rest, kind))
    gone = field_sets.intersection(gone, extracting.with_named_fields(last, kind))
    return removing.without(whole, gone, kind) or {}


def _named(obj: Object, kind: FieldType) -> Set:
    return extracting.with_named_fields(extracting.field_set(obj, kind), kind)
