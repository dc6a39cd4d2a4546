"""Formats numbers, spans and lists for explanations: 250000000000 ns are `4 min 10 s`.

Called by all modules of this package. Amounts are thousandths, spans and instants nanoseconds.
"""

import math
from collections.abc import Sequence

from podscaler.api.machinery import instants
from podscaler.core.model import status_text
from podscaler.core.model.settings import SECOND_NS

MILLISECOND_NS = 1_000_000
NAMES_SHOWN = 5
SUFFIXED_FROM_MILLI = 10**15
"""From this amount on (10^12), numbers have a suffix."""
_SPAN_UNITS_S = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_BYTE_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def span(span_ns: int) -> str:
    """A span by its two largest units, cut: `4 min 10 s`, `1 h 5 min`, `200 ms`, `0 s`."""
    if 0 < span_ns < SECOND_NS:
        return f"{max(span_ns // MILLISECOND_NS, 1)} ms"
    rest_s = span_ns // SECOND_NS
    parts: list[tuple[int, str]] = []
    for unit_s, unit in _SPAN_UNITS_S:
        amount, rest_s = divmod(rest_s, unit_s)
        if amount or parts:
            parts.append((amount, unit))
    return " ".join(f"{amount} {unit}" for amount, unit in parts[:2] if amount) or "0 s"


def wait(span_ns: int) -> str:
    """As `span`, rounded up to seconds, without the last nanosecond (a window ends after its last instant)."""
    seconds = -(-(span_ns - 1) // SECOND_NS)  # rounded up
    return span(seconds * SECOND_NS)


def age(at: int, now: int) -> str:
    """How long ago `at` is: `50 s ago`, `just now`."""
    return f"{span(now - at)} ago" if now - at >= SECOND_NS else "just now"


def clock_time(at: int) -> str:
    """The time of day of an instant: `10:02:45Z`."""
    return instants.text(at).partition("T")[2]


def count(number: int, noun: str) -> str:
    """A number of things: `1 pod`, `3 pods`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(items: Sequence[str], shown: int = NAMES_SHOWN) -> str:
    """The first items, and how many more there are: `a, b and 3 more`."""
    if len(items) <= shown + 1:
        return ", ".join(items)
    return f"{', '.join(items[:shown])} and {len(items) - shown} more"


def number(value: float) -> str:
    """A ratio: four digits, `infinite`, or `not a number`."""
    if math.isnan(value):
        return "not a number"
    return f"{value:.4g}" if math.isfinite(value) else f"{'-' if value < 0 else ''}infinite"


def amount(milli: int, resource: str = "") -> str:
    """An amount: cpu in thousandths of a core, memory in binary units, all else as a decimal number."""
    if resource == "cpu":
        return f"{milli}m"
    if resource == "memory":
        return _bytes(milli)
    return plain(milli)


def plain(milli: int) -> str:
    """Thousandths as a decimal number: `12.5`; very large ones with a suffix."""
    if abs(milli) >= SUFFIXED_FROM_MILLI:
        return status_text.decimal(milli)
    sign, size = ("-", -milli) if milli < 0 else ("", milli)
    whole, fraction = divmod(size, 1000)
    return f"{sign}{whole}" + (f".{fraction:03d}".rstrip("0") if fraction else "")


def _bytes(milli: int) -> str:
    size, unit = milli / 1000, 0
    while abs(size) >= 1024 and unit < len(_BYTE_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}".removesuffix(".0") + _BYTE_UNITS[unit]
