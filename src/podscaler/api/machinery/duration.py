"""Parses and prints durations as Go does, for flags, metric windows and recordings; spans are integers, nanoseconds.

    parse("1m30s")          90_000_000_000
    text(1_500_000)         "1.5ms"

Source: the documentation of Go's package time (ParseDuration, Duration.String).
"""

import re
from functools import lru_cache

_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
"""The groups of `1.5h`: whole (`1`), fraction (`5`), unit (`h`)."""
_MAX_NS = 2**63 - 1


@lru_cache(maxsize=4096)
def parse(text: str) -> int:
    """The span in nanoseconds of a text: an optional sign, then terms like `1.5h`, `300ms`; or `0`.

    Fractions are truncated to nanoseconds. Raises ValueError with Go's message: `time: missing unit in duration "15"`.
    """
    unsigned = text[1:] if text[:1] in {"-", "+"} else text
    if unsigned == "0":
        return 0
    if not unsigned:
        raise _invalid(text)
    total_ns = sum(_term_ns(text, term) for term in _TERM.finditer(unsigned) if term[0])
    negative = text[0] == "-"
    if total_ns > _MAX_NS + negative:
        raise _invalid(text)
    return -total_ns if negative else total_ns


def _term_ns(text: str, term: re.Match[str]) -> int:
    """The nanoseconds of one term such as `1.5h`. Raises ValueError with Go's message."""
    whole, fraction, unit = term.groups(default="")
    if not (whole or fraction):
        raise _invalid(text)
    if not unit:
        raise ValueError(f'time: missing unit in duration "{text}"')
    if unit not in _UNIT_NS:
        raise ValueError(f'time: unknown unit "{unit}" in duration "{text}"')
    if len(whole) > 19:
        raise _invalid(text)
    digits = fraction[:18]
    fraction_ns: int = int(digits or 0) * _UNIT_NS[unit] // 10 ** len(digits)
    return int(whole or 0) * _UNIT_NS[unit] + fraction_ns


def _invalid(text: str) -> ValueError:
    return ValueError(f'time: invalid duration "{text}"')


def text(span_ns: int) -> str:
    """The span as Go prints it: `1h15m30.5s`, `1.5ms`, `0s`."""
    if span_ns == 0:
        return "0s"
    sign = "-" if span_ns < 0 else ""
    rest_ns = abs(span_ns)
    if rest_ns < 1_000_000_000:
        unit, unit_ns = next((unit, _UNIT_NS[unit]) for unit in ("ms", "µs", "ns") if rest_ns >= _UNIT_NS[unit])
        return f"{sign}{_decimal(rest_ns, unit_ns)}{unit}"
    minutes, below_minute_ns = divmod(rest_ns, _UNIT_NS["m"])
    hours, minutes = divmod(minutes, 60)
    shown_hours = f"{hours}h" if hours else ""
    shown_minutes = f"{minutes}m" if hours or minutes else ""
    return f"{sign}{shown_hours}{shown_minutes}{_decimal(below_minute_ns, _UNIT_NS['s'])}s"


def _decimal(amount_ns: int, unit_ns: int) -> str:
    whole, fraction = divmod(amount_ns, unit_ns)
    if not fraction:
        return str(whole)
    digits = len(str(unit_ns)) - 1
    return f"{whole}.{fraction:0{digits}d}".rstrip("0")
