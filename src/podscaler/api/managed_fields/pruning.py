"""Removes from an applied object the fields that its manager applied before, does not apply now, and nobody else owns.

Called by `applying` after the merge.

Source: structured-merge-diff's Updater (prune) and RemoveItems.
"""

from typing import Any

from podscaler.api.managed_fields import extracting, field_sets, field_types
from podscaler.api.managed_fields.field_sets import Set
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType
from podscaler.api.managed_fields.managers import Managed, Managers
from podscaler.api.managed_fields.updating import ConversionError, Object, Versions


class Pruning:
    """Prunes the object of one apply.

    Args:
        managers: the managers, with the fields of the new configuration.
        version: the apiVersion of the configuration.
        versions: the versions of the kind.
    """

    def __init__(self, managers: Managers, version: str, versions: Versions) -> None:
        self._version = version
        self._versions = versions
        self._owned: dict[str, Set] = {}
        for managed in managers.values():
            self._owned[managed.version] = field_sets.union(self._owned.get(managed.version, {}), managed.fields)

    def pruned(self, merged_object: Object, last: Managed | None) -> Object:
        """`merged_object` without the fields of `last` that nobody owns now. Raises ConversionError.

        Args:
            merged_object: the merged object, in the version of the configuration.
            last: the fields of the last configuration; None at the first apply of the manager.
        """
        kind = self._versions.types(last.version) if last and last.fields else None
        if last is None or kind is None:
            return merged_object
        whole = self._converted(
            merged_object, self._version, last.version, "failed to convert merged object to last applied version"
        )
        rest = without(whole, extracting.with_named_fields(last.fields, kind), kind) or {}
        rest = self._with_owned(whole, rest, last.version)
        rest = _with_dangling(whole, rest, last.fields, kind)
        return self._converted(rest, last.version, self._version)

    def _with_owned(self, whole: Object, rest: Object, version: str) -> Object:
        """`rest` with those fields of `whole` that any manager owns, version by version, beginning with `version`."""
        at = version
        for owned_version in sorted(self._owned, key=lambda owned: (owned != version, owned)):
            kind = self._versions.types(owned_version)
            if kind is None:
                continue
            failed = "failed add back owned items: failed to convert {} object at version " + owned_version
            whole = self._converted(whole, at, owned_version, failed.format("merged"))
            rest = self._converted(rest, at, owned_version, failed.format("pruned"))
            rest = _with_fields(whole, rest, self._owned[owned_version], kind)
            at = owned_version
        return self._converted(rest, at, version)

    def _converted(self, obj: Object, version: str, target_version: str, failed: str = "") -> Object:
        """An object in another version. Raises ConversionError, with `failed` before its text."""
        if version == target_version:
            return obj
        try:
            return self._versions.convert(obj, version, target_version)
        except ConversionError as error:
            described = error.within(failed) if failed else error
            raise described.within("failed to prune fields") from None


def _with_fields(whole: Object, rest: Object, fields: Set, kind: FieldType) -> Object:
    """`whole` reduced to the fields of `rest` and `fields`."""
    kept_fields = field_sets.union(_named_fields(rest, kind), extracting.with_named_fields(fields, kind))
    return without(whole, field_sets.difference(_named_fields(whole, kind), kept_fields), kind) or {}


def _with_dangling(whole: Object, rest: Object, last: Set, kind: FieldType) -> Object:
    """`whole` without the fields that the last configuration had and `rest` lacks."""
    removed_fields = field_sets.difference(_named_fields(whole, kind), _named_fields(rest, kind))
    removed_fields = field_sets.intersection(removed_fields, extracting.with_named_fields(last, kind))
    return without(whole, removed_fields, kind) or {}


def _named_fields(obj: Object, kind: FieldType) -> Set:
    return extracting.with_named_fields(extracting.field_set(obj, kind), kind)


def without(value: Any, fields: Set, kind: FieldType) -> Any:
    """A copy of `value`, which shares parts with it, without the paths of `fields`; an emptied map or list is None.

    Source: structured-merge-diff's RemoveItems.
    """
    if not fields:
        return value
    shape = field_types.shape_of(kind, value)
    if shape.map is not None:
        return _map(value, fields, shape.map)
    if shape.scalar or shape.list is None:
        return value
    return _list(value, fields, shape.list)


def _map(value: Any, fields: Set, kind: MapType) -> dict[str, Any] | None:
    """A map without the members in `fields`; None if it stays as it is, or nothing is left."""
    if not isinstance(value, dict) or not value or kind.atomic:
        return None
    result: dict[str, Any] = {}
    for name, item in value.items():
        element = f"f:{name}"
        if element in fields and field_sets.is_member(fields[element]):
            continue
        result[name] = without(item, field_sets.below(fields, element), kind.child(name) or FieldType(scalar="untyped"))
    return result or None


def _list(value: Any, fields: Set, kind: ListType) -> list[Any] | None:
    """A list without the elements in `fields`; None if it stays as it is, or nothing is left."""
    if not isinstance(value, list) or not value or kind.atomic:
        return None
    result: list[Any] = []
    for item in value:
        try:
            element = field_types.item_element(kind, item)
        except field_types.AtomError:
            result.append(item)
            continue
        if element in fields and field_sets.is_member(fields[element]):
            continue
        result.append(without(item, field_sets.below(fields, element), kind.element()))
    return result or None
