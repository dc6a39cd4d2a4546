"""Decoders of single values: scalars, and messages with a JSON form of their own (quantities, times, IntOrString, ...).

Called by `decode_plan` with a value that is not null and the DecodeState. A decoder returns the value as the API server
prints it (`0.1` cpu is `100m`), or ABSENT where the server prints none; errors go to the state, or are raised. A
message with a JSON form of its own has an entry in OWN_FORMS and one in ZERO_VALUES; a new one, in `schema.OPAQUE` and
the tables of `openapi_schemas`, `protobuf.protobuf_json` and `managed_fields.message_types`, too.

Source: the behaviour of the Go types' UnmarshalJSON and MarshalJSON.
"""

import base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from podscaler.api.machinery import duration, quantity, timestamps
from podscaler.api.schema import schema
from podscaler.api.schema.decode_state import DecodeState, literal
from podscaler.api.text import json_text
from podscaler.api.text.json_text import DecodeError, Number

ABSENT: Final = object()
"""The result of a decoder for a value that is dropped."""

Decode = Callable[[Any, DecodeState], Any]
"""A decoder. Raises DecodeError only for messages with a JSON form of their own."""

_INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "uint32": (0, 2**32 - 1)}
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\r\n=")
_BASE64_GROUP = 4
"""The number of characters that encode three bytes."""
_BYTE_MAX = 255
_ZERO_TIME = "0001-01-01T00:00:00Z"
_ZERO_MICRO_TIME = "0001-01-01T00:00:00.000000Z"


def scalar_decoder(scalar_type: str, go_type: str) -> Decode:
    """The decoder of a scalar.

    Args:
        scalar_type: one of `schema.SCALARS`.
        go_type: the Go type, for errors: `v1.PodPhase`.
    """
    if scalar_type in _INTEGER_RANGES:
        return _integer_decoder(go_type, *_INTEGER_RANGES[scalar_type])
    if scalar_type == "bytes":
        return _decode_bytes
    if scalar_type == "double":
        return _double_decoder(go_type)
    return _exact_type_decoder({"string": str, "bool": bool}[scalar_type], go_type)


def _exact_type_decoder(python_type: type, go_type: str) -> Decode:
    """The decoder of values of one JSON type."""

    def decode(value: Any, state: DecodeState) -> Any:
        if type(value) is python_type:
            return value
        state.record_mismatch(value, go_type)
        return ABSENT

    return decode


def _integer_decoder(go_type: str, lowest: int, highest: int) -> Decode:
    """The decoder of integers within the bounds of the Go type."""

    def decode(value: Any, state: DecodeState) -> Any:
        if type(value) is int and lowest <= value <= highest:
            return value
        state.record_mismatch(value, go_type, is_number=True)
        return ABSENT

    return decode


def _double_decoder(go_type: str) -> Decode:
    """The decoder of numbers; one that Go cannot represent is a mismatch."""

    def decode(value: Any, state: DecodeState) -> Any:
        if type(value) is int:
            return value
        if isinstance(value, float) and abs(value) != float("inf"):
            return json_text.plain_number(value)
        state.record_mismatch(value, go_type, is_number=True)
        return ABSENT

    return decode


def _decode_bytes(value: Any, state: DecodeState) -> Any:
    """Decode base64, with Go's error, to base64 in its canonical form; a list of numbers is bytes too."""
    if type(value) is list:
        return _decode_byte_list(value, state)
    if type(value) is not str:
        state.record_mismatch(value, "[]uint8")
        return ABSENT
    error = base64_error(value)
    if error:
        state.error = state.error or error
        return ABSENT
    return base64.b64encode(_decode_base64(value)).decode()


def base64_error(base64_text: str) -> str:
    """Go's message about invalid base64; empty where `base64_text` is valid."""
    try:
        _decode_base64(base64_text)
    except ValueError:
        return f"illegal base64 data at input byte {_error_index(base64_text)}"
    return ""


def _decode_byte_list(value: list[Any], state: DecodeState) -> Any:
    """Go also reads bytes from a list of small numbers."""
    for byte in value:
        if type(byte) is not int or not 0 <= byte <= _BYTE_MAX:
            state.record_mismatch(byte, "uint8", is_number=True)
            return ABSENT
    return base64.b64encode(bytes(value)).decode()


