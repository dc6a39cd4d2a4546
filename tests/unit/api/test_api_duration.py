"""Durations: Go's syntax, Go's text, Go's words for errors."""

import re

import pytest

from podscaler.api.machinery import duration


@pytest.mark.parametrize(
    ("text", "span_ns", "printed"),
    [
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        ("1ns", 1, "1ns"),
        ("1500ns", 1_500, "1.5µs"),
        ("1us", 1_000, "1µs"),
        ("300ms", 300_000_000, "300ms"),
        (".5s", 500_000_000, "500ms"),
        ("1.5s", 1_500_000_000, "1.5s"),
        ("1m30s", 90_000_000_000, "1m30s"),
        ("5m", 300_000_000_000, "5m0s"),
        ("1.5h", 5_400_000_000_000, "1h30m0s"),
        ("-1m", -60_000_000_000, "-1m0s"),
        ("+1h1ms", 3_600_001_000_000, "1h0m0.001s"),
        ("0000000000000000000001s", 1_000_000_000, "1s"),
        ("9223372036s", 9_223_372_036_000_000_000, "2562047h47m16s"),
    ],
)
def test_round_trip(text: str, span_ns: int, printed: str) -> None:
    """A duration is read as Go reads it and printed as Go prints it."""
    assert (duration.parse(text), duration.text(span_ns)) == (span_ns, printed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("x", 'time: invalid duration "x"'),
        ("15", 'time: missing unit in duration "15"'),
        ("1m5", 'time: missing unit in duration "1m5"'),
        ("1.5.5s", 'time: missing unit in duration "1.5.5s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("9223372037s", 'time: invalid duration "9223372037s"'),
    ],
)
def test_errors(text: str, message: str) -> None:
    """A wrong duration is refused in Go's words."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        duration.parse(text)
