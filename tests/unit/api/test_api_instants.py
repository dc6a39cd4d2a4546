"""Instants: RFC 3339 text to nanoseconds and back."""

import re

import pytest

from podscaler.api.machinery import instants

NEW_YEAR = 1_767_225_600_000_000_000


@pytest.mark.parametrize(
    ("text", "instant_ns"),
    [
        ("2026-01-01T00:00:00Z", NEW_YEAR),
        ("2026-01-01T00:00:00.5Z", NEW_YEAR + 500_000_000),
        ("2026-01-01T00:00:00.123456789123Z", NEW_YEAR + 123_456_789),
        ("2026-01-01T02:00:00+02:00", NEW_YEAR),
        ("1969-12-31T23:59:59.5Z", -500_000_000),
        ("0001-01-01T00:00:00Z", instants.ZERO),
    ],
)
def test_parse(text: str, instant_ns: int) -> None:
    """A time is read to the nanosecond, whatever its zone."""
    assert instants.parse(text) == instant_ns


@pytest.mark.parametrize("text", ["", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "now"])
def test_parse_errors(text: str) -> None:
    """A text that is no time is named in the error."""
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        instants.parse(text)


def test_absent() -> None:
    """An absent time is Go's zero time."""
    assert [instants.parse_optional(text) for text in (None, "")] == [instants.ZERO, instants.ZERO]


def test_text_is_cut_to_seconds() -> None:
    """A time is printed in whole seconds, also before the epoch."""
    assert [instants.text(NEW_YEAR + 999_999_999), instants.text(-1)] == [
        "2026-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
    ]


@pytest.mark.parametrize("instant_ns", [NEW_YEAR, NEW_YEAR + 1, NEW_YEAR + 15_034_000, -1], ids=str)
def test_exact_loses_nothing(instant_ns: int) -> None:
    """Nanoseconds survive the way to text and back."""
    assert instants.parse(instants.exact(instant_ns)) == instant_ns
