"""Makes the set of all fields of an object: those that a manager owns after applying it.

    field_set({"spec": {"replicas": 3}}, kind)      {"f:spec": {"f:replicas": {}}}

Called by `applying`, `pruning` and `last_applied`.

Rules: scalars and atomic values are members of the set; of other maps and lists, their fields and items are, and the
map or list itself only if it is empty.

Source: structured-merge-diff's ToFieldSet.
"""

from typing import Any

from podscaler.api.managed_fields import field_sets, field_types
from podscaler.api.managed_fields.field_sets import LEAF, SELF, Set
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType


def field_set(value: Any, kind: FieldType) -> Set:
    """The set of all paths of `value`, an object of type `kind`."""
    return _below(value, kind) or {}


def _below(value: Any, kind: FieldType) -> Set | None:
    """The node of a value: LEAF for a scalar or an atomic value, None for an empty map or list."""
    shape = field_types.shape_of(kind, value)
    if shape.map is not None:
        return LEAF if shape.map.atomic else _map(value, shape.map)
    if shape.scalar or shape.list is None:
        return LEAF
    return LEAF if shape.list.atomic else _list(value, shape.list)


def _map(value: Any, kind: MapType) -> Set | None:
    """The set of the fields of a map; an empty member is owned itself, as nothing below it could be."""
    if not isinstance(value, dict):
        return None
    nodes: Set = {}
    for name, item in value.items():
        child = kind.child(name)
        if child is None:
            continue
        node = _below(item, child)
        if item is None or item == {} or kind.declared(name) is None:
            node = _as_member(node)
        if node is not None:
            nodes[f"f:{name}"] = node
    return nodes or None


def _list(value: Any, kind: ListType) -> Set | None:
    if not isinstance(value, list):
        return None
    nodes: Set = {}
    for element, items in field_types.indexed(kind, value).items():
        nodes[element] = LEAF if len(items) > 1 else _as_member(_below(items[0], kind.element()))
    return nodes or None


def _as_member(node: Set | None) -> Set:
    if node is None or field_sets.is_member(node):
        return node or LEAF
    return {SELF: LEAF, **node}


def with_named_fields(fields: Set, kind: FieldType) -> Set:
    """The set, with those ancestors of its paths as further members that are declared fields of the type.

    A path `.spec.template.spec` makes `.spec` a member. Where fields are removed, emptied ancestors are removed, too.

    Source: structured-merge-diff's EnsureNamedFieldsAreMembers.
    """
    return {element: _with_named_node(element, node, kind) for element, node in fields.items()}


def _with_named_node(element: str, node: Set, kind: FieldType) -> Set:
    """The set below an element, with the element itself if its schema names it."""
    if not node or element == SELF:
        return node
    name = element[2:] if element.startswith("f:") else ""
    if element.startswith("f:"):
        child = kind.map.child(name) if kind.map else None
        declared = kind.map is not None and kind.map.declared(name) is not None
    else:
        child = kind.list.element() if kind.list and element.startswith("k:") else None
        declared = False
    below = with_named_fields(node, child or FieldType())
    return {SELF: LEAF, **below} if declared else below
