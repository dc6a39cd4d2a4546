"""The standard functions of CEL: `size`, conversions (`int('1')`), `contains`, `getHours`, ...; operator signatures.

`environment` joins FUNCTIONS, to which a new function is added, to the table of all functions. Conversions raise
EvaluationError for a value that they cannot convert. The operators (`_+_`) have signatures only, for the type checker;
`planning` evaluates them with `operators`.

Source: the CEL specification, "List of standard definitions"; cel-go's messages.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from podscaler.api.cel.library import operators, regex
from podscaler.api.cel.library.functions import Function, table
from podscaler.api.cel.values import numbers
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.cel.values.numbers import Uint
from podscaler.api.cel.values.values import Duration, Timestamp, TypeValue, type_name
from podscaler.api.machinery import duration, instants
from podscaler.api.text import quoting

_SECOND_NS = 1_000_000_000
_DIGITS_MAX = 40
"""Longer numbers are not parsed, which may take long: they are too large, but for leading zeros."""
_TRUE_TEXTS = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE_TEXTS = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _to_int(value: Any) -> int:
    """`int(value)`: seconds of a timestamp, nanoseconds of a duration, a double truncated."""
    if isinstance(value, str):
        return _parse_integer(value, "int", numbers.INT_MIN, numbers.INT_MAX)
    if isinstance(value, Timestamp):
        return value.at_ns // _SECOND_NS
    if isinstance(value, Duration):
        return value.span_ns
    if isinstance(value, float):
        if not -(2.0**63) < value < 2.0**63:
            raise EvaluationError("integer overflow")
        return int(value)
    return numbers.checked_int(int(value))


def _to_uint(value: Any) -> Uint:
    """`uint(value)`: a double truncated. Raises EvaluationError beyond uint64."""
    if isinstance(value, str):
        return Uint(_parse_integer(value, "uint", 0, numbers.UINT_MAX))
    if isinstance(value, float) and not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return numbers.checked_uint(int(value))


def _parse_integer(number_text: str, target_type: str, lowest: int, highest: int) -> int:
    """The number of a text, as Go's ParseInt or ParseUint reads it. Raises EvaluationError beyond the bounds."""
    may_have_sign = lowest < 0
    digits = number_text[1:] if may_have_sign and number_text[:1] in ("+", "-") else number_text
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX
    if not is_number or not lowest <= int(number_text) <= highest:
        raise EvaluationError(f"type conversion error from 'string' to '{target_type}'")
    return int(number_text)


def _to_double(value: Any) -> float:
    """`double(value)`; texts as Go's ParseFloat reads them, without space and underscores."""
    if not isinstance(value, str):
        return float(value)
    try:
        if value != value.strip() or "_" in value:
            raise ValueError
        return float(value)
    except ValueError:
        raise EvaluationError("type conversion error from 'string' to 'double'") from None


def _to_bool(value: Any) -> bool:
    """`bool(value)`; texts as Go's ParseBool reads them."""
    if isinstance(value, bool):
        return value
    if value in _TRUE_TEXTS or value in _FALSE_TEXTS:
        return value in _TRUE_TEXTS
    raise EvaluationError("type conversion error from 'string' to 'bool'")


def standard_text(value: Any) -> str:
    """The result of CEL's `string(value)` for a standard type. Raises EvaluationError (bytes that are not UTF-8)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return numbers.double_text(value)
    if isinstance(value, bytes):
        return _decode_utf8(value)
    if isinstance(value, Timestamp):
        return instant_text(value)
    if isinstance(value, Duration):
        return _span_text(value)
    return value.name if isinstance(value, TypeValue) else str(value)


def _decode_utf8(value: bytes) -> str:
    """The text of bytes. Raises EvaluationError if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def instant_text(value: Timestamp) -> str:
    """The timestamp in RFC 3339, with as many digits of a second as it needs."""
    offset_s = 0
    if value.zone != "Z":
        hours, _, minutes = value.zone[1:].partition(":")
        offset_s = (int(hours) * 3600 + int(minutes) * 60) * (-1 if value.zone[0] == "-" else 1)
    whole_seconds, nanoseconds = divmod(value.at_ns + offset_s * _SECOND_NS, _SECOND_NS)
    seconds_text = instants.text(whole_seconds * _SECOND_NS)[:-1]
    fraction = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
    return seconds_text + fraction + (value.zone if offset_s else "Z")


def _span_text(value: Duration) -> str:
    """The duration in seconds: `90s`, `0.5s`."""
    whole_seconds, nanoseconds = divmod(abs(value.span_ns), _SECOND_NS)
    fraction = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
    return f"{'-' if value.span_ns < 0 else ''}{whole_seconds}{fraction}s"


