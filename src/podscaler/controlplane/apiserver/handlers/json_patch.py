"""Applies JSON patches (RFC 6902) and JSON merge patches (RFC 7386) to parsed JSON.

`patching` calls it, and `webhooks.webhook_admission` for the patches of webhooks. `apply_patch({"a": 1}, [{"op":
"replace", "path": "/a", "value": 2}])` and `apply_merge_patch({"a": 1}, {"a": 2})` both return {"a": 2}. The arguments
are not changed. A new operation: a case in `_apply_operation`.

Source: the RFCs. Differs, as kube-apiserver does: array indices may be negative (from the end), a missing `value` is
null, `test` of a missing member against null succeeds, `replace` and `copy` take a missing member for null, and every
operation that cannot be applied is the same error 422.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from podscaler.base.errors import StatusError

OPERATIONS_MAX = 10_000
COPY_MAX_BYTES = 3 * 1024 * 1024
"""The most bytes that the `copy` operations of one patch add: doubling a value forty times would fill the memory."""

_INDEX_DIGITS_MAX = 9
"""A longer index of an array is invalid."""

# approximate lengths of the parts of JSON, for `COPY_MAX_BYTES`
_BRACKETS_BYTES = 2
_MEMBER_BYTES = 4  # quotes, colon and comma
_COMMA_BYTES = 1
_QUOTES_BYTES = 2
_NUMBER_BYTES = 8  # also for true, false and null

_OPERATION_FIELDS = frozenset({"op", "path", "from", "value"})

Operation = dict[str, Any]
"""One operation as its JSON object: `op`, `path`, and `value` or `from`."""


class _Inapplicable(Exception):
    """An operation cannot be applied to the document."""


def apply_patch(document: Any, operations: Sequence[Operation]) -> Any:
    """A copy of `document` with the operations applied.

    Raises StatusError 413 for more than `OPERATIONS_MAX` operations, 422 where one cannot be applied.
    """
    if len(operations) > OPERATIONS_MAX:
        limit_text = f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(operations)}"
        message = f"Request entity too large: {limit_text}"
        raise StatusError(message, code=413, reason="RequestEntityTooLarge")
    patched = deepcopy(document)
    budget = _CopyBudget(COPY_MAX_BYTES)
    try:
        for operation in operations:
            if operation.get("path") == "" and operation.get("op") == "replace":
                patched = _replacement_of_document(operation)
            else:
                _apply_operation(patched, operation, budget)
    except _Inapplicable:
        message = "the server rejected our request due to an error in our request"
        raise StatusError(message, code=422, reason="Invalid", details={}) from None
    return patched


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """`target` with a JSON merge patch: null removes a member, objects are merged, other values replace.

    Merged objects have their members sorted by name, as in kube-apiserver's error messages.

    Args:
        target: left as it is; the result may share its unchanged parts.
        patch: the merge patch.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        else:
            merged[name] = apply_merge_patch(merged.get(name), change)
    return dict(sorted(merged.items()))


def parse(document: Any) -> list[Operation]:
    """The operations of a JSON patch document; none for null.

    Raises StatusError 400 unless `document` is a list of objects.
    """
    if document is None:
        return []
    if not isinstance(document, list):
        raise _not_decodable(document, "[]handlers.jsonPatchOp")
    for operation in document:
        if not isinstance(operation, dict):
            raise _not_decodable(operation, "handlers.jsonPatchOp")
    return document


def unknown_fields(operations: Sequence[Operation]) -> list[str]:
    """kube-apiserver's message for each unknown member of the operations, in order."""
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(operations)
        for name in operation
        if name not in _OPERATION_FIELDS
    ]


def _not_decodable(value: Any, go_type: str) -> StatusError:
    """The error 400 for a JSON value where the patch must have one of that Go type."""
    message = f"error decoding patch: json: cannot unmarshal {json_type(value)} into Go value of type {go_type}"
    return StatusError(message, code=400, reason="BadRequest")


