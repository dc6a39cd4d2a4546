"""Compares two states of an object: which fields a write set or changed, and which it removed.

    compare({"spec": {"a": 1}}, {"spec": {"b": 2}}, kind)

    FieldChanges(written={"f:spec": {"f:b": {}}}, removed={"f:spec": {"f:a": {}}})

Called by `updating` and `last_applied` with the stored objects before and after, both in one version. Equal parts are
skipped as a whole, so the cost is proportional to the change.

Rules: an added field is written, with all fields below it; a removed one removed, with all fields below it; a scalar or
atomic value that differs is written, and so is an empty value (null, `{}`, `[]`) in place of another one.

Source: structured-merge-diff's comparison of typed values (its Added and Modified are one here).
"""

from dataclasses import dataclass
from typing import Any

from podscaler.api.managed_fields import field_sets, field_types
from podscaler.api.managed_fields.field_sets import LEAF, SELF, Set
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType


class _Absent:
    """The type of ABSENT, which stands for a missing field: None is JSON's null."""


ABSENT = _Absent()
_Nodes = tuple[Set | None, Set | None]
"""The written and the removed fields of a value, as nodes of sets (`field_sets`); None: no field."""
_WRITTEN: _Nodes = (LEAF, None)
_NOTHING: _Nodes = (None, None)


@dataclass(frozen=True, slots=True)
class FieldChanges:
    """The sets of paths that a write set or changed (`written`), and that it removed."""

    written: Set
    removed: Set

    def without(self, ignored: Set) -> "FieldChanges":
        """The changes without the `ignored` paths and those below them."""
        if not ignored:
            return self
        written = field_sets.without_trees(self.written, ignored)
        return FieldChanges(written, field_sets.without_trees(self.removed, ignored))


def compare(old: Any, new: Any, kind: FieldType) -> FieldChanges:
    """The changes from `old` to `new`, two values of a type."""
    if old == new:
        return FieldChanges({}, {})
    written, removed = _compare_values(old, new, kind)
    return FieldChanges(written or {}, removed or {})


def _compare_values(old: Any, new: Any, kind: FieldType) -> _Nodes:
    """The changes between values that differ; a value that was a list, say, and is a map is compared as both."""
    if old is ABSENT:
        return _all_below(new, kind), None
    if new is ABSENT:
        return None, _all_below(old, kind)
    if kind.has_one_shape:
        return _compare_in_shape(old, new, kind)
    before, after = field_types.shape_of(kind, old), field_types.shape_of(kind, new)
    if before == after:
        return _compare_in_shape(old, new, before)
    old_nodes, new_nodes = _compare_in_shape(old, new, before), _compare_in_shape(old, new, after)
    return _union(old_nodes[0], new_nodes[0]), _union(old_nodes[1], new_nodes[1])


def _all_below(value: Any, kind: FieldType) -> Set:
    """The node of an added or removed value, with all fields below it."""
    if not value:
        return LEAF
    if isinstance(value, dict) and kind.map is not None and not kind.map.atomic:
        return {SELF: LEAF, **_all_below_map(value, kind.map)}
    if isinstance(value, list) and kind.list is not None and not kind.list.atomic:
        items = field_types.indexed(kind.list, value)
        element = kind.list.element()
        nodes = {
            step: _all_below(elements[0], element) if len(elements) == 1 else LEAF for step, elements in items.items()
        }
        return {SELF: LEAF, **nodes}
    return LEAF


def _all_below_map(value: dict[str, Any], kind: MapType) -> Set:
    nodes: Set = {}
    for name, item in value.items():
        child = kind.child(name)
        if child is not None:
            nodes[f"f:{name}"] = _all_below(item, child)
    return nodes


def _union(left: Set | None, right: Set | None) -> Set | None:
    if left is None or right is None:
        return right if left is None else left
    return field_sets.joined(left, right)


def _compare_in_shape(old: Any, new: Any, kind: FieldType) -> _Nodes:
    if kind.map is not None:
        return _maps(old, new, kind.map)
    if kind.scalar or kind.list is None:
        return _leaf(old, new)
    return _lists(old, new, kind.list)


def _leaf(old: Any, new: Any) -> _Nodes:
    return _NOTHING if old == new else _WRITTEN


def _maps(old: Any, new: Any, kind: MapType) -> _Nodes:
    """The fields of a map that a write set or changed, and those that it removed."""
    before = old if isinstance(old, dict) else {}
    after = new if isinstance(new, dict) else {}
    if kind.atomic or not (before or after):
        return _leaf(old, new)
    written: Set = {}
    removed: Set = {}
    for name in before.keys() | after.keys():
        old_value, new_value = before.get(name, ABSENT), after.get(name, ABSENT)
        child = None if old_value == new_value else kind.child(name)
        if child is not None:
            _add(f"f:{name}", _compare_values(old_value, new_value, child), written, removed)
    return written or None, removed or None


def _lists(old: Any, new: Any, kind: ListType) -> _Nodes:
    """The elements of a list that a write set or changed, and those that it removed."""
    before = old if isinstance(old, list) else []
    after = new if isinstance(new, list) else []
    if kind.atomic or not (before or after):
        return _leaf(old, new)
    old_items, new_items = field_types.indexed(kind, before), field_types.indexed(kind, after)
    written: Set = {}
    removed: Set = {}
    for element in dict.fromkeys((*old_items, *new_items)):
        item_changes = _items(old_items.get(element, []), new_items.get(element, []), kind.element())
        _add(element, item_changes, written, removed)
    return written or None, removed or None


def _items(old_items: list[Any], new_items: list[Any], kind: FieldType) -> _Nodes:
    """The changes of the items with one path element; duplicates are owned together."""
    if old_items == new_items:
        return _NOTHING
    if len(old_items) > 1 and len(new_items) > 1:
        return _WRITTEN
    if len(old_items) > 1:
        return (_compare_values(ABSENT, new_items[0], kind)[0] if new_items else None), LEAF
    if len(new_items) > 1:
        return LEAF, (_compare_values(old_items[0], ABSENT, kind)[1] if old_items else None)
    return _compare_values(old_items[0] if old_items else ABSENT, new_items[0] if new_items else ABSENT, kind)


def _add(element: str, nodes: _Nodes, written: Set, removed: Set) -> None:
    if nodes[0] is not None:
        written[element] = nodes[0]
    if nodes[1] is not None:
        removed[element] = nodes[1]
