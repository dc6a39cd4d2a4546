"""Decodes unstructured data (the result of a strategic merge patch or apply) to an object, as Go's FromUnstructured.

    restore({"spec": {"priority": 2**32 + 1}}, "core/v1.Pod")      {"spec": {"priority": 1}}

Called by the API server after patches and applies, and where managed fields need an object in another version. It
differs from `decoding`, which runs after it, in two ways: its own messages about values of the wrong type, and integers
that are too large are truncated to the bits of the field (`_TRUNCATIONS`, where a new integer type is added).

Source: runtime.DefaultUnstructuredConverter of apimachinery, measured for numbers out of range.
"""

from typing import Any

from podscaler.api.machinery import numbers
from podscaler.api.schema import decode_values, decoding, schema
from podscaler.api.schema.decoding import Decoded
from podscaler.api.schema.schema import Field
from podscaler.api.text.json_text import DecodeError

# Python type -> Go's kind of the value; the first match counts, since bool is a subclass of int
_GO_KINDS = ((bool, "bool"), (int, "int64"), (float, "float64"), (str, "string"), (list, "slice"), (dict, "map"))
_NUMBER_KINDS = ("int64", "float64")
_TRUNCATIONS = {"int32": numbers.wrap32, "int64": numbers.wrap64, "uint32": numbers.wrap_unsigned32}


def decode(value: Any, message: str) -> Decoded:
    """The decoded object of unstructured data. Raises DecodeError; KeyError for an unknown message."""
    return decoding.decode_value(restore(value, message), message)


def restore(value: Any, message: str) -> Any:
    """The data with every integer truncated to the bits of its field.

    Raises:
        DecodeError: a value has another type than its field: `cannot restore slice from string`.
        KeyError: an unknown message.
    """
    if message in schema.OPAQUE:
        if value is not None and message not in schema.FREE_FORM:
            decoding.decode_value(value, message)
        return value
    if not isinstance(value, dict):
        raise DecodeError(f"cannot restore struct from: {_go_kind(value)}")
    fields = {
        field.name: _restore_field(value[field.name], field)
        for field in schema.get_message(message).json_fields()
        if value.get(field.name) is not None
    }
    return {**value, **fields}


def _restore_field(value: Any, field: Field) -> Any:
    """The value of a field. Raises DecodeError for a wrong list, map or scalar."""
    if field.repeated:
        if not isinstance(value, list):
            raise DecodeError(f"cannot restore slice from {_go_kind(value)}")
        return [_restore_element(element, field) for element in value]
    if field.map:
        if not isinstance(value, dict):
            raise DecodeError(f"cannot restore map from {_go_kind(value)}")
        return {key: _restore_element(element, field) for key, element in value.items()}
    return _restore_element(value, field)


def _restore_element(value: Any, field: Field) -> Any:
    """The value of an element, or of a field that is no list or map; null stays null."""
    if value is None:
        return None
    return _restore_scalar(value, field) if field.is_scalar else restore(value, field.type)


def _restore_scalar(value: Any, field: Field) -> Any:
    """A scalar of the field's type; integers are truncated to its size, as Go converts them. Raises DecodeError."""
    go_kind, expected_type = _go_kind(value), field.type
    is_whole_number = go_kind == "int64" or (go_kind == "float64" and value.is_integer())
    if expected_type in _TRUNCATIONS and is_whole_number:
        return _TRUNCATIONS[expected_type](_int64(value))
    if expected_type == "bytes":
        _check_bytes(value)
    elif expected_type != go_kind and not (expected_type == "double" and go_kind in _NUMBER_KINDS):
        raise DecodeError(_mismatch_message(go_kind, field))
    return value


def _int64(number: float) -> int:
    """The number as int64: one that is too large was parsed as float64, which Go converts to the lowest int64."""
    return int(number) if numbers.INT64_MIN <= number <= numbers.INT64_MAX else numbers.INT64_MIN


def _mismatch_message(go_kind: str, field: Field) -> str:
    """The message about a scalar of another kind than its field."""
    expected_type = field.type
    if (go_kind, expected_type) == ("int64", "string") or (go_kind == "float64" and expected_type in _TRUNCATIONS):
        type_text = field.go_type if field.go_type and not (field.repeated or field.map) else expected_type
        return f"cannot convert {go_kind} to {type_text}"
    return f"unrecognized type: {'float64' if expected_type == 'double' else expected_type}"


def _check_bytes(value: Any) -> None:
    """Raise DecodeError unless `value` is base64 text, or a list, which `decoding` checks."""
    if isinstance(value, str):
        error = decode_values.base64_error(value)
        if error:
            raise DecodeError(f"error decoding from json: {error}")
    elif not isinstance(value, list):
        raise DecodeError(f"cannot restore slice from {_go_kind(value)}")


def _go_kind(value: Any) -> str:
    """Go's kind of a value that is not null."""
    return next(go_kind for python_type, go_kind in _GO_KINDS if isinstance(value, python_type))
