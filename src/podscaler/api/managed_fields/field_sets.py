"""Sets of paths in an object, in the very form in which managedFields write them (FieldsV1).

    {"f:spec": {"f:replicas": {}, "f:ports": {"k:{\\"port\\":80}": {".": {}, "f:port": {}}}}}

A set maps the elements of paths (`path_elements`) to nodes. A node is itself a path of the set if it is empty or has
the member `.`; its other members are the elements below it. So a stored set needs no decoding before it is used: sets
that a change does not touch stay as they were read. Sets are values: no function changes its arguments, results may
share parts with them.

Called by all modules of this package. Source: the wire format of metav1.FieldsV1; structured-merge-diff's fieldpath.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Set = dict[str, Any]
"""A set, or a node of one; as a set `{}` has nothing in it, as a node it is a path that has nothing below it."""

SELF = "."
LEAF: Set = {}
"""The node of a path with nothing below it."""


def is_member(node: Set) -> bool:
    """Whether a node is itself a path of its set."""
    return not node or SELF in node


def has(fields: Set, path: Sequence[str]) -> bool:
    """Whether a path (of elements; not empty) is in a set."""
    node = fields
    for element in path:
        if element not in node:
            return False
        node = node[element]
    return is_member(node)


def of(*paths: Sequence[str]) -> Set:
    """The set of the given paths."""
    fields: Set = {}
    for path in paths:
        fields = union(fields, _single(path))
    return fields


def below(fields: Set, element: str) -> Set:
    """The set of what lies below an element, its own membership left out."""
    node = fields.get(element)
    if not node:
        return {}
    return {name: child for name, child in node.items() if name != SELF} if SELF in node else node


def union(one: Set, other: Set) -> Set:
    """What is in either set; `one` itself where that has all."""
    if not one:
        return other
    return one if _covers(one, other) else joined(one, other)


def joined(one: Set, other: Set) -> Set:
    """Two nodes in one (or two sets that have something in them)."""
    if one is other:
        return one
    if not one or not other:
        rest = one or other
        return rest if is_member(rest) else {SELF: LEAF, **rest}
    result = dict(one)
    for element, node in other.items():
        found = result.get(element)
        result[element] = node if found is None else joined(found, node)
    return result


def difference(one: Set, other: Set) -> Set:
    """What is in `one` and not in `other`; `one` itself where nothing is taken away."""
    if not one or not other:
        return one
    return _without(one, other) or {}


def intersection(one: Set, other: Set) -> Set:
    """What is in both sets."""
    if not one or not other:
        return {}
    return _shared(one, other)


def without_trees(one: Set, other: Set) -> Set:
    """What is in `one` and neither in `other` nor below one of its paths."""
    kept: Set = {}
    for element, node in one.items():
        cut = other.get(element)
        if cut is None:
            kept[element] = node
        elif not is_member(cut):
            rest = _node(without_trees(below(one, element), cut), node, drops=False)
            if rest is not None:
                kept[element] = rest
    return kept


def paths(fields: Set) -> Iterator[tuple[str, ...]]:
    """All paths, each as its elements: those of one level first, sorted, then what lies below them."""
    yield from _paths_below(fields, ())


def ordered(fields: Set) -> Set:
    """The same set with its elements in order, for writing."""
    return {element: ordered(fields[element]) for element in sorted(fields)}


def renamed(fields: Set, name: Callable[[str], str]) -> Set:
    """The set with other elements. Raises what `name` raises."""
    result: Set = {}
    for element, node in fields.items():
        if element == SELF:
            result[SELF] = {}
        else:
            result[name(element)] = renamed(node, name)
    return result


def _single(path: Sequence[str]) -> Set:
    node: Set = {}
    for element in reversed(path):
        node = {element: node}
    return node


def _covers(one: Set, other: Set) -> bool:
    """Whether all below a node (or in a set) of `other` is in `one`, too."""
    for element, node in other.items():
        found = one.get(element)
        if found is None or (is_member(node) and not is_member(found)) or not _covers(found, node):
            return False
    return True


def _without(one: Set, other: Set) -> Set | None:
    """A node without another, None where nothing is left, `one` itself where all is."""
    changed: dict[str, Set | None] = {}
    for element, cut in other.items():
        node = one.get(element)
        if node is not None and element != SELF:
            rest = _without(node, cut)
            if rest is not node:
                changed[element] = rest
    drops = is_member(one) and is_member(other)
    if not (changed or drops):
        return one
    kept = {element: changed.get(element, node) for element, node in one.items() if element != SELF}
    return _node({element: node for element, node in kept.items() if node is not None}, one, drops=drops)


def _node(kept: Set, one: Set, *, drops: bool) -> Set | None:
    """The node of what is left of `one`, which is a member still unless it `drops`."""
    if drops or not is_member(one):
        return kept or None
    return {SELF: LEAF, **kept} if kept else LEAF


def _shared(one: Set, other: Set) -> Set:
    """The set (or children) of what both nodes have below them."""
    result: Set = {}
    for element, node in one.items():
        match = other.get(element)
        if match is None or element == SELF:
            continue
        both = _shared(node, match)
        if is_member(node) and is_member(match):
            result[element] = {SELF: LEAF, **both} if both else LEAF
        elif both:
            result[element] = both
    return result


def _paths_below(fields: Set, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    elements = sorted(element for element in fields if element != SELF)
    for element in elements:
        if is_member(fields[element]):
            yield (*prefix, element)
    for element in elements:
        yield from _paths_below(fields[element], (*prefix, element))
