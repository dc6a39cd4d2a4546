"""Sets of field paths in the form of metadata.managedFields (FieldsV1), with union, difference and intersection.

    {"f:spec": {"f:replicas": {}, "f:ports": {"k:{\\"port\\":80}": {".": {}, "f:port": {}}}}}

This set has the paths `.spec.replicas`, `.spec.ports[port=80]` and `.spec.ports[port=80].port`. A set maps path
elements (`path_elements`) to nodes. A node is itself a path of the set if it is empty or has the member `.`; its other
members are the elements below it. Stored sets are used without decoding. No function changes its arguments; results
may share parts with them.

Called by all modules of this package. Source: the wire format of metav1.FieldsV1; structured-merge-diff's fieldpath.
"""

from collections.abc import Iterator, Sequence
from typing import Any

Set = dict[str, Any]
"""A set, or a node of one; `{}` is the empty set, or the node of a path without paths below it."""

SELF = "."
"""The member of a node that makes it a path of the set."""
LEAF: Set = {}
"""The node of a path without paths below it."""


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
    """The set of the paths below an element, without the element itself."""
    node = fields.get(element)
    if not node:
        return {}
    return {name: child for name, child in node.items() if name != SELF} if SELF in node else node


def union(one: Set, other: Set) -> Set:
    """The paths of either set; the object `one` itself where it has all of them."""
    if not one:
        return other
    return one if _covers(one, other) else joined(one, other)


def joined(one: Set, other: Set) -> Set:
    """The union of two nodes, or of two sets that are not empty."""
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
    """The paths of `one` that are not in `other`; the object `one` itself where that is all of them."""
    if not one or not other:
        return one
    return _without(one, other) or {}


def intersection(one: Set, other: Set) -> Set:
    """The paths of both sets."""
    if not one or not other:
        return {}
    return _shared(one, other)


def without_trees(one: Set, other: Set) -> Set:
    """The paths of `one` that are neither in `other` nor below one of its paths."""
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
    """All paths, each as its elements: those of one level first, sorted, then those below them."""
    yield from _paths_below(fields, ())


def ordered(fields: Set) -> Set:
    """The same set with its elements in order, for writing."""
    return {element: ordered(fields[element]) for element in sorted(fields)}


def _single(path: Sequence[str]) -> Set:
    node: Set = {}
    for element in reversed(path):
        node = {element: node}
    return node


def _covers(one: Set, other: Set) -> bool:
    """Whether `one` has all paths below a node (or in a set) `other`."""
    for element, node in other.items():
        found = one.get(element)
        if found is None or (is_member(node) and not is_member(found)) or not _covers(found, node):
            return False
    return True


def _without(one: Set, other: Set) -> Set | None:
    """A node without the paths of another; None if no path is left, `one` itself if all are."""
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
    """The node with the elements `kept` of `one`; itself a member as `one` is, unless `drops`."""
    if drops or not is_member(one):
        return kept or None
    return {SELF: LEAF, **kept} if kept else LEAF


def _shared(one: Set, other: Set) -> Set:
    """The set of the paths below both nodes."""
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
