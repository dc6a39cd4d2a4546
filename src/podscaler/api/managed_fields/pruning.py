"""Removes from an applied object the fields that its manager applied before, does not apply now, and no other owns.

Called by `applying` after the merge, in three steps: all fields of the last configuration are removed, those that any
manager owns are added back, and so are those that were lost with them, but not in the last configuration (dangling).

Source: structured-merge-diff's Updater (prune, addBackOwnedItems, addBackDanglingItems) and RemoveItems.
"""

from typing import Any

from podscaler.api.managed_fields import extracting, field_sets, field_types
from podscaler.api.managed_fields.field_sets import Set
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType
from podscaler.api.managed_fields.managers import Managed, Managers
from podscaler.api.managed_fields.updating import ConversionError, Object, Versions


class Pruner:
    """Prunes the object of one apply.

    Args:
        managers: the managers, with the fields of the new configuration.
        version: the apiVersion of the configuration.
        versions: the versions of the kind.
    """

    def __init__(self, managers: Managers, version: str, versions: Versions) -> None:
        self._version = version
        self._versions = versions
        self._owned_fields: dict[str, Set] = {}
        for managed in managers.values():
            self._owned_fields[managed.version] = field_sets.union(
                self._owned_fields.get(managed.version, {}), managed.fields
            )

    def prune(self, merged_object: Object, last_applied: Managed | None) -> Object:
        """`merged_object` without the fields of `last_applied` that no manager owns now.

        It is unchanged if the version of `last_applied` is not served any more. Raises ConversionError.

        Args:
            merged_object: the merged object, in the version of the configuration.
            last_applied: the fields of the last configuration; None at the first apply of the manager.
        """
        field_type = self._versions.find_type(last_applied.version) if last_applied and last_applied.fields else None
        if last_applied is None or field_type is None:
            return merged_object
        whole_object = self._convert_object(
            merged_object,
            self._version,
            last_applied.version,
            "failed to convert merged object to last applied version",
        )
        last_fields = extracting.with_named_fields(last_applied.fields, field_type)
        pruned_object = without(whole_object, last_fields, field_type) or {}
        pruned_object = self._add_back_owned(whole_object, pruned_object, last_applied.version)
        pruned_object = _add_back_dangling(whole_object, pruned_object, last_applied.fields, field_type)
        return self._convert_object(pruned_object, last_applied.version, self._version)

    def _add_back_owned(self, whole_object: Object, pruned_object: Object, version: str) -> Object:
        """The pruned object with those fields of the whole one that any manager owns.

        Their fields are added back version by version, beginning with `version`, which both objects have before and
        after. Raises ConversionError.
        """
        current_version = version
        for owned_version in sorted(self._owned_fields, key=lambda owned: (owned != version, owned)):
            field_type = self._versions.find_type(owned_version)
            if field_type is None:
                continue
            error_context = "failed add back owned items: failed to convert {} object at version " + owned_version
            whole_object = self._convert_object(
                whole_object, current_version, owned_version, error_context.format("merged")
            )
            pruned_object = self._convert_object(
                pruned_object, current_version, owned_version, error_context.format("pruned")
            )
            pruned_object = _add_back_fields(whole_object, pruned_object, self._owned_fields[owned_version], field_type)
            current_version = owned_version
        return self._convert_object(pruned_object, current_version, version)

    def _convert_object(self, obj: Object, version: str, target_version: str, error_context: str = "") -> Object:
        """An object in another version. Raises ConversionError, with the context before its text."""
        if version == target_version:
            return obj
        try:
            return self._versions.convert(obj, version, target_version)
        except ConversionError as error:
            described_error = error.within(error_context) if error_context else error
            raise described_error.within("failed to prune fields") from None


def _add_back_fields(whole_object: Object, pruned_object: Object, fields: Set, field_type: FieldType) -> Object:
    """The whole object reduced to the fields of the pruned one and to `fields`."""
    kept_fields = field_sets.union(
        _named_fields(pruned_object, field_type), extracting.with_named_fields(fields, field_type)
    )
    dropped_fields = field_sets.difference(_named_fields(whole_object, field_type), kept_fields)
    return without(whole_object, dropped_fields, field_type) or {}


def _add_back_dangling(whole_object: Object, pruned_object: Object, last_fields: Set, field_type: FieldType) -> Object:
    """The whole object without the fields that the last configuration had and the pruned object lacks."""
    removed_fields = field_sets.difference(
        _named_fields(whole_object, field_type), _named_fields(pruned_object, field_type)
    )
    removed_fields = field_sets.intersection(removed_fields, extracting.with_named_fields(last_fields, field_type))
    return without(whole_object, removed_fields, field_type) or {}


def _named_fields(obj: Object, field_type: FieldType) -> Set:
    """All fields of an object, with their declared ancestors."""
    return extracting.with_named_fields(extracting.field_set(obj, field_type), field_type)


def without(value: Any, fields: Set, field_type: FieldType) -> Any:
    """A copy of `value`, which shares parts with it, without the paths of `fields`; None for an emptied map or list.

    Source: structured-merge-diff's RemoveItems.
    """
    if not fields:
        return value
    shape = field_types.shape_of(field_type, value)
    if shape.map is not None:
        return _map_without(value, fields, shape.map)
    if shape.scalar or shape.list is None:
        return value
    return _list_without(value, fields, shape.list)


def _map_without(value: Any, fields: Set, map_type: MapType) -> dict[str, Any] | None:
    """A map without the members in `fields`. None if nothing is left, and, as upstream, for an empty or atomic map."""
    if not isinstance(value, dict) or not value or map_type.atomic:
        return None
    remaining: dict[str, Any] = {}
    for name, item in value.items():
        element = f"f:{name}"
        if element in fields and field_sets.is_member(fields[element]):
            continue
        remaining[name] = without(
            item, field_sets.below(fields, element), map_type.child(name) or FieldType(scalar="untyped")
        )
    return remaining or None


def _list_without(value: Any, fields: Set, list_type: ListType) -> list[Any] | None:
    """As `_map_without`, for the items of a list; items that have no path element stay."""
    if not isinstance(value, list) or not value or list_type.atomic:
        return None
    remaining: list[Any] = []
    for item in value:
        try:
            element = field_types.item_element(list_type, item)
        except field_types.AtomError:
            remaining.append(item)
            continue
        if element in fields and field_sets.is_member(fields[element]):
            continue
        remaining.append(without(item, field_sets.below(fields, element), list_type.get_item_type()))
    return remaining or None
