"""Compares two states of an object: the fields that a change wrote, and those that it removed.

Called by `updating` and `last_applied` with the stored forms before and after, both in one version. Equal parts are
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
    """The value of a missing field: null is a value."""


ABSENT = _Absent()
_Nodes = tuple[Set | None, Set | None]
"""The written and the removed fields of a value, as nodes of sets; None for none."""
_WRITTEN: _Nodes = (LEAF, None)
_NOTHING: _Nodes = (None, None)


@dataclass(frozen=True, slots=True)
class FieldChanges:
    """The paths that a change wrote, and those that it removed."""

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
    written, removed = _compare(old, new, kind)
    return FieldChanges(written or {}, removed or {})


def _compare(old: Any, new: Any, kind: FieldType) -> _Nodes:
    """Two values that differ; a value whose shape changes is compared in both shapes."""
    if old is ABSENT:
        return _whole(new, kind), None
    if new is ABSENT:
        return None, _whole(old, kind)
    if kind.has_one_shape:
        return _in_shape(old, new, kind)
    before, after = field_types.shape_of(kind, old), field_types.shape_of(kind, new)
    if before == after:
        return _in_shape(old, new, before)
    one, other = _in_shape(old, new, before), _in_shape(old, new, after)
    return _both(one[0], other[0]), _both(one[1], other[1])


def _whole(value: Any, kind: FieldType) -> Set:
    """The node of an added or removed value, with all fields below it."""
    if not value:
        return LEAF
    if isinstance(value, dict) and kind.map is not None and not kind.map.atomic:
        return {SELF: LEAF, **_whole_map(value, kind.map)}
    if isinstance(value, list) and kind.list is not None and not kind.list.atomic:
        items = field_types.indexed(kind.list, value)
        element = kind.list.element()
        nodes = {step: _whole(each[0], element) if len(each) == 1 else LEAF for step, each in items.items()}
        return {SELF: LEAF, **nodes}
    return LEAF


def _whole_map(value: dict[str, Any], kind: MapType) -> Set:
    nodes: Set = {}
    for name, item in value.items():
        child = kind.child(name)
        if child is not None:
            nodes[f"f:{name}"] = _whole(item, child)
    return nodes


def _both(one: Set | None, other: Set | None) -> Set | None:
    if one is None or other is None:
        return other if one is None else one
    return field_sets.joined(one, other)


def _in_shape(old: Any, new: Any, kind: FieldType) -> _Nodes:
    if kind.map is not None:
        return _maps(old, new, kind.map)
    if kind.scalar or kind.list is None:
        return _leaf(old, new)
    return _lists(old, new, kind.list)


def _leaf(old: Any, new: Any) -> _Nodes:
    return _NOTHING if old == new else _WRITTEN


def _maps(old: Any, new: Any, kind: MapType) -> _Nodes:
    before = old if isinstance(old, dict) else {}
    after = new if isinstance(new, dict) else {}
    if kind.atomic or not (before or after):
        return _leaf(old, new)
    written: Set = {}
    removed: Set = {}
    for name in before.keys() | after.keys():
        one, other = before.get(name, ABSENT), after.get(name, ABSENT)
        child = None if one == other else kind.child(name)
        if child is not None:
            _note(f"f:{name}", _compare(one, other, child), written, removed)
    return written or None, removed or None


def _lists(old: Any, new: Any, kind: ListType) -> _Nodes:
    before = old if isinstance(old, list) else []
    after = new if isinstance(new, list) else []
    if kind.atomic or not (before or after):
        return _leaf(old, new)
    ones, others = field_types.indexed(kind, before), field_types.indexed(kind, after)
    written: Set = {}
    removed: Set = {}
    for element in dict.fromkeys((*ones, *others)):
        found = _items(ones.get(element, []), others.get(element, []), kind.element())
        _note(element, found, written, removed)
    return written or None, removed or None


def _items(ones: list[Any], others: list[Any], kind: FieldType) -> _Nodes:
    """The changes of the items with one path element; duplicates are owned together."""
    if ones == others:
        return _NOTHING
    if len(ones) > 1 and len(others) > 1:
        return _WRITTEN
    if len(ones) > 1:
        return (_compare(ABSENT, others[0], kind)[0] if others else None), LEAF
    if len(others) > 1:
        return LEAF, (_compare(ones[0], ABSENT, kind)[1] if ones else None)
    return _compare(ones[0] if ones else ABSENT, others[0] if others else ABSENT, kind)


def _note(element: str, nodes: _Nodes, written: Set, removed: Set) -> None:
    if nodes[0] is not None:
        written[element] = nodes[0]
    if nodes[1] is not None:
        removed[element] = nodes[1]
