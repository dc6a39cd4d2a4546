"""Decoders of single values: scalars, and messages with a JSON form of their own (quantities, times, IntOrString, ...).

Called by `decode_plan` with a value that is not null and the DecodeState. A decoder returns the value as the API server
prints it (`0.1` cpu is `100m`), or ABSENT where the server prints none; errors go to the state, or are raised.

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
from podscaler.api.text.json_text import Number

ABSENT: Final = object()
"""The result of a decoder for a value that is dropped."""

Decode = Callable[[Any, DecodeState], Any]
"""A decoder. Raises DecodeError only for messages with a JSON form of their own."""

_INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "uint32": (0, 2**32 - 1)}
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\r\n=")
_ZERO_TIME = "0001-01-01T00:00:00Z"
_ZERO_MICRO_TIME = "0001-01-01T00:00:00.000000Z"


def scalar(kind: str, go_type: str) -> Decode:
    """The decoder of a scalar of the schema whose Go type is called `go_type` (`v1.PodPhase`)."""
    if kind in _INTEGER_RANGES:
        return _integer(go_type, *_INTEGER_RANGES[kind])
    if kind == "bytes":
        return _bytes
    return _double(go_type) if kind == "double" else _exactly({"string": str, "bool": bool}[kind], go_type)


def _exactly(kind: type, go_type: str) -> Decode:
    """The decoder of values of one JSON type."""

    def decode(value: Any, state: DecodeState) -> Any:
        if type(value) is kind:
            return value
        state.mismatch(value, go_type)
        return ABSENT

    return decode


def _integer(go_type: str, lowest: int, highest: int) -> Decode:
    """The decoder of integers within the bounds of the Go type."""

    def decode(value: Any, state: DecodeState) -> Any:
        if type(value) is int and lowest <= value <= highest:
            return value
        state.mismatch(value, go_type, is_number=True)
        return ABSENT

    return decode


def _double(go_type: str) -> Decode:
    """The decoder of numbers; one that Go cannot represent is a mismatch."""

    def decode(value: Any, state: DecodeState) -> Any:
        if type(value) is int:
            return value
        if isinstance(value, float) and abs(value) != float("inf"):
            return json_text.plain_number(value)
        state.mismatch(value, go_type, is_number=True)
        return ABSENT

    return decode


def _bytes(value: Any, state: DecodeState) -> Any:
    """Decode base64, with Go's error, to base64 in its canonical form; a list of numbers is bytes too."""
    if type(value) is list:
        return _byte_list(value, state)
    if type(value) is not str:
        state.mismatch(value, "[]uint8")
        return ABSENT
    error = base64_error(value)
    if error:
        state.error = state.error or error
        return ABSENT
    return base64.b64encode(_decoded_base64(value)).decode()


def base64_error(text: str) -> str:
    """Go's message about invalid base64; empty where `text` is valid."""
    try:
        _decoded_base64(text)
    except ValueError:
        return f"illegal base64 data at input byte {_error_index(text)}"
    return ""


def _byte_list(value: list[Any], state: DecodeState) -> Any:
    """Go also reads bytes from a list of small numbers."""
    for item in value:
        if type(item) is not int or not 0 <= item <= 255:
            state.mismatch(item, "uint8", is_number=True)
            return ABSENT
    return base64.b64encode(bytes(value)).decode()


def _decoded_base64(text: str) -> bytes:
    return base64.b64decode(text.translate({ord("\r"): None, ord("\n"): None}), validate=True)


def _error_index(text: str) -> int:
    """The number of bytes before the first character that is not valid base64, as Go reports it."""
    for index, character in enumerate(text):
        if character not in _BASE64:
            return len(text[:index].encode())
    padding = text.find("=")
    if padding >= 0:
        begun = padding % 4
        return padding if begun in {0, 1} else min(len(text), padding + 4 - begun)
    return len(text) - len(text) % 4


@lru_cache(maxsize=8192)
def canonical_quantity(text: str) -> str:
    """A quantity's text as the API server prints it. Raises quantity.QuantityError."""
    return str(quantity.parse(text.strip(" \t\r\n\v\f\x85\xa0")))


def _quantity(value: Any, state: DecodeState) -> Any:
    """Decode a quantity, a text or a number, to its canonical text."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = literal(value)
    else:
        raise state.fail(quantity.MALFORMED)
    try:
        return canonical_quantity(text)
    except quantity.QuantityError as error:
        raise state.fail(str(error)) from None


def _time(value: Any, state: DecodeState) -> Any:
    text = _own_text(value, state, timestamps.seconds)
    return ABSENT if text == _ZERO_TIME else text


def _micro_time(value: Any, state: DecodeState) -> Any:
    text = _own_text(value, state, timestamps.micros)
    return ABSENT if text == _ZERO_MICRO_TIME else text


def _duration(value: Any, state: DecodeState) -> Any:
    return _own_text(value, state, lambda text: duration.text(duration.parse(text)))


def _own_text(value: Any, state: DecodeState, parse: Callable[[str], str]) -> str:
    """Decode a text with a parser of its own, whose error ends the decoding."""
    if type(value) is not str:
        raise state.wrong_kind(value, "string")
    try:
        return parse(value)
    except ValueError as error:
        raise state.fail(str(error)) from None


def _int_or_string(value: Any, state: DecodeState) -> Any:
    lowest, highest = _INTEGER_RANGES["int32"]
    if type(value) is str or (type(value) is int and lowest <= value <= highest):
        return value
    raise state.wrong_kind(value, "int32", is_number=True)


def _free_form(value: Any, state: DecodeState) -> Any:
    del state
    return json_text.plain(value) if isinstance(value, dict | list | Number) else value


OWN_FORMS: dict[str, Decode] = {
    schema.QUANTITY: _quantity,
    schema.TIME: _time,
    schema.MICRO_TIME: _micro_time,
    schema.DURATION: _duration,
    schema.INT_OR_STRING: _int_or_string,
    schema.RAW_EXTENSION: _free_form,
    schema.FIELDS_V1: _free_form,
    schema.JSON: _free_form,
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