def _to_timestamp(value: Any) -> Timestamp:
    """`timestamp(value)`: of a text in RFC 3339, or of seconds since 1970."""
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, int):
        return operators.timestamp(value * _SECOND_NS)
    try:
        return parse_timestamp(value)
    except ValueError:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'") from None


def parse_timestamp(timestamp_text: str) -> Timestamp:
    """The timestamp of an RFC 3339 text. Raises ValueError (another text), EvaluationError (not in years 1 to 9999)."""
    at_ns = operators.timestamp(instants.parse(timestamp_text)).at_ns
    return Timestamp(at_ns, "Z" if timestamp_text[-1] in "zZ" else timestamp_text[-6:])


def _to_duration(value: Any) -> Duration:
    """`duration(value)`: of a text such as `1h30m`, or of nanoseconds."""
    if isinstance(value, Duration):
        return value
    if isinstance(value, int):
        return Duration(value)
    try:
        return Duration(duration.parse(value))
    except ValueError:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'") from None


def _timestamp_getter(getter: Callable[[datetime, int], int]) -> Function:
    """The method that returns a part of a timestamp, in UTC or in the time zone of its argument.

    Args:
        getter: from the time in that zone and the nanoseconds of its second to the part.
    """

    def call(value: Timestamp, zone: str = "") -> int:
        seconds, nanoseconds = divmod(value.at_ns, _SECOND_NS)
        try:
            local_time = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).astimezone(_parse_zone(zone))
        except OverflowError:
            raise EvaluationError("timestamp overflow") from None
        return getter(local_time, nanoseconds)

    return call


def _parse_zone(name: str) -> tzinfo:
    """The zone of `Europe/Berlin` or `+02:00`; UTC for an empty name. Raises EvaluationError for others."""
    if not name:
        return UTC
    hours, separator, minutes = name.partition(":")
    if not separator:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise EvaluationError(f"unknown time zone {name}") from None
    sign = -1 if name.startswith("-") else 1  # the hours have the sign themselves, the minutes do not
    offset_minutes = _parse_zone_number(hours) * 60 + sign * _parse_offset_minutes(minutes, name)
    if abs(offset_minutes) >= 24 * 60:
        raise EvaluationError(f"timezone offset out of range: {name}")
    return timezone(timedelta(minutes=offset_minutes))


def _parse_zone_number(number_text: str) -> int:
    """The hours or minutes of a zone. Raises EvaluationError with the message of Go's `strconv.Atoi`."""
    try:
        return int(number_text)
    except ValueError:
        raise EvaluationError(f"strconv.Atoi: parsing {quoting.quoted(number_text)}: invalid syntax") from None


def _parse_offset_minutes(minutes_text: str, zone: str) -> int:
    """The minutes of the offset of a zone. Raises EvaluationError, which names the zone, beyond 59."""
    minutes = _parse_zone_number(minutes_text)
    if 0 <= minutes <= 59:
        return minutes
    raise EvaluationError(f"timezone offset minutes out of range [0, 59]: {zone}")


def _duration_getter(unit_ns: int) -> Function:
    """The method that returns a duration in whole units, truncated; divides floats, as Go's Duration.Hours does."""
    return lambda span: math.trunc(span.span_ns / unit_ns)


_TIMESTAMP_GETTERS: dict[str, Callable[[datetime, int], int]] = {
    "getFullYear": lambda at, _: at.year,
    "getMonth": lambda at, _: at.month - 1,
    "getDayOfYear": lambda at, _: at.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda at, _: at.day - 1,
    "getDate": lambda at, _: at.day,
    "getDayOfWeek": lambda at, _: at.isoweekday() % 7,
    "getHours": lambda at, _: at.hour,
    "getMinutes": lambda at, _: at.minute,
    "getSeconds": lambda at, _: at.second,
    "getMilliseconds": lambda _, rest_ns: rest_ns // 1_000_000,
}