def _decode_base64(base64_text: str) -> bytes:
    """The bytes of a base64 text; line breaks are allowed. Raises ValueError."""
    return base64.b64decode(base64_text.translate({ord("\r"): None, ord("\n"): None}), validate=True)


def _error_index(base64_text: str) -> int:
    """The number of bytes before the first character that is not valid base64, as Go reports it."""
    for index, character in enumerate(base64_text):
        if character not in _BASE64:
            return len(base64_text[:index].encode())
    padding_index = base64_text.find("=")
    if padding_index >= 0:
        digits_in_group = padding_index % _BASE64_GROUP
        if digits_in_group in {0, 1}:  # a group has at least two characters before its padding
            return padding_index
        return min(len(base64_text), padding_index + _BASE64_GROUP - digits_in_group)
    return len(base64_text) - len(base64_text) % _BASE64_GROUP


@lru_cache(maxsize=8192)
def _canonical_quantity(quantity_text: str) -> str:
    """A quantity's text as the API server prints it, without white space around it. Raises quantity.QuantityError."""
    return str(quantity.parse(quantity_text.strip(" \t\r\n\v\f\x85\xa0")))


def _decode_quantity(value: Any, state: DecodeState) -> Any:
    """Decode a quantity, a text or a number, to its canonical text. Raises DecodeError."""
    del state
    if isinstance(value, str):
        quantity_text = value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        quantity_text = literal(value)
    else:
        raise DecodeError(quantity.MALFORMED)
    try:
        return _canonical_quantity(quantity_text)
    except quantity.QuantityError as error:
        raise DecodeError(str(error)) from None


def _decode_time(value: Any, state: DecodeState) -> Any:
    """Decodes a Time; the zero time is dropped."""
    time_text = _parse_text(value, state, timestamps.normalize_time)
    return ABSENT if time_text == _ZERO_TIME else time_text


def _decode_micro_time(value: Any, state: DecodeState) -> Any:
    """Decodes a MicroTime; the zero time is dropped."""
    time_text = _parse_text(value, state, timestamps.normalize_micro_time)
    return ABSENT if time_text == _ZERO_MICRO_TIME else time_text


def _decode_duration(value: Any, state: DecodeState) -> Any:
    return _parse_text(value, state, lambda duration_text: duration.text(duration.parse(duration_text)))


def _parse_text(value: Any, state: DecodeState, parse: Callable[[str], str]) -> str:
    """The result of `parse` for a text. Raises DecodeError for its ValueError, and for a value that is no text."""
    if type(value) is not str:
        raise state.mismatch_error(value, "string")
    try:
        return parse(value)
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _decode_int_or_string(value: Any, state: DecodeState) -> Any:
    """An int32 or a text as it is. Raises DecodeError for another value."""
    lowest, highest = _INTEGER_RANGES["int32"]
    if type(value) is str or (type(value) is int and lowest <= value <= highest):
        return value
    raise state.mismatch_error(value, "int32", is_number=True)


def _decode_free_form(value: Any, state: DecodeState) -> Any:
    """Any JSON value, as plain data. Raises DecodeError for a number beyond a float64."""
    del state
    return json_text.plain(value) if isinstance(value, dict | list | Number) else value


OWN_FORMS: dict[str, Decode] = {
    schema.QUANTITY: _decode_quantity,
    schema.TIME: _decode_time,
    schema.MICRO_TIME: _decode_micro_time,
    schema.DURATION: _decode_duration,
    schema.INT_OR_STRING: _decode_int_or_string,
    schema.RAW_EXTENSION: _decode_free_form,
    schema.FIELDS_V1: _decode_free_form,
    schema.JSON: _decode_free_form,
}
"""Name of a message -> its decoder. `decode_plan` has those of `schema.UNIONS`, which contain other messages."""

ZERO_VALUES: dict[str, Any] = {
    schema.QUANTITY: "0",
    schema.DURATION: "0s",
    schema.INT_OR_STRING: 0,
    **dict.fromkeys((schema.TIME, schema.MICRO_TIME, *schema.FREE_FORM, *schema.UNIONS)),
    "string": "",
    "bytes": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "uint32": 0,
    "double": 0,
}
"""Type -> the JSON form of Go's zero value, which replaces null in a list or map; of other messages it is `{}`."""
