"""Parses and encodes JSON as a Kubernetes API server does: Go's syntax errors, exact numbers, Go's escapes.

    parse(b'{"a": 1.50, "a": 2}')      Repeated({"a": 2}) with pairs [("a", Number("1.50")), ("a", 2)]
    encode({"a": "<"})                 b'{"a":"\\u003c"}'

`parse` is called for every request body, `encode` for JSON that must equal kube-apiserver's byte for byte.

Invariants: `parse` accepts the same texts as Go's encoding/json, and raises its messages for others; invalid UTF-8 and
lone surrogates become U+FFFD, as in Go. Numbers with a fraction or exponent become `Number`, which keeps the literal,
objects with repeated keys `Repeated`; everything else is plain data.
"""

import codecs
import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

import msgspec

from podscaler.api.text import json_syntax

MAX_DEPTH = 200
"""The deepest nesting that is accepted. Differs: Go's limit is 10,000, for which Python's stack is too small; no object
of the API is nested so deeply."""
TOO_DEEP = "exceeded max depth"
"""The message for a text that is nested deeper."""

_SAFE_INTEGER_CHARACTERS = 19
"""Texts of at most this length, with the sign, are integers of 64 bits; of longer ones only some are."""
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_INFINITE = (float("inf"), float("-inf"))
_EXPONENT_BELOW = 1e-6
_EXPONENT_FROM = 1e21
"""Go writes smaller and larger numbers with an exponent."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


class DecodeError(ValueError):
    """A body cannot be decoded; str() is the decoder's message, which the API server completes."""


class Number(float):
    """A JSON number with fraction or exponent (or beyond 64 bits).

    Attributes:
        text: the literal as the client wrote it.
    """

    text: str

    def __new__(cls, text: str) -> "Number":
        number = super().__new__(cls, text)
        number.text = text
        return number


class Repeated(dict[str, Any]):
    """An object with repeated keys, as a dict with the last value of each key.

    Attributes:
        pairs: all (key, value), in order.
    """

    pairs: list[tuple[str, Any]]


def parse(body: bytes) -> Any:
    """The value of a JSON text. Raises DecodeError with Go's message (`unexpected end of JSON input`)."""
    text = decode_utf8(body)
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _check_depth(text)
    try:
        value = _decode(text)
    except ValueError:
        raise DecodeError(json_syntax.find_error(body)) from None
    except RecursionError:
        raise DecodeError(TOO_DEEP) from None
    return _without_lone_surrogates(value) if _SURROGATE_ESCAPE.search(text) else value


def decode_utf8(text: bytes) -> str:
    """The text as Go decodes it: each invalid byte becomes one U+FFFD."""
    return text.decode("utf-8", errors=_REPLACE_EACH_BYTE)


def _replace_byte(error: UnicodeError) -> tuple[str, int]:
    """The replacement of the first invalid byte, and the position after it: the codec goes on there."""
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd", error.start + 1


_REPLACE_EACH_BYTE = "podscaler-each-byte"
codecs.register_error(_REPLACE_EACH_BYTE, _replace_byte)


def _decode(text: str) -> Any:
    """The value of a JSON text. Raises ValueError; also for a byte order mark, which Go does not accept."""
    if text.startswith("\ufeff"):
        raise ValueError
    return _DECODER.decode(text)


def _check_depth(text: str) -> None:
    """Raises DecodeError if brackets are nested deeper than MAX_DEPTH."""
    depth = 0
    for match in _NESTING.finditer(text):
        bracket = match[0]
        if bracket in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise DecodeError(TOO_DEEP)
        elif bracket in "]}":
            depth -= 1


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members as a dict; as `Repeated`, which has all pairs, if a name is repeated."""
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeated = Repeated(members)
    repeated.pairs = pairs
    return repeated


def _parse_integer(digits: str) -> int | Number:
    return int(digits) if len(digits) <= _SAFE_INTEGER_CHARACTERS else _parse_large_integer(digits)


def _parse_large_integer(digits: str) -> int | Number:
    """A number of 20 characters as an integer if it fits an int64 or uint64; else a Number."""
    if len(digits) == _SAFE_INTEGER_CHARACTERS + 1 and -(2**63) <= int(digits) < 2**64:
        return int(digits)
    return Number(digits)


def _reject_constant(text: str) -> NoReturn:
    """Rejects `NaN` and `Infinity`, which Python's decoder accepts and Go's does not."""
    raise ValueError(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_of_pairs,
    parse_float=Number,
    parse_int=_parse_integer,
    parse_constant=_reject_constant,
    strict=True,
)


def _without_lone_surrogates(value: Any) -> Any:
    """The value with U+FFFD in place of each half of a surrogate pair, as Go reads them."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_lone_surrogates(member) for member in value]
    if isinstance(value, Repeated):
        return _object_of_pairs(
            [(_LONE_SURROGATE.sub("\ufffd", key), _without_lone_surrogates(member)) for key, member in value.pairs]
        )
    if isinstance(value, dict):
        return _object_of_pairs(
            [(_LONE_SURROGATE.sub("\ufffd", key), _without_lone_surrogates(member)) for key, member in value.items()]
        )
    return value


