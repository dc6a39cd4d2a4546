"""Unstructured data put back into the fields of a type: what a strategic merge patch or an apply leaves behind.

Called by the API server, and where managed fields need an object in another version. This decoder is another one of
upstream's: it has other messages for values of the wrong type, and truncates integers that `decoding` refuses. All
other errors are those of `decoding`, which follows.

Source: the conversion of unstructured data in Kubernetes' apimachinery, measured for numbers out of range.
"""

from typing import Any

from podscaler.api.machinery import numbers
from podscaler.api.schema import decode_values, decoding, schema
from podscaler.api.schema.decoding import Decoded
from podscaler.api.schema.schema import Field
from podscaler.api.text.json_text import DecodeError

_KINDS = ((bool, "bool"), (int, "int64"), (float, "float64"), (str, "string"), (list, "slice"), (dict, "map"))
_NUMBERS = ("int64", "float64")
_CUT = {"int32": numbers.wrap32, "int64": numbers.wrap64, "uint32": numbers.wrap_unsigned32}


def decoded(value: Any, message: str) -> Decoded:
    """The object of unstructured data. Raises DecodeError in upstream's words; KeyError for an unknown message."""
    return decoding.decode_value(restored(value, message), message)


def restored(value: Any, message: str) -> Any:
    """The data with every integer as its field holds it; its types must be those of the message.

    Raises:
        DecodeError: in upstream's words: `cannot restore slice from string`.
    """
    if message in schema.OPAQUE:
        if value is not None and message not in schema.FREE_FORM:
            decoding.decode_value(value, message)
        return value
    if not isinstance(value, dict):
        raise DecodeError(f"cannot restore struct from: {_kind(value)}")
    found = {
        field.name: _field(value[field.name], field)
        for field in schema.get_message(message).json_fields()
        if value.get(field.name) is not None
    }
    return {**value, **found}


def _field(value: Any, field: Field) -> Any:
    if field.repeated:
        if not isinstance(value, list):
            raise DecodeError(f"cannot restore slice from {_kind(value)}")
        return [_element(item, field) for item in value]
    if field.map:
        if not isinstance(value, dict):
            raise DecodeError(f"cannot restore map from {_kind(value)}")
        return {key: _element(item, field) for key, item in value.items()}
    return _element(value, field)


def _element(value: Any, field: Field) -> Any:
    if value is None:
        return None
    return _scalar(value, field) if field.is_scalar else restored(value, field.type)


def _scalar(value: Any, field: Field) -> Any:
    kind, wanted = _kind(value), field.type
    if wanted in _CUT and (kind == "int64" or (kind == "float64" and value.is_integer())):
        return _CUT[wanted](_int64(value))
    if wanted == "bytes":
        _check_bytes(value)
    elif wanted != kind and not (wanted == "double" and kind in _NUMBERS):
        raise DecodeError(_mismatch(kind, field))
    return value


def _int64(number: float) -> int:
    """A number in 64 bits: one beyond them was read as a float, of which the conversion makes the lowest value."""
    return int(number) if numbers.INT64_MIN <= number <= numbers.INT64_MAX else numbers.INT64_MIN


def _mismatch(kind: str, field: Field) -> str:
    wanted = field.type
    if (kind, wanted) == ("int64", "string") or (kind == "float64" and wanted in _CUT):
        named = field.go_type if field.go_type and not (field.repeated or field.map) else wanted
        return f"cannot convert {kind} to {named}"
    return f"unrecognized type: {'float64' if wanted == 'double' else wanted}"


def _check_bytes(value: Any) -> None:
    """Bytes are text that must decode; a list is left to `decoding`."""
    if isinstance(value, str):
        fault = decode_values.base64_error(value)
        if fault:
            raise DecodeError(f"error decoding from json: {fault}")
    elif not isinstance(value, list):
        raise DecodeError(f"cannot restore slice from {_kind(value)}")


def _kind(value: Any) -> str:
    return next(name for known, name in _KINDS if isinstance(value, known))
