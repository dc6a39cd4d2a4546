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
    types = [type(item) for item in (*original, *changes)]
    if not types:
        raise StatusError("no elements in any of the given slices", code=500)
    if types[0] is list:
        text = "the server rejected our request due to an error in our request"
        raise StatusError(text, code=422, reason="Invalid", details={})
    if len(set(types)) > 1 or types[0] is type(None):
        shown = go_text([list(original), list(changes)])
        raise StatusError(f"list element types are not identical: {shown}", code=500)


def merge_scalars(original: Sequence[Any], changes: Sequence[Any]) -> list[Any]:
    """Scalars of both lists, each once, in order of first appearance."""
    result: list[Any] = []
    for item in (*original, *changes):
        if item not in result:
            result.append(item)
    return result


def apply_directives(
    original: Sequence[Any], changes: Sequence[Object], merge_key: str
) -> tuple[list[Any], list[Object]]:
    """The original elements after the directives of `changes` (`$patch: delete`, `replace`), and the other changes.

    Raises StatusError 500 for an element without the merge key or with an unknown directive.
    """
    kept = list(original)
    undirected: list[Object] = []
    replaces_list = False
    for change in changes:
        directive = change.get("$patch")
        if directive == "replace":
            replaces_list = True
        elif directive == "delete":
            value = _get_key_value(change, merge_key)
            kept = [item for item in kept if not (isinstance(item, dict) and item.get(merge_key) == value)]
        elif directive is not None:
            raise unknown_directive(directive, change)
        else:
            _get_key_value(change, merge_key)
            undirected.append(change)
    return ([], undirected) if replaces_list else (kept, undirected)


def _get_key_value(change: Object, merge_key: str) -> Any:
    """The value of the merge key in an element of the patch. Raises StatusError 500 if the element has none."""
    if merge_key not in change:
        raise StatusError(f"map: {go_text(change)} does not contain declared merge key: {merge_key}", code=500)
    return change[merge_key]


def find_element(items: Sequence[Any], merge_key: str, value: Any) -> int | None:
    """The index of the element whose merge key has that value, None if there is none."""
    for position, item in enumerate(items):
        if isinstance(item, dict) and merge_key in item and item[merge_key] == value:
            return position
    return None


def unknown_directive(directive: Any, patch: dict[str, Any]) -> StatusError:
    """The error for a `$patch` that is neither replace nor delete."""
    return StatusError(f"unknown patch type: {directive} in map: {go_text(patch)}", code=500)


def check_order(changes: Sequence[Any], order: Sequence[Any], merge_key: str) -> None:
    """Check that the elements of the patch are in the order directive, in the same order. Raises StatusError 500."""
    if not order:
        return
    identities = [_identity(item, merge_key) for item in order]
    position = 0
    for change in changes:
        if isinstance(change, dict) and "$patch" in change:
            continue
        identity = _identity(change, merge_key)
        while position < len(identities) and identities[position] != identity:
            position += 1
        if position == len(identities):
            raise StatusError(_order_text(changes, order), code=500)
        position += 1


def _order_text(changes: Sequence[Any], order: Sequence[Any]) -> str:
    shown = (f"[{' '.join(map(go_text, items))}]" for items in (changes, order))
    return "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n".format(*shown)


def sort_list(values: Sequence[Any], order: Sequence[Any], server_order: Sequence[Any], merge_key: str) -> list[Any]:
    """`values` sorted by the patch's order (`order`) and the stored list's order (`server_order`).

    The module's docstring has the rule and an example.
    """
    patch_ranks = _ranks(order, merge_key)
    server_ranks = _ranks(server_order, merge_key)
    named = [item for item in values if _rank(item, patch_ranks, merge_key) is not None]
    unnamed = [item for item in values if _rank(item, patch_ranks, merge_key) is None]
    named.sort(key=lambda item: _rank(item, patch_ranks, merge_key) or 0)
    unnamed.sort(key=lambda item: _rank_or_last(item, server_ranks, merge_key))
    return _interleave(unnamed, named, server_ranks, merge_key)


def _interleave(unnamed: list[Any], named: list[Any], server_ranks: dict[Any, int], merge_key: str) -> list[Any]:
    """Both lists in one: an unnamed element precedes the next named one only if it did so in the stored list."""
    result: list[Any] = []
    next_unnamed, next_named = 0, 0
    while next_unnamed < len(unnamed) and next_named < len(named):
        unnamed_rank = _rank(unnamed[next_unnamed], server_ranks, merge_key)
        named_rank = _rank(named[next_named], server_ranks, merge_key)
        if unnamed_rank is not None and named_rank is not None and unnamed_rank < named_rank:
            result.append(unnamed[next_unnamed])
            next_unnamed += 1
        else:
            result.append(named[next_named])
            next_named += 1
    return result + unnamed[next_unnamed:] + named[next_named:]


def _ranks(items: Sequence[Any], merge_key: str) -> dict[Any, int]:
    """The first position of each element, by the element's identity."""
    ranks: dict[Any, int] = {}
    for position, item in enumerate(items):
        ranks.setdefault(_identity(item, merge_key), position)
    return ranks


def _rank(item: Any, ranks: dict[Any, int], merge_key: str) -> int | None:
    return ranks.get(_identity(item, merge_key))


def _rank_or_last(item: Any, ranks: dict[Any, int], merge_key: str) -> int:
    rank = _rank(item, ranks, merge_key)
    return len(ranks) if rank is None else rank


def _identity(item: Any, merge_key: str) -> Any:
    """A hashable identity of an element; elements without the merge key are identified by their whole value."""
    value = item.get(merge_key, item) if merge_key and isinstance(item, dict) else item
    return (type(value), value) if isinstance(value, str | int | float | bool) else (type(value), repr(value))


def go_text(value: Any) -> str:
    """A JSON value as Go's %v prints it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)
