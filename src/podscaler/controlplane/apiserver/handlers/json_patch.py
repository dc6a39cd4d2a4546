"""Applies JSON patches (RFC 6902) and JSON merge patches (RFC 7386) to parsed JSON.

`patching` calls it. `apply_patch({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}])` and
`apply_merge_patch({"a": 1}, {"a": 2})` both return {"a": 2}. The arguments are not changed.

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

INDEX_MAX_DIGITS = 9

OPERATION_FIELDS = frozenset({"op", "path", "from", "value"})

Operation = dict[str, Any]


class _Inapplicable(Exception):
    """An operation cannot be applied to the document."""


def apply_patch(document: Any, operations: Sequence[Operation]) -> Any:
    """A copy of `document` with the operations applied.

    Raises StatusError 413 for more than `OPERATIONS_MAX` operations, 422 where one cannot be applied.
    """
    if len(operations) > OPERATIONS_MAX:
        count = f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(operations)}"
        text = f"Request entity too large: {count}"
        raise StatusError(text, code=413, reason="RequestEntityTooLarge")
    result = deepcopy(document)
    budget = _CopyBudget(COPY_MAX_BYTES)
    try:
        for operation in operations:
            if operation.get("path") == "" and operation.get("op") == "replace":
                result = _replacement_of_document(operation)
            else:
                _apply(result, operation, budget)
    except _Inapplicable:
        text = "the server rejected our request due to an error in our request"
        raise StatusError(text, code=422, reason="Invalid", details={}) from None
    return result


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """`target` with a JSON merge patch: null removes a member, objects are merged, other values replace.

    Merged objects have their members sorted by name, as in kube-apiserver's error messages.

    Args:
        target: left as it is; the result may share its unchanged parts.
        patch: the merge patch.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return dict(sorted(result.items()))


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
        if name not in OPERATION_FIELDS
    ]


def _not_decodable(value: Any, go_type: str) -> StatusError:
    text = f"error decoding patch: json: cannot unmarshal {json_type(value)} into Go value of type {go_type}"
    return StatusError(text, code=400, reason="BadRequest")


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
    """The approximate number of bytes that `copy` operations may still add."""

    def __init__(self, left_bytes: int) -> None:
        self._left_bytes = left_bytes

    def spend(self, value: Any) -> None:
        self._left_bytes -= _size_bytes(value)
        if self._left_bytes < 0:
            raise _Inapplicable


def _size_bytes(value: Any) -> int:
    if isinstance(value, dict):
        return 2 + sum(len(key) + 4 + _size_bytes(item) for key, item in value.items())
    if isinstance(value, list):
        return 2 + sum(1 + _size_bytes(item) for item in value)
    return len(value) + 2 if isinstance(value, str) else 8


def _replacement_of_document(operation: Operation) -> Any:
    """The value that replaces the whole document; it must be an object or a list."""
    value = operation.get("value")
    if not isinstance(value, dict | list):
        raise _Inapplicable
    return deepcopy(value)


def _apply(document: Any, operation: Operation, budget: _CopyBudget) -> None:
    """Apply one operation, in place. Raises _Inapplicable."""
    value = operation.get("value")
    match operation.get("op"):
        case "add":
            _insert(document, _parse_pointer(operation, "path"), deepcopy(value))
        case "remove":
            _remove(document, _parse_pointer(operation, "path"))
        case "replace":
            parent, key = _parent(document, _parse_pointer(operation, "path"))
            parent[_index(key, len(parent)) if isinstance(parent, list) else key] = deepcopy(value)
        case "move":
            moved = _remove(document, _parse_pointer(operation, "from"))
            _insert(document, _parse_pointer(operation, "path"), moved)
        case "copy":
            copied = _value_at(document, _parse_pointer(operation, "from"))
            budget.spend(copied)
            _insert(document, _parse_pointer(operation, "path"), deepcopy(copied))
        case "test" if is_equal(_value_at(document, _parse_pointer(operation, "path")), value):
            pass
        case _:
            raise _Inapplicable


def _value_at(document: Any, tokens: list[str]) -> Any:
    """The value that a pointer names; null for a missing member of an object."""
    parent, key = _parent(document, tokens)
    return parent.get(key) if isinstance(parent, dict) else _member(parent, key)


def is_equal(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; unlike Python, `true` is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            is_equal(left_element, right_element) for left_element, right_element in zip(left, right, strict=True)
        )
    return bool(left == right)


def _parse_pointer(operation: Operation, member: str) -> list[str]:
    """The tokens of the JSON pointer in `member`; the whole document ("") is no valid target here.

    As kube-apiserver, text before the first slash is skipped: `data/x` is `/x`.
    """
    text = operation.get(member)
    if not isinstance(text, str) or "/" not in text:
        raise _Inapplicable
    return [token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:]]


def _parent(document: Any, tokens: list[str]) -> tuple[Any, str]:
    """The container that holds the last token, and that token."""
    container = document
    for token in tokens[:-1]:
        container = _member(container, token)
    if not isinstance(container, dict | list):
        raise _Inapplicable
    return container, tokens[-1]


def _member(container: Any, key: str) -> Any:
    if isinstance(container, list):
        return container[_index(key, len(container))]
    if isinstance(container, dict) and key in container:
        return container[key]
    raise _Inapplicable


def _index(text: str, length: int) -> int:
    """The position of an existing element."""
    position = _number(text)
    if position < 0:
        position += length
    if not 0 <= position < length:
        raise _Inapplicable
    return position


def _number(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= INDEX_MAX_DIGITS):
        raise _Inapplicable
    return int(text)


def _insert(document: Any, tokens: list[str], value: Any) -> None:
    """Insert a value: a member of an object, or an element before an index; `-` is the end."""
    parent, key = _parent(document, tokens)
    if isinstance(parent, dict):
        parent[key] = value
    elif key == "-":
        parent.append(value)
    else:
        position = _number(key)
        if position < 0:
            position += len(parent) + 1
        if not 0 <= position <= len(parent):
            raise _Inapplicable
        parent.insert(position, value)


def _remove(document: Any, tokens: list[str]) -> Any:
    """Remove and return the value at a pointer."""
    parent, key = _parent(document, tokens)
    value = _member(parent, key)
    if isinstance(parent, list):
        del parent[_index(key, len(parent))]
    else:
        del parent[key]
    return value