def json_type(value: Any) -> str:
    """The JSON type of `value` as Go's decoder names it in its errors."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, dict):
        return "object"
    return {list: "array", str: "string", type(None): "null"}[type(value)]


class _CopyBudget:
    """The approximate number of bytes that `copy` operations of one patch may still add."""

    def __init__(self, remaining_bytes: int) -> None:
        self._remaining_bytes = remaining_bytes

    def spend(self, copied: Any) -> None:
        """Subtract the size of a copied value. Raises _Inapplicable if it is too large."""
        self._remaining_bytes -= _size_bytes(copied)
        if self._remaining_bytes < 0:
            raise _Inapplicable


def _size_bytes(value: Any) -> int:
    """The approximate length of a value as JSON."""
    if isinstance(value, dict):
        return _BRACKETS_BYTES + sum(len(key) + _MEMBER_BYTES + _size_bytes(member) for key, member in value.items())
    if isinstance(value, list):
        return _BRACKETS_BYTES + sum(_COMMA_BYTES + _size_bytes(element) for element in value)
    return len(value) + _QUOTES_BYTES if isinstance(value, str) else _NUMBER_BYTES


def _replacement_of_document(operation: Operation) -> Any:
    """The value that replaces the whole document. Raises _Inapplicable unless it is an object or a list."""
    value = operation.get("value")
    if not isinstance(value, dict | list):
        raise _Inapplicable
    return deepcopy(value)


def _apply_operation(document: Any, operation: Operation, budget: _CopyBudget) -> None:
    """Apply one operation, in place. Raises _Inapplicable."""
    value = operation.get("value")
    match operation.get("op"):
        case "add":
            _insert(document, _parse_pointer(operation, "path"), deepcopy(value))
        case "remove":
            _remove(document, _parse_pointer(operation, "path"))
        case "replace":
            parent, segment = _parent(document, _parse_pointer(operation, "path"))
            name_or_index = _existing_index(segment, len(parent)) if isinstance(parent, list) else segment
            parent[name_or_index] = deepcopy(value)
        case "move":
            moved = _remove(document, _parse_pointer(operation, "from"))
            _insert(document, _parse_pointer(operation, "path"), moved)
        case "copy":
            copied = _value_at(document, _parse_pointer(operation, "from"))
            budget.spend(copied)
            _insert(document, _parse_pointer(operation, "path"), deepcopy(copied))
        case "test" if _is_equal(_value_at(document, _parse_pointer(operation, "path")), value):
            return
        case _:
            raise _Inapplicable


def _value_at(document: Any, segments: list[str]) -> Any:
    """The value that a pointer names; None for a missing member of an object. Raises _Inapplicable."""
    parent, segment = _parent(document, segments)
    return parent.get(segment) if isinstance(parent, dict) else _child_value(parent, segment)


def _is_equal(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; unlike Python, `true` is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_equal(member, right[name]) for name, member in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            _is_equal(left_element, right_element) for left_element, right_element in zip(left, right, strict=True)
        )
    return bool(left == right)


def _parse_pointer(operation: Operation, member: str) -> list[str]:
    """The segments of the JSON pointer in `member`. As in kube-apiserver, text before the first slash is skipped.

    Raises _Inapplicable if there is none, and for the whole document (""), which only `replace` can change.
    """
    pointer = operation.get(member)
    if not isinstance(pointer, str) or "/" not in pointer:
        raise _Inapplicable
    _, *escaped_segments = pointer.split("/")
    return [segment.replace("~1", "/").replace("~0", "~") for segment in escaped_segments]


def _parent(document: Any, segments: list[str]) -> tuple[Any, str]:
    """The object or list in which the last segment names a member or element, and that segment.

    Raises _Inapplicable if there is none.
    """
    *parent_segments, last_segment = segments
    container = document
    for segment in parent_segments:
        container = _child_value(container, segment)
    if not isinstance(container, dict | list):
        raise _Inapplicable
    return container, last_segment


def _child_value(container: Any, segment: str) -> Any:
    """The member or element of an object or list that a segment names. Raises _Inapplicable if there is none."""
    if isinstance(container, list):
        return container[_existing_index(segment, len(container))]
    if isinstance(container, dict) and segment in container:
        return container[segment]
    raise _Inapplicable


def _existing_index(segment: str, length: int) -> int:
    """The position of the element that a segment names in a list of that length. Raises _Inapplicable."""
    position = _parse_index(segment)
    if position < 0:
        position += length
    if not 0 <= position < length:
        raise _Inapplicable
    return position


def _parse_index(segment: str) -> int:
    """The number in a segment; negative ones count from the end. Raises _Inapplicable."""
    digits = segment.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _INDEX_DIGITS_MAX):
        raise _Inapplicable
    return int(segment)


def _insert(document: Any, segments: list[str], value: Any) -> None:
    """Insert a value: a member of an object, or an element before an index; `-` is the end. Raises _Inapplicable."""
    parent, segment = _parent(document, segments)
    if isinstance(parent, dict):
        parent[segment] = value
    elif segment == "-":
        parent.append(value)
    else:
        position = _parse_index(segment)
        if position < 0:
            position += len(parent) + 1
        if not 0 <= position <= len(parent):
            raise _Inapplicable
        parent.insert(position, value)


def _remove(document: Any, segments: list[str]) -> Any:
    """Remove and return the value at a pointer. Raises _Inapplicable."""
    parent, segment = _parent(document, segments)
    removed = _child_value(parent, segment)
    if isinstance(parent, list):
        del parent[_existing_index(segment, len(parent))]
    else:
        del parent[segment]
    return removed
