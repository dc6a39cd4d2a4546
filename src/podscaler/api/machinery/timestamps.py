"""Normalizes times in requests: meta/v1 Time (whole seconds) and MicroTime (six digits), with the errors of Go.

    seconds("2026-01-31T13:00:00.5+01:00")      "2026-01-31T12:00:00Z"

Called by the decoding of request bodies; `instants` converts times to numbers instead.

Theory of operation: a layout is a sequence of elements of Go's reference time `2006-01-02T15:04:05Z07:00`, each with a
pattern and the range of its number. The first element that does not match determines the error of Go's time.Parse.

Source: the documentation and observed errors of Go's time.Parse.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

RFC3339 = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO = "2006-01-02T15:04:05.000000Z07:00"


class _Element(NamedTuple):
    """One element of a layout: `_Element("01", two digits, "month", 1, 12)`.

    Attributes:
        text: in Go's reference time; errors quote it.
        pattern: what matches the element; its last group, if any, is the number.
        name: of the number; empty for punctuation.
        lowest, highest: the valid numbers.
    """

    text: str
    pattern: re.Pattern[str]
    name: str = ""
    lowest: int = 0
    highest: int = 9999


_TWO = re.compile(r"[0-9]{2}", re.ASCII)
_ZONE = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}", re.ASCII)
_DATE = (
    _Element("2006", re.compile(r"[0-9]{4}", re.ASCII), "year"),
    _Element("-", re.compile("-")),
    _Element("01", _TWO, "month", 1, 12),
    _Element("-", re.compile("-")),
    _Element("02", _TWO, "day"),
    _Element("T", re.compile("T")),
    _Element("15", _TWO, "hour", 0, 23),
    _Element(":", re.compile(":")),
    _Element("04", _TWO, "minute", 0, 59),
    _Element(":", re.compile(":")),
)
_SECONDS = (*_DATE, _Element("05", re.compile(r"([0-9]{2})(?:[.,][0-9]+)?", re.ASCII), "second", 0, 59))
_MICROS = (
    *_DATE,
    _Element("05", _TWO, "second", 0, 59),
    _Element(".000000", re.compile(r"[.,]([0-9]{6})", re.ASCII), "micro", 0, 999_999),
)


@lru_cache(maxsize=4096)
def seconds(text: str) -> str:
    """A Time as the API server prints it: UTC, whole seconds. Raises ValueError with Go's message."""
    return _formatted(_instant(text, RFC3339, _SECONDS), "seconds")


@lru_cache(maxsize=4096)
def micros(text: str) -> str:
    """A MicroTime as the API server prints it: UTC, six digits. Raises ValueError with Go's message."""
    return _formatted(_instant(text, RFC3339_MICRO, _MICROS), "microseconds")


def _formatted(at: datetime, timespec: str) -> str:
    return at.isoformat(timespec=timespec).replace("+00:00", "Z")


def _instant(text: str, layout: str, elements: tuple[_Element, ...]) -> datetime:
    """The instant of a text by the elements of a layout. Raises ValueError with the message of Go's time.Parse."""
    numbers: dict[str, int] = {}
    rest = text
    for element in elements:
        match = element.pattern.match(rest)
        if match is None:
            raise _mismatch(text, layout, rest, element.text)
        if element.name:
            numbers[element.name] = _number(text, element, match)
        rest = rest[match.end() :]
    offset, rest = _zone(text, layout, rest)
    if rest:
        raise ValueError(f"parsing time {_quoted(text)}: extra text: {_quoted(rest)}")
    return _utc(text, numbers, offset)


def _number(text: str, element: _Element, match: re.Match[str]) -> int:
    number = int(match[match.lastindex or 0])
    if not element.lowest <= number <= element.highest:
        raise ValueError(f"parsing time {_quoted(text)}: {element.name} out of range")
    return number


def _zone(text: str, layout: str, rest: str) -> tuple[timedelta, str]:
    """The offset from UTC at the beginning of `rest`, and what follows it."""
    match = _ZONE.match(rest)
    if match is None:
        raise _mismatch(text, layout, rest, "Z07:00")
    zone = match[0]
    if zone == "Z":
        return timedelta(), rest[1:]
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 24 or minutes > 60:
        part = "hour" if hours > 24 else "minute"
        raise ValueError(f"parsing time {_quoted(text)}: time zone offset {part} out of range")
    span = timedelta(hours=hours, minutes=minutes)
    return (-span if zone[0] == "-" else span), rest[match.end() :]


def _utc(text: str, numbers: dict[str, int], offset: timedelta) -> datetime:
    year, month, day, hour, minute, second = (numbers[element.name] for element in _SECONDS if element.name)
    try:
        return datetime(year, month, day, hour, minute, second, numbers.get("micro", 0), UTC) - offset
    except (ValueError, OverflowError):
        raise ValueError(f"parsing time {_quoted(text)}: day out of range") from None


def _mismatch(text: str, layout: str, rest: str, expected: str) -> ValueError:
    return ValueError(f'parsing time {_quoted(text)} as "{layout}": cannot parse {_quoted(rest)} as "{expected}"')


def _quoted(text: str) -> str:
    escaped = "".join(
        f"\\{character}" if character in '"\\' else character if " " <= character < "\x7f" else _bytes(character)
        for character in text
    )
    return f'"{escaped}"'


def _bytes(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", errors="surrogateescape"))
