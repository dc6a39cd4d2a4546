"""Compares two states of an object: which fields a write set or changed, and which it removed.

    compare({"spec": {"a": 1}}, {"spec": {"b": 2}}, field_type)

    FieldChanges(written={"f:spec": {"f:b": {}}}, removed={"f:spec": {"f:a": {}}})

Called by `updating` with the stored objects before and after a write, by `last_applied` with a configuration and the
stored object; both in one version. Equal parts are skipped as a whole, so the cost is proportional to the change.

Rules: an added field is written, with all fields below it; a removed one removed, with all fields below it; a scalar or
atomic value that differs is written, and so is an empty value (null, `{}`, `[]`) in place of another one.

Source: structured-merge-diff's comparison of typed values (its Added and Modified are one here).
"""

from dataclasses import dataclass
from typing import Any

from podscaler.api.managed_fields import field_sets, field_types
from podscaler.api.managed_fields.field_sets import LEAF, SELF, FieldSet
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType


class _Absent:
    """The type of ABSENT, which stands for a missing field, also in `merging`: None is JSON's null."""


ABSENT = _Absent()
_Nodes = tuple[FieldSet | None, FieldSet | None]
"""The written and the removed fields of a value, as nodes of sets (`field_sets`); None: no field."""
_WRITTEN: _Nodes = (LEAF, None)
"""The value itself is written."""
_NOTHING: _Nodes = (None, None)


@dataclass(frozen=True, slots=True)
class FieldChanges:
    """The sets of paths that a write set or changed (`written`), and that it removed."""

    written: FieldSet
    removed: FieldSet

    def without(self, ignored: FieldSet) -> "FieldChanges":
        """The changes without the `ignored` paths and those below them."""
        if not ignored:
            return self
        written = field_sets.without_trees(self.written, ignored)
        return FieldChanges(written, field_sets.without_trees(self.removed, ignored))


def compare(old: Any, new: Any, field_type: FieldType) -> FieldChanges:
    """The changes from `old` to `new`, two values of a type; fields that the type does not allow are left out."""
    if old == new:
        return FieldChanges({}, {})
    written, removed = _compare_values(old, new, field_type)
    return FieldChanges(written or {}, removed or {})


def _compare_values(old: Any, new: Any, field_type: FieldType) -> _Nodes:
    """The changes between values that differ; a value that was a list, say, and is a map is compared as both."""
    if old is ABSENT:
        return _all_fields(new, field_type), None
    if new is ABSENT:
        return None, _all_fields(old, field_type)
    if field_type.has_one_shape:
        return _compare_in_shape(old, new, field_type)
    old_shape, new_shape = field_types.shape_of(field_type, old), field_types.shape_of(field_type, new)
    if old_shape == new_shape:
        return _compare_in_shape(old, new, old_shape)
    written_in_old, removed_in_old = _compare_in_shape(old, new, old_shape)
    written_in_new, removed_in_new = _compare_in_shape(old, new, new_shape)
    return _union_of_nodes(written_in_old, written_in_new), _union_of_nodes(removed_in_old, removed_in_new)


def _all_fields(value: Any, field_type: FieldType) -> FieldSet:
    """The node of an added or removed value, with all fields below it."""
    if not value:
        return LEAF
    if isinstance(value, dict) and field_type.map is not None and not field_type.map.atomic:
        return {SELF: LEAF, **_all_fields_of_map(value, field_type.map)}
    if isinstance(value, list) and field_type.list is not None and not field_type.list.atomic:
        items_by_element = field_types.index_items(field_type.list, value)
        item_type = field_type.list.get_item_type()
        nodes = {
            element: _all_fields(same_items[0], item_type) if len(same_items) == 1 else LEAF
            for element, same_items in items_by_element.items()
        }
        return {SELF: LEAF, **nodes}
    return LEAF


def _all_fields_of_map(value: dict[str, Any], map_type: MapType) -> FieldSet:
    """The nodes of all members of a map that its type allows."""
    nodes: FieldSet = {}
    for name, item in value.items():
        field_type = map_type.child(name)
        if field_type is not None:
            nodes[f"f:{name}"] = _all_fields(item, field_type)
    return nodes


def _union_of_nodes(left: FieldSet | None, right: FieldSet | None) -> FieldSet | None:
    if left is None:
        return right
    if right is None:
        return left
    return field_sets.join_nodes(left, right)


def _compare_in_shape(old: Any, new: Any, shape: FieldType) -> _Nodes:
    """The changes between values in one shape; a value of another shape counts as an empty one."""
    if shape.map is not None:
        return _compare_maps(old, new, shape.map)
    if shape.scalar or shape.list is None:  # also a type that allows nothing
        return _compare_leaves(old, new)
    return _compare_lists(old, new, shape.list)


def _compare_leaves(old: Any, new: Any) -> _Nodes:
    return _NOTHING if old == new else _WRITTEN


def _compare_maps(old: Any, new: Any, map_type: MapType) -> _Nodes:
    """The fields of a map that a write set or changed, and those that it removed."""
    old_map = old if isinstance(old, dict) else {}
    new_map = new if isinstance(new, dict) else {}
    if map_type.atomic or not (old_map or new_map):
        return _compare_leaves(old, new)
    written: FieldSet = {}
    removed: FieldSet = {}
    for name in old_map.keys() | new_map.keys():
        old_value, new_value = old_map.get(name, ABSENT), new_map.get(name, ABSENT)
        field_type = None if old_value == new_value else map_type.child(name)
        if field_type is not None:
            _add_nodes(f"f:{name}", _compare_values(old_value, new_value, field_type), written, removed)
    return written or None, removed or None


def _compare_lists(old: Any, new: Any, list_type: ListType) -> _Nodes:
    """The items of a list that a write set or changed, and those that it removed, by their path elements."""
    old_list = old if isinstance(old, list) else []
    new_list = new if isinstance(new, list) else []
    if list_type.atomic or not (old_list or new_list):
        return _compare_leaves(old, new)
    old_items, new_items = field_types.index_items(list_type, old_list), field_types.index_items(list_type, new_list)
    item_type = list_type.get_item_type()
    written: FieldSet = {}
    removed: FieldSet = {}
    for element in dict.fromkeys((*old_items, *new_items)):
        item_changes = _compare_items(old_items.get(element, []), new_items.get(element, []), item_type)
        _add_nodes(element, item_changes, written, removed)
    return written or None, removed or None


def _compare_items(old_items: list[Any], new_items: list[Any], item_type: FieldType) -> _Nodes:
    """The changes of the items with one path element: none, one, or several (duplicates, which are owned together).

    From duplicates to one item, the duplicates are removed and all fields of the item written; and the other way round.
    """
    if old_items == new_items:
        return _NOTHING
    if len(old_items) > 1 and len(new_items) > 1:
        return _WRITTEN
    if len(old_items) > 1:
        return (_all_fields(new_items[0], item_type) if new_items else None), LEAF
    if len(new_items) > 1:
        return LEAF, (_all_fields(old_items[0], item_type) if old_items else None)
    old_item = old_items[0] if old_items else ABSENT
    new_item = new_items[0] if new_items else ABSENT
    return _compare_values(old_item, new_item, item_type)


def _add_nodes(element: str, nodes: _Nodes, written: FieldSet, removed: FieldSet) -> None:
    """Add the nodes of a field or item, if it has any, to the written and the removed fields, in place."""
    written_node, removed_node = nodes
    if written_node is not None:
        written[element] = written_node
    if removed_node is not None:
        removed[element] = removed_node
