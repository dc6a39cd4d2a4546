"""Merges and sorts the lists of a strategic merge patch: by merge key, or as sets of scalars.

`strategic_merge` calls it. Elements are identified by the value of the list's merge key (`name` for containers),
scalars by themselves.

The order of a merged list: elements that the patch names come in the patch's order, the others in their old order; the
two sequences are interleaved so that an old element precedes the patch's next element only if it already did before.
Old a, b, c with a patch that names c and d become a, b, c, d.
"""

from collections.abc import Sequence
from typing import Any

from podscaler.base.errors import StatusError

Object = dict[str, Any]

_GO_TYPE_NAMES: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "%!s(<nil>)",
}
"""What Go prints as the type of a parsed JSON value, in error messages."""


def check_is_list(value: Any) -> None:
    """Check that a value with an order directive is a list. Raises StatusError 500 otherwise, as kube-apiserver."""
    if not isinstance(value, list):
        raise StatusError(f"expected a []interface {{}}, but received a {_GO_TYPE_NAMES[type(value)]}", code=500)


def check_types(original: Sequence[Any], changes: Sequence[Any]) -> None:
    """Check that the elements of two lists can be merged.

    Raises StatusError 422 for lists of lists, 500 for elements of different types, and for two empty lists.
    """
    types = [type(element) for element in (*original, *changes)]
    if not types:
        raise StatusError("no elements in any of the given slices", code=500)
    if types[0] is list:
        message = "the server rejected our request due to an error in our request"
        raise StatusError(message, code=422, reason="Invalid", details={})
    if len(set(types)) > 1 or types[0] is type(None):
        lists_text = go_text([list(original), list(changes)])
        raise StatusError(f"list element types are not identical: {lists_text}", code=500)


def merge_scalars(original: Sequence[Any], changes: Sequence[Any]) -> list[Any]:
    """Scalars of both lists, each once, in order of first appearance."""
    merged: list[Any] = []
    for scalar in (*original, *changes):
        if scalar not in merged:
            merged.append(scalar)
    return merged


def apply_directives(
    original: Sequence[Any], changes: Sequence[Object], merge_key: str
) -> tuple[list[Any], list[Object]]:
    """The original elements after the directives of `changes` (`$patch: delete`, `replace`), and the other changes.

    Raises StatusError 500 for an element without the merge key or with an unknown directive.
    """
    remaining = list(original)
    other_changes: list[Object] = []
    replaces_list = False
    for change in changes:
        directive = change.get("$patch")
        if directive == "replace":
            replaces_list = True
        elif directive == "delete":
            deleted = _get_key_value(change, merge_key)
            remaining = [
                element
                for element in remaining
                if not (isinstance(element, dict) and element.get(merge_key) == deleted)
            ]
        elif directive is not None:
            raise unknown_directive(directive, change)
        else:
            _get_key_value(change, merge_key)  # checks that there is one
            other_changes.append(change)
    return ([], other_changes) if replaces_list else (remaining, other_changes)


def _get_key_value(change: Object, merge_key: str) -> Any:
    """The value of the merge key in an element of the patch. Raises StatusError 500 if the element has none."""
    if merge_key not in change:
        raise StatusError(f"map: {go_text(change)} does not contain declared merge key: {merge_key}", code=500)
    return change[merge_key]


def find_element(elements: Sequence[Any], merge_key: str, key_value: Any) -> int | None:
    """The index of the element whose merge key has the value `key_value`, None if there is none."""
    for position, element in enumerate(elements):
        if isinstance(element, dict) and merge_key in element and element[merge_key] == key_value:
            return position
    return None


def unknown_directive(directive: Any, patch: dict[str, Any]) -> StatusError:
    """The error for a `$patch` that is neither replace nor delete."""
    return StatusError(f"unknown patch type: {directive} in map: {go_text(patch)}", code=500)


def check_order(changes: Sequence[Any], order: Sequence[Any], merge_key: str) -> None:
    """Check that the elements of the patch are in the order directive, in the same order. Raises StatusError 500."""
    if not order:
        return
    identities = [_identity(element, merge_key) for element in order]
    position = 0
    for change in changes:
        if isinstance(change, dict) and "$patch" in change:  # such an element is not in the result
            continue
        identity = _identity(change, merge_key)
        while position < len(identities) and identities[position] != identity:
            position += 1
        if position == len(identities):
            raise StatusError(_order_message(changes, order), code=500)
        position += 1


def _order_message(changes: Sequence[Any], order: Sequence[Any]) -> str:
    """kube-apiserver's message for a patch whose elements are not in the order of its directive."""
    list_texts = (f"[{' '.join(map(go_text, elements))}]" for elements in (changes, order))
    return "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n".format(*list_texts)


def sort_list(elements: Sequence[Any], order: Sequence[Any], server_order: Sequence[Any], merge_key: str) -> list[Any]:
    """`elements` sorted by the patch's order (`order`) and the stored list's order (`server_order`).

    The module's docstring has the rule and an example.
    """
    patch_ranks = _ranks(order, merge_key)
    server_ranks = _ranks(server_order, merge_key)
    named = [element for element in elements if _rank(element, patch_ranks, merge_key) is not None]
    unnamed = [element for element in elements if _rank(element, patch_ranks, merge_key) is None]
    named.sort(key=lambda element: _rank_or_last(element, patch_ranks, merge_key))
    unnamed.sort(key=lambda element: _rank_or_last(element, server_ranks, merge_key))
    return _interleave(unnamed, named, server_ranks, merge_key)


def _interleave(unnamed: list[Any], named: list[Any], server_ranks: dict[Any, int], merge_key: str) -> list[Any]:
    """Both lists in one: an unnamed element precedes the next named one only if it did so in the stored list."""
    interleaved: list[Any] = []
    next_unnamed, next_named = 0, 0
    while next_unnamed < len(unnamed) and next_named < len(named):
        unnamed_rank = _rank(unnamed[next_unnamed], server_ranks, merge_key)
        named_rank = _rank(named[next_named], server_ranks, merge_key)
        if unnamed_rank is not None and named_rank is not None and unnamed_rank < named_rank:
            interleaved.append(unnamed[next_unnamed])
            next_unnamed += 1
        else:
            interleaved.append(named[next_named])
            next_named += 1
    return interleaved + unnamed[next_unnamed:] + named[next_named:]


def _ranks(elements: Sequence[Any], merge_key: str) -> dict[Any, int]:
    """The first position of each element, by the element's identity."""
    ranks: dict[Any, int] = {}
    for position, element in enumerate(elements):
        ranks.setdefault(_identity(element, merge_key), position)
    return ranks


def _rank(element: Any, ranks: dict[Any, int], merge_key: str) -> int | None:
    """The position of an element in the list of `ranks`, None if it is not in that list."""
    return ranks.get(_identity(element, merge_key))


def _rank_or_last(element: Any, ranks: dict[Any, int], merge_key: str) -> int:
    """As `_rank`, but behind all positions for an element that is not in the list."""
    rank = _rank(element, ranks, merge_key)
    return len(ranks) if rank is None else rank


def _identity(element: Any, merge_key: str) -> Any:
    """A hashable identity of an element; elements without the merge key are identified by their whole value."""
    value = element.get(merge_key, element) if merge_key and isinstance(element, dict) else element
    is_hashable = isinstance(value, str | int | float | bool)
    return type(value), value if is_hashable else repr(value)


def go_text(value: Any) -> str:
    """A JSON value as Go's %v prints it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)
