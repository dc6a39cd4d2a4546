"""Implements sets of field paths in the form of metadata.managedFields (FieldsV1): union, difference, intersection.

    {"f:spec": {"f:replicas": {}, "f:ports": {"k:{\\"port\\":80}": {".": {}, "f:port": {}}}}}

This set has the paths `.spec.replicas`, `.spec.ports[port=80]` and `.spec.ports[port=80].port`. A set maps path
elements (`path_elements`) to nodes. A node is itself a path of the set if it is empty or has the member `.`; its other
members are the elements below it. Stored sets are used without decoding. No function changes its arguments; results
may share parts with them.

Called by most modules of this package; a new kind of element (`path_elements`) needs nothing here.

Source: the wire format of metav1.FieldsV1; structured-merge-diff's fieldpath.
"""

from collections.abc import Iterator, Sequence
from typing import Any

FieldSet = dict[str, Any]
"""A set, or a node of one; `{}` is the empty set, or the node of a path without paths below it."""

SELF = "."
"""The member of a node that makes it a path of the set."""
LEAF: FieldSet = {}
"""The node of a path without paths below it."""


def is_member(node: FieldSet) -> bool:
    """Whether a node is itself a path of its set."""
    return not node or SELF in node


def has(fields: FieldSet, path: Sequence[str]) -> bool:
    """Whether a path (of elements; not empty) is in a set."""
    node = fields
    for element in path:
        if element not in node:
            return False
        node = node[element]
    return is_member(node)


def of(*paths: Sequence[str]) -> FieldSet:
    """The set of the given paths."""
    fields: FieldSet = {}
    for path in paths:
        fields = union(fields, _set_of_path(path))
    return fields


def below(fields: FieldSet, element: str) -> FieldSet:
    """The set of the paths below an element, without the element itself."""
    node = fields.get(element)
    if not node:
        return {}
    return {name: child for name, child in node.items() if name != SELF} if SELF in node else node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of either set; the object `left` itself where it has all of them."""
    if not left:
        return right
    return left if _has_all_paths(left, right) else join_nodes(left, right)


def join_nodes(left: FieldSet, right: FieldSet) -> FieldSet:
    """The union of two nodes, or of two sets that are not empty."""
    if left is right:
        return left
    if not left or not right:  # an empty node is itself a path, so that the union is one
        other_node = left or right
        return other_node if is_member(other_node) else {SELF: LEAF, **other_node}
    joined = dict(left)
    for element, node in right.items():
        existing = joined.get(element)
        joined[element] = node if existing is None else join_nodes(existing, node)
    return joined


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of `left` that are not in `right`; the object `left` itself where that is all of them."""
    if not left or not right:
        return left
    return _remove_paths(left, right) or {}


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of both sets."""
    if not left or not right:
        return {}
    return _common_paths(left, right)


def without_trees(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of `left` that are neither in `right` nor below one of its paths."""
    kept_nodes: FieldSet = {}
    for element, node in left.items():
        removed_node = right.get(element)
        if removed_node is None:
            kept_nodes[element] = node
        elif not is_member(removed_node):
            remaining_node = _node_with(without_trees(below(left, element), removed_node), node, drops_self=False)
            if remaining_node is not None:
                kept_nodes[element] = remaining_node
    return kept_nodes


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """All paths, each as its elements: those of one level first, sorted, then those below them."""
    yield from _paths_below(fields, ())


def sort_elements(fields: FieldSet) -> FieldSet:
    """The same set with its elements in order, for writing."""
    return {element: sort_elements(fields[element]) for element in sorted(fields)}


def _set_of_path(path: Sequence[str]) -> FieldSet:
    """The set of one path, given by its elements."""
    node: FieldSet = {}
    for element in reversed(path):
        node = {element: node}
    return node


def _has_all_paths(left: FieldSet, right: FieldSet) -> bool:
    """Whether `left` has all paths below a node (or in a set) `right`."""
    for element, node in right.items():
        own_node = left.get(element)
        if own_node is None or (is_member(node) and not is_member(own_node)) or not _has_all_paths(own_node, node):
            return False
    return True


def _remove_paths(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """A node without the paths of another; None if no path is left, `left` itself if all are."""
    changed_nodes: dict[str, FieldSet | None] = {}
    for element, removed_node in right.items():
        node = left.get(element)
        if node is not None and element != SELF:
            remaining_node = _remove_paths(node, removed_node)
            if remaining_node is not node:
                changed_nodes[element] = remaining_node
    drops_self = is_member(left) and is_member(right)
    if not (changed_nodes or drops_self):
        return left
    remaining_nodes = {element: changed_nodes.get(element, node) for element, node in left.items() if element != SELF}
    kept_nodes = {element: node for element, node in remaining_nodes.items() if node is not None}
    return _node_with(kept_nodes, left, drops_self=drops_self)


def _node_with(kept_nodes: FieldSet, original: FieldSet, *, drops_self: bool) -> FieldSet | None:
    """A node with these elements, itself a path if `original` is one and not `drops_self`; None if no path is left."""
    if drops_self or not is_member(original):
        return kept_nodes or None
    return {SELF: LEAF, **kept_nodes} if kept_nodes else LEAF


def _common_paths(left: FieldSet, right: FieldSet) -> FieldSet:
    """The set of the paths below both nodes."""
    common: FieldSet = {}
    for element, node in left.items():
        other_node = right.get(element)
        if other_node is None or element == SELF:
            continue
        common_below = _common_paths(node, other_node)
        if is_member(node) and is_member(other_node):
            common[element] = {SELF: LEAF, **common_below} if common_below else LEAF
        elif common_below:
            common[element] = common_below
    return common


def _paths_below(fields: FieldSet, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """As `paths`, each after the elements of `prefix`."""
    elements = sorted(element for element in fields if element != SELF)
    for element in elements:
        if is_member(fields[element]):
            yield (*prefix, element)
    for element in elements:
        yield from _paths_below(fields[element], (*prefix, element))
