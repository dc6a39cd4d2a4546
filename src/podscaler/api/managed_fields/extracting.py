"""Extracts the set of all fields of an object: those that a manager owns after applying it.

    field_set({"spec": {"replicas": 3}}, kind)      {"f:spec": {"f:replicas": {}}}

Called by `applying`, `pruning` and `last_applied`.

Rules: scalars and atomic values are members of the set. Of other maps and lists, their fields and items are; the map or
list itself only if it is null, `{}`, an item of a list, or a member that its parent does not declare (a key of a map).

Source: structured-merge-diff's ToFieldSet.
"""

from typing import Any

from podscaler.api.managed_fields import field_sets, field_types
from podscaler.api.managed_fields.field_sets import LEAF, SELF, FieldSet
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType


def field_set(value: Any, field_type: FieldType) -> FieldSet:
    """The set of all paths of `value`, an object of that type."""
    return _fields_below(value, field_type) or {}


def _fields_below(value: Any, field_type: FieldType) -> FieldSet | None:
    """The node of a value: LEAF for a scalar or an atomic value; None for another map or list that is empty or null."""
    shape = field_types.shape_of(field_type, value)
    if shape.map is not None:
        return LEAF if shape.map.atomic else _map_fields(value, shape.map)
    if shape.scalar or shape.list is None:
        return LEAF
    return LEAF if shape.list.atomic else _list_fields(value, shape.list)


def _map_fields(value: Any, map_type: MapType) -> FieldSet | None:
    """The set of the fields of a map, None for no fields; an empty member is owned itself: nothing is below it."""
    if not isinstance(value, dict):
        return None
    nodes: FieldSet = {}
    for name, item in value.items():
        member_type = map_type.child(name)
        if member_type is None:
            continue
        node = _fields_below(item, member_type)
        if item is None or item == {} or map_type.find_declared(name) is None:
            node = _as_member(node)
        if node is not None:
            nodes[f"f:{name}"] = node
    return nodes or None


def _list_fields(value: Any, list_type: ListType) -> FieldSet | None:
    """The set of the items of an associative list; duplicates are owned as a whole. None for no items."""
    if not isinstance(value, list):
        return None
    nodes: FieldSet = {}
    for element, items in field_types.index_items(list_type, value).items():
        nodes[element] = LEAF if len(items) > 1 else _as_member(_fields_below(items[0], list_type.get_item_type()))
    return nodes or None


def _as_member(node: FieldSet | None) -> FieldSet:
    """The node of a value whose fields have the node `node`, made a path of the set itself."""
    if node is None:
        return LEAF
    return node if field_sets.is_member(node) else {SELF: LEAF, **node}


def with_named_fields(fields: FieldSet, field_type: FieldType) -> FieldSet:
    """The set, with those ancestors of its paths as further members that are declared fields of the type.

    A path `.spec.template.spec` makes `.spec` a member. Where fields are removed, emptied ancestors are removed, too.

    Source: structured-merge-diff's EnsureNamedFieldsAreMembers.
    """
    return {element: _with_named_node(element, node, field_type) for element, node in fields.items()}


def _with_named_node(element: str, node: FieldSet, field_type: FieldType) -> FieldSet:
    """The node of an element with named fields; the element itself is a member, too, if `field_type` declares it."""
    if not node or element == SELF:
        return node
    child_type, is_declared = None, False
    if element.startswith("f:") and field_type.map is not None:
        name = element.removeprefix("f:")
        child_type = field_type.map.child(name)
        is_declared = field_type.map.find_declared(name) is not None
    elif element.startswith("k:") and field_type.list is not None:
        child_type = field_type.list.get_item_type()
    fields_below = with_named_fields(node, child_type or FieldType())
    return {SELF: LEAF, **fields_below} if is_declared else fields_below
