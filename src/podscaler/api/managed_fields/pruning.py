"""Removes from an applied object the fields that its manager applied before, does not apply now, and no other owns.

Called by `applying` after the merge. Three steps: all fields of the manager's last configuration are removed, with
their declared ancestors and all fields below these; those that any manager owns now are added back; so are those that
have no owner and are not in the last configuration (dangling).

Source: structured-merge-diff's Updater (prune, addBackOwnedItems, addBackDanglingItems) and RemoveItems.
"""

from typing import Any

from podscaler.api.managed_fields import extracting, field_sets, field_types
from podscaler.api.managed_fields.field_sets import FieldSet
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType
from podscaler.api.managed_fields.managers import ManagedFields, Managers
from podscaler.api.managed_fields.updating import ConversionError, Object, Versions


class Pruner:
    """Prunes the object of one apply.

    Args:
        managers: all managers after the apply: the applying one owns the fields of the new configuration.
        version: the apiVersion of the new configuration.
        versions: the versions of the kind.
    """

    def __init__(self, managers: Managers, version: str, versions: Versions) -> None:
        self._version = version
        self._versions = versions
        self._owned_by_version: dict[str, FieldSet] = {}
        for managed in managers.values():
            fields_before = self._owned_by_version.get(managed.version, {})
            self._owned_by_version[managed.version] = field_sets.union(fields_before, managed.fields)

    def prune(self, merged_object: Object, last_applied: ManagedFields | None) -> Object:
        """`merged_object` without the fields of `last_applied` that no manager owns now.

        It is unchanged if `last_applied` has no fields, or its version is not served any more. Raises ConversionError.

        Args:
            merged_object: the merged object, in the version of the new configuration.
            last_applied: the fields of the last configuration; None at the first apply of the manager.
        """
        field_type = self._versions.find_type(last_applied.version) if last_applied and last_applied.fields else None
        if last_applied is None or field_type is None:
            return merged_object
        last_version = last_applied.version
        error_context = "failed to convert merged object to last applied version"
        unpruned_object = self._convert_object(merged_object, self._version, last_version, error_context)
        last_fields = extracting.with_named_fields(last_applied.fields, field_type)
        bare_object = without_fields(unpruned_object, last_fields, field_type) or {}
        owned_object = self._add_back_owned(unpruned_object, bare_object, last_version)
        pruned_object = _add_back_dangling(unpruned_object, owned_object, last_applied.fields, field_type)
        return self._convert_object(pruned_object, last_version, self._version)

    def _add_back_owned(self, unpruned_object: Object, pruned_object: Object, version: str) -> Object:
        """The pruned object with those fields of the unpruned one that any manager owns; all three in `version`.

        Sets name fields in the version of their manager, so both objects are converted to one version after the other,
        `version` first, without those that are not served. Raises ConversionError.
        """
        current_version = version
        for owner_version in sorted(self._owned_by_version, key=lambda owner: (owner != version, owner)):
            field_type = self._versions.find_type(owner_version)
            if field_type is None:
                continue
            error_context = "failed add back owned items: failed to convert {} object at version " + owner_version
            unpruned_object = self._convert_object(
                unpruned_object, current_version, owner_version, error_context.format("merged")
            )
            pruned_object = self._convert_object(
                pruned_object, current_version, owner_version, error_context.format("pruned")
            )
            owned_fields = self._owned_by_version[owner_version]
            pruned_object = _add_back_fields(unpruned_object, pruned_object, owned_fields, field_type)
            current_version = owner_version
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


def _add_back_fields(unpruned_object: Object, pruned_object: Object, fields: FieldSet, field_type: FieldType) -> Object:
    """The pruned object with `fields` of the unpruned one: the latter without all fields that are in neither."""
    kept_fields = field_sets.union(
        _named_fields(pruned_object, field_type), extracting.with_named_fields(fields, field_type)
    )
    dropped_fields = field_sets.difference(_named_fields(unpruned_object, field_type), kept_fields)
    return without_fields(unpruned_object, dropped_fields, field_type) or {}


def _add_back_dangling(
    unpruned_object: Object, pruned_object: Object, last_fields: FieldSet, field_type: FieldType
) -> Object:
    """The unpruned object without the fields that the last configuration had and the pruned object lacks."""
    removed_fields = field_sets.difference(
        _named_fields(unpruned_object, field_type), _named_fields(pruned_object, field_type)
    )
    dropped_fields = field_sets.intersection(removed_fields, extracting.with_named_fields(last_fields, field_type))
    return without_fields(unpruned_object, dropped_fields, field_type) or {}


def _named_fields(obj: Object, field_type: FieldType) -> FieldSet:
    """All fields of an object, with their declared ancestors."""
    return extracting.with_named_fields(extracting.field_set(obj, field_type), field_type)


def without_fields(value: Any, fields: FieldSet, field_type: FieldType) -> Any:
    """A copy of `value`, which shares parts with it, without the paths of `fields`; None for an emptied map or list.

    Source: structured-merge-diff's RemoveItems.
    """
    if not fields:
        return value
    shape = field_types.shape_of(field_type, value)
    if shape.map is not None:
        return _map_without(value, fields, shape.map)
    if shape.scalar or shape.list is None:  # nothing below it
        return value
    return _list_without(value, fields, shape.list)


def _map_without(value: Any, fields: FieldSet, map_type: MapType) -> dict[str, Any] | None:
    """A map without the members in `fields`. None if nothing is left, and, as upstream, for an empty or atomic map."""
    if not isinstance(value, dict) or not value or map_type.atomic:
        return None
    remaining: dict[str, Any] = {}
    for name, item in value.items():
        element = f"f:{name}"
        if element in fields and field_sets.is_member(fields[element]):
            continue
        member_type = map_type.child(name) or field_types.UNTYPED  # a member that is not allowed stays as it is
        remaining[name] = without_fields(item, field_sets.below(fields, element), member_type)
    return remaining or None


def _list_without(value: Any, fields: FieldSet, list_type: ListType) -> list[Any] | None:
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
        remaining.append(without_fields(item, field_sets.below(fields, element), list_type.get_item_type()))
    return remaining or None
