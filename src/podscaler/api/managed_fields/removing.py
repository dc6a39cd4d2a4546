"""An object without the fields of a set.

Called by `applying`. What is left of a map or list from which everything was taken is null.

Source: structured-merge-diff's RemoveItems.
"""

from typing import Any

from podscaler.api.managed_fields import field_sets, types
from podscaler.api.managed_fields.field_sets import Set
from podscaler.api.managed_fields.types import FieldType, ListType, MapType


def without(value: Any, fields: Set, kind: FieldType) -> Any:
    """`value` (which is left as it is) without the paths of `fields`; shares parts with it."""
    if not fields:
        return value
    shape = types.shape_of(kind, value)
    if shape.map is not None:
        return _map(value, fields, shape.map)
    if shape.scalar or shape.list is None:
        return value
    return _list(value, fields, shape.list)


def _map(value: Any, fields: Set, kind: MapType) -> dict[str, Any] | None:
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
    if not isinstance(value, list) or not value or kind.atomic:
        return None
    result: list[Any] = []
    for item in value:
        try:
            element = types.item_element(kind, item)
        except types.AtomError:
            result.append(item)
            continue
        if element in fields and field_sets.is_member(fields[element]):
            continue
        result.append(without(item, field_sets.below(fields, element), kind.element()))
    return result or None