def plain(value: Any) -> Any:
    """A parsed value with dicts, ints and floats in place of Repeated and Number.

    Raises DecodeError if a number is beyond a float64.
    """
    return _with_numbers(value, plain_number)


def plain_where_finite(value: Any) -> Any:
    """As `plain`, but numbers beyond a float64 stay `Number`; the decoder of the field reports them."""
    return _with_numbers(value, lambda number: number if number in _INFINITE else plain_number(number))


def literal_text(value: Any) -> str:
    """The JSON text of a parsed value, with numbers beyond a float64 as the client wrote them."""
    return encode(_with_numbers(value, _literal_if_infinite)).decode()


def _literal_if_infinite(number: Number) -> Any:
    """The number as the client wrote it if it is beyond a float64, else as Go prints it."""
    return msgspec.Raw(number.text.encode()) if number in _INFINITE else plain_number(number)


def _with_numbers(value: Any, convert: Callable[[Number], Any]) -> Any:
    """A copy of a parsed value with `convert` applied to each Number, and plain dicts in place of Repeated."""
    if isinstance(value, dict):
        return {key: _with_numbers(member, convert) for key, member in value.items()}
    if isinstance(value, list):
        return [_with_numbers(member, convert) for member in value]
    return convert(value) if isinstance(value, Number) else value


def plain_number(number: float) -> int | float:
    """The number as Go's encoder prints a float64: without a fraction where it has none (`10.0` is `10`).

    Raises DecodeError if it is beyond a float64.
    """
    if number in _INFINITE:
        number_text = number.text if isinstance(number, Number) else number
        raise DecodeError(f"json: cannot unmarshal number {number_text} into Go value of type float64")
    is_whole = abs(number) < _EXPONENT_FROM and number == int(number)
    is_negative_zero = not number and math.copysign(1.0, number) < 0
    return int(number) if is_whole and not is_negative_zero else float(number)


def _float_text(number: float) -> str:
    """A finite float64 as Go's encoding/json writes it: with an exponent below 1e-6 and from 1e21 on."""
    shortest = repr(float(number))
    if number and not _EXPONENT_BELOW <= abs(number) < _EXPONENT_FROM:
        return shortest.replace("e-0", "e-")
    return format(Decimal(shortest), "f").removesuffix(".0")


def encode(value: Any) -> bytes:
    """The JSON text of plain data, with `<`, `>`, `&` and the line separators escaped as Go escapes them.

    Floats are written as `_float_text` has them.
    """
    json_bytes = _encode(value)
    if _WHOLE_FLOAT.search(json_bytes) or _WITH_EXPONENT.search(json_bytes):
        json_bytes = _STRING_OR_NUMBER.sub(_rewrite_float, json_bytes)
    for character, escape in _ASCII_ESCAPES if json_bytes.isascii() else _ESCAPES:
        if character in json_bytes:
            json_bytes = json_bytes.replace(character, escape)
    return json_bytes


def _rewrite_float(match: re.Match[bytes]) -> bytes:
    """A float as Go writes it; strings, which the pattern matches as well, stay."""
    number = match["float"]
    if number is None or math.isinf(float(number)):
        return match[0]
    return _float_text(float(number)).encode()


_encode = msgspec.json.Encoder().encode
# Floats that msgspec writes differently from Go; both also match some strings.
_WHOLE_FLOAT = re.compile(rb"\.0(?:[,}\]]|$)")
_WITH_EXPONENT = re.compile(rb"e[-0-9][0-9]*(?:[,}\]]|$)")
_STRING_OR_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"|(?P<float>-?[0-9]+(?:\.[0-9]+(?:e-?[0-9]+)?|e-?[0-9]+))')
_ASCII_ESCAPES = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
_ESCAPES = (*_ASCII_ESCAPES, ("\u2028".encode(), b"\\u2028"), ("\u2029".encode(), b"\\u2029"))
