"""Normalizes times in requests: meta/v1 Time (whole seconds) and MicroTime (six digits), with the errors of Go.

    normalize_time("2026-01-31T13:00:00.5+01:00")      "2026-01-31T12:00:00Z"

Called by `podscaler.api.schema.decode_values` for request bodies; `instants` converts times to numbers instead.

Theory of operation: a layout is a sequence of elements of Go's reference time `2006-01-02T15:04:05Z07:00`, each with a
pattern and the range of its number. The first element that does not match determines the error of Go's time.Parse.

Source: the documentation and observed errors of Go's time.Parse.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

_RFC3339 = "2006-01-02T15:04:05Z07:00"
_RFC3339_MICRO = "2006-01-02T15:04:05.000000Z07:00"


class _Element(NamedTuple):
    """One element of a layout: `_Element("01", two digits, "month", 1, 12)`.

    Attributes:
        text: the element in Go's reference time; errors quote it.
        pattern: it matches the element; its last group, if any, is the number.
        name: the name of the number; empty for punctuation.
        lowest, highest: the valid numbers; a day that its month does not have is found later (`_to_utc`).
    """

    text: str
    pattern: re.Pattern[str]
    name: str = ""
    lowest: int = 0
    highest: int = 9999


_TWO_DIGITS = re.compile(r"[0-9]{2}", re.ASCII)
_OFFSET_HOURS_MAX, _OFFSET_MINUTES_MAX = 24, 60
"""The largest offset from UTC that Go accepts."""
_ZONE = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}", re.ASCII)
_DATE_TO_MINUTE = (
    _Element("2006", re.compile(r"[0-9]{4}", re.ASCII), "year"),
    _Element("-", re.compile("-")),
    _Element("01", _TWO_DIGITS, "month", 1, 12),
    _Element("-", re.compile("-")),
    _Element("02", _TWO_DIGITS, "day"),
    _Element("T", re.compile("T")),
    _Element("15", _TWO_DIGITS, "hour", 0, 23),
    _Element(":", re.compile(":")),
    _Element("04", _TWO_DIGITS, "minute", 0, 59),
    _Element(":", re.compile(":")),
)
# Go accepts a comma as the decimal point, and a fraction that the layout does not have
_TIME_ELEMENTS = (*_DATE_TO_MINUTE, _Element("05", re.compile(r"([0-9]{2})(?:[.,][0-9]+)?", re.ASCII), "second", 0, 59))
_MICRO_TIME_ELEMENTS = (
    *_DATE_TO_MINUTE,
    _Element("05", _TWO_DIGITS, "second", 0, 59),
    _Element(".000000", re.compile(r"[.,]([0-9]{6})", re.ASCII), "micro", 0, 999_999),
)


@lru_cache(maxsize=4096)
def normalize_time(time_text: str) -> str:
    """A Time as the API server prints it: UTC, whole seconds. Raises ValueError with Go's message."""
    return _print_utc(_parse_instant(time_text, _RFC3339, _TIME_ELEMENTS), "seconds")


@lru_cache(maxsize=4096)
def normalize_micro_time(time_text: str) -> str:
    """A MicroTime as the API server prints it: UTC, six digits. Raises ValueError with Go's message."""
    return _print_utc(_parse_instant(time_text, _RFC3339_MICRO, _MICRO_TIME_ELEMENTS), "microseconds")


def _print_utc(instant: datetime, timespec: str) -> str:
    return instant.isoformat(timespec=timespec).replace("+00:00", "Z")


def _parse_instant(time_text: str, layout: str, elements: tuple[_Element, ...]) -> datetime:
    """The instant of a text by the elements of a layout. Raises ValueError with the message of Go's time.Parse."""
    numbers: dict[str, int] = {}
    remaining = time_text
    for element in elements:
        match = element.pattern.match(remaining)
        if match is None:
            raise _mismatch_error(time_text, layout, remaining, element.text)
        if element.name:
            numbers[element.name] = _element_number(time_text, element, match)
        remaining = remaining[match.end() :]
    offset, remaining = _parse_zone(time_text, layout, remaining)
    if remaining:
        raise ValueError(f"parsing time {_quoted(time_text)}: extra text: {_quoted(remaining)}")
    return _to_utc(time_text, numbers, offset)


def _element_number(time_text: str, element: _Element, match: re.Match[str]) -> int:
    """The number of an element; `time_text` is the whole time, for errors. Raises ValueError if it is out of range."""
    number = int(match[match.lastindex or 0])
    if not element.lowest <= number <= element.highest:
        raise ValueError(f"parsing time {_quoted(time_text)}: {element.name} out of range")
    return number


def _parse_zone(time_text: str, layout: str, remaining: str) -> tuple[timedelta, str]:
    """The offset from UTC at the beginning of `remaining`, and the text after it. Raises ValueError."""
    match = _ZONE.match(remaining)
    if match is None:
        raise _mismatch_error(time_text, layout, remaining, "Z07:00")
    zone = match[0]
    if zone == "Z":
        return timedelta(), remaining[1:]
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > _OFFSET_HOURS_MAX or minutes > _OFFSET_MINUTES_MAX:
        unit = "hour" if hours > _OFFSET_HOURS_MAX else "minute"
        raise ValueError(f"parsing time {_quoted(time_text)}: time zone offset {unit} out of range")
    offset = timedelta(hours=hours, minutes=minutes)
    return (-offset if zone[0] == "-" else offset), remaining[match.end() :]


def _to_utc(time_text: str, numbers: dict[str, int], offset: timedelta) -> datetime:
    """The instant of the numbers of the elements. Raises ValueError for a day that the month does not have.

    Differs: the year 0, and an offset that leads beyond the years 1 to 9999, have the same error.
    """
    try:
        local = datetime(
            numbers["year"],
            numbers["month"],
            numbers["day"],
            numbers["hour"],
            numbers["minute"],
            numbers["second"],
            numbers.get("micro", 0),
            UTC,
        )
        return local - offset
    except (ValueError, OverflowError):
        raise ValueError(f"parsing time {_quoted(time_text)}: day out of range") from None


def _mismatch_error(time_text: str, layout: str, remaining: str, expected: str) -> ValueError:
    """The error that `remaining`, the end of `time_text`, does not begin with the element `expected` of the layout."""
    return ValueError(
        f'parsing time {_quoted(time_text)} as "{layout}": cannot parse {_quoted(remaining)} as "{expected}"'
    )


def _quoted(text: str) -> str:
    """A text in quotes as Go's package time quotes it: bytes outside of printable ASCII are escaped."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    """A character as Go's package time writes it in quotes."""
    if character in '"\\':
        return f"\\{character}"
    if " " <= character < "\x7f":
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", errors="surrogateescape"))