def _getter_functions() -> dict[str, Function]:
    """The methods such as `getHours()`, for timestamps with an optional time zone."""
    functions_by_name: dict[str, Function] = {}
    for name, getter in _TIMESTAMP_GETTERS.items():
        functions_by_name[f"timestamp.{name}() -> int"] = functions_by_name[f"timestamp.{name}(string) -> int"] = (
            _timestamp_getter(getter)
        )
    functions_by_name["duration.getHours() -> int"] = _duration_getter(3600 * _SECOND_NS)
    functions_by_name["duration.getMinutes() -> int"] = _duration_getter(60 * _SECOND_NS)
    functions_by_name["duration.getSeconds() -> int"] = _duration_getter(_SECOND_NS)
    functions_by_name["duration.getMilliseconds() -> int"] = _duration_getter(_SECOND_NS // 1000)
    return functions_by_name


def _conversion_functions() -> dict[str, Function]:
    """The overloads of the conversions, one for each type that they accept."""
    conversions = {
        "int": ("int, uint, double, string, timestamp, duration", _to_int),
        "uint": ("uint, int, double, string", _to_uint),
        "double": ("double, int, uint, string", _to_double),
        "string": ("string, bool, int, uint, double, bytes, timestamp, duration", standard_text),
        "bool": ("bool, string", _to_bool),
        "bytes": ("bytes, string", lambda value: value.encode() if isinstance(value, str) else value),
        "timestamp": ("timestamp, string, int", _to_timestamp),
        "duration": ("duration, string, int", _to_duration),
    }
    return {
        f"{name}({argument_type}) -> {name}": call
        for name, (argument_types, call) in conversions.items()
        for argument_type in argument_types.split(", ")
    }


def _size_functions() -> dict[str, Function]:
    """`size` as function and as method, for each type that has a size."""
    sized_types = ("string", "bytes", "list<T>", "map<K, V>")
    return {
        signature: len
        for sized_type in sized_types
        for signature in (f"{sized_type}.size() -> int", f"size({sized_type}) -> int")
    }


_COMPARABLE_PAIRS = (
    ("bool", "bool"), ("int", "int"), ("int", "double"), ("int", "uint"), ("uint", "uint"), ("uint", "double"),
    ("uint", "int"), ("double", "double"), ("double", "int"), ("double", "uint"), ("string", "string"),
    ("bytes", "bytes"), ("timestamp", "timestamp"), ("duration", "duration"),
)  # fmt: skip
"""Types between which `<`, `<=`, `>` and `>=` are defined."""
# the ends of the signatures of `_+_`, `_-_`, and of the other arithmetic operators
_PLUS_SIGNATURES = (
    "bytes, bytes) -> bytes", "double, double) -> double", "duration, duration) -> duration",
    "duration, timestamp) -> timestamp", "timestamp, duration) -> timestamp", "int, int) -> int",
    "list<A>, list<A>) -> list<A>", "string, string) -> string", "uint, uint) -> uint",
)  # fmt: skip
_MINUS_SIGNATURES = (
    "double, double) -> double", "duration, duration) -> duration", "int, int) -> int",
    "timestamp, duration) -> timestamp", "timestamp, timestamp) -> duration", "uint, uint) -> uint",
)  # fmt: skip
_NUMERIC_SIGNATURES = tuple(f"{one}, {one}) -> {one}" for one in ("double", "int", "uint"))


def _never_called(*args: Any) -> Any:
    """Stands for the implementation of operators: `planning` evaluates them without this table."""
    raise EvaluationError(f"operator called with {len(args)} values")


def _operator_signatures() -> dict[str, Function]:
    """The signatures of the operators, which only the checker needs: `planning` evaluates them itself."""
    signatures = [f"{name}(A, A) -> bool" for name in ("_==_", "_!=_")]
    signatures += [
        f"{name}({left_type}, {right_type}) -> bool"
        for name in ("_<_", "_<=_", "_>_", "_>=_")
        for left_type, right_type in _COMPARABLE_PAIRS
    ]
    signatures += [f"_+_({operand_types}" for operand_types in _PLUS_SIGNATURES] + [
        f"_-_({operand_types}" for operand_types in _MINUS_SIGNATURES
    ]
    signatures += [f"{name}({operand_types}" for name in ("_*_", "_/_") for operand_types in _NUMERIC_SIGNATURES]
    signatures += [f"_%_({operand_types}" for operand_types in _NUMERIC_SIGNATURES[1:]]
    signatures += ["_&&_(bool, bool) -> bool", "_||_(bool, bool) -> bool", "!_(bool) -> bool", "_?_:_(bool, A, A) -> A"]
    signatures += ["-_(double) -> double", "-_(int) -> int", "@in(A, list<A>) -> bool", "@in(A, map<A, B>) -> bool"]
    signatures += ["_[_](list<A>, int) -> A", "_[_](map<A, B>, A) -> B"]
    signatures += [
        ":cel.@mapInsert(map<A, B>, A, B) -> map<A, B>",
        ":cel.@mapInsert(map<A, B>, map<A, B>) -> map<A, B>",
    ]
    return dict.fromkeys(signatures, _never_called)


FUNCTIONS = table(
    _operator_signatures()
    | _conversion_functions()
    | _size_functions()
    | _getter_functions()
    | {
        "dyn(A) -> dyn": lambda value: value,
        "type(A) -> type<A>": lambda value: TypeValue(type_name(value)),
        "string.contains(string) -> bool": lambda value, part: part in value,
        "string.startsWith(string) -> bool": str.startswith,
        "string.endsWith(string) -> bool": str.endswith,
        "string.matches(string) -> bool": regex.matches,
        "matches(string, string) -> bool": regex.matches,
    }
)
