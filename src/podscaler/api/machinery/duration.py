"""Parses and prints durations as Go does, for flags, metric windows and recordings; spans are integers, nanoseconds.

    parse("1m30s")          90_000_000_000
    text(1_500_000)         "1.5ms"

Called wherever such a text is read or written, also by CEL (`podscaler.api.cel.library.standard`).

Source: the documentation of Go's package time (ParseDuration, Duration.String).
"""

import re
from functools import lru_cache

_MICROSECOND = "\u00b5s"
"""The unit as Go prints it, with the micro sign."""
_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    _MICROSECOND: 1_000,
    "\u03bcs": 1_000,  # with the Greek letter mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
"""The groups of `1.5h`: whole (`1`), fraction (`5`), unit (`h`)."""
_MAX_NS = 2**63 - 1
_MAX_NEGATIVE_NS = 2**63
"""The longest spans that an int64 holds, as numbers without sign."""
_WHOLE_MAX_DIGITS = 19
"""A number with more significant digits is beyond int64."""
_FRACTION_MAX_DIGITS = 18
"""Go ignores further digits of a fraction."""


@lru_cache(maxsize=4096)
def parse(duration_text: str) -> int:
    """The span in nanoseconds of a text: an optional sign, then terms like `1.5h`, `300ms`; or `0`.

    Fractions are truncated to nanoseconds. Raises ValueError with Go's message (`time: missing unit in duration "15"`);
    also for a span that is no int64.
    """
    unsigned_text = duration_text[1:] if duration_text[:1] in {"-", "+"} else duration_text
    if unsigned_text == "0":
        return 0
    if not unsigned_text:
        raise _invalid_error(duration_text)
    terms = [term for term in _TERM.finditer(unsigned_text) if term[0]]  # without the empty match at the end
    total_ns = sum(_term_ns(duration_text, term) for term in terms)
    is_negative = duration_text[0] == "-"
    if total_ns > (_MAX_NEGATIVE_NS if is_negative else _MAX_NS):
        raise _invalid_error(duration_text)
    return -total_ns if is_negative else total_ns


def _term_ns(duration_text: str, term: re.Match[str]) -> int:
    """The nanoseconds of one term such as `1.5h`. Raises ValueError with Go's message."""
    whole, fraction, unit = term.groups(default="")
    if not (whole or fraction):
        raise _invalid_error(duration_text)
    if not unit:
        raise ValueError(f'time: missing unit in duration "{duration_text}"')
    if unit not in _UNIT_NS:
        raise ValueError(f'time: unknown unit "{unit}" in duration "{duration_text}"')
    if len(whole.lstrip("0")) > _WHOLE_MAX_DIGITS:
        raise _invalid_error(duration_text)
    digits = fraction[:_FRACTION_MAX_DIGITS]
    fraction_ns: int = int(digits or 0) * _UNIT_NS[unit] // 10 ** len(digits)
    return int(whole or 0) * _UNIT_NS[unit] + fraction_ns


def _invalid_error(duration_text: str) -> ValueError:
    return ValueError(f'time: invalid duration "{duration_text}"')


def text(span_ns: int) -> str:
    """The span as Go prints it: `1h15m30.5s`, `1.5ms`, `0s`."""
    if span_ns == 0:
        return "0s"
    sign = "-" if span_ns < 0 else ""
    magnitude_ns = abs(span_ns)
    if magnitude_ns < _UNIT_NS["s"]:
        unit = next(unit for unit in ("ms", _MICROSECOND, "ns") if magnitude_ns >= _UNIT_NS[unit])
        return f"{sign}{_decimal_text(magnitude_ns, _UNIT_NS[unit])}{unit}"
    minutes, below_minute_ns = divmod(magnitude_ns, _UNIT_NS["m"])
    hours, minutes = divmod(minutes, 60)
    hours_text = f"{hours}h" if hours else ""
    minutes_text = f"{minutes}m" if hours or minutes else ""
    return f"{sign}{hours_text}{minutes_text}{_decimal_text(below_minute_ns, _UNIT_NS['s'])}s"


def _decimal_text(amount_ns: int, unit_ns: int) -> str:
    """An amount in a unit, with the digits of its fraction and no zeros at their end: `1.5`."""
    whole, fraction = divmod(amount_ns, unit_ns)
    if not fraction:
        return str(whole)
    digits = len(str(unit_ns)) - 1
    return f"{whole}.{fraction:0{digits}d}".rstrip("0")
