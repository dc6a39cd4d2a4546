"""Numbers, spans and lists as an explanation writes them."""

import math

import pytest

from podscaler.explain import wording

S = 10**9


@pytest.mark.parametrize(
    ("span_ns", "text"),
    [
        (0, "0 s"),
        (1, "1 ms"),
        (250_000_000, "250 ms"),
        (S, "1 s"),
        (50 * S + 1, "50 s"),
        (60 * S, "1 min"),
        (250 * S, "4 min 10 s"),
        (3600 * S, "1 h"),
        (3661 * S, "1 h 1 min"),
        (90_000 * S, "1 d 1 h"),
    ],
)
def test_spans(span_ns: int, text: str) -> None:
    """The two largest units."""
    assert wording.span(span_ns) == text


@pytest.mark.parametrize(
    ("span_ns", "text"), [(50 * S, "50 s"), (50 * S + 1, "50 s"), (50 * S + 2, "51 s"), (2, "1 s")]
)
def test_waits(span_ns: int, text: str) -> None:
    """Rounded up, but for the nanosecond after which a window is over."""
    assert wording.wait(span_ns) == text


@pytest.mark.parametrize(
    ("milli", "resource_name", "text"),
    [
        (250, "cpu", "250m"),
        (2000, "cpu", "2000m"),
        (157286400 * 1000, "memory", "150Mi"),
        (1536 * 1000, "memory", "1.5Ki"),
        (500, "memory", "0.5"),
        (12500, "", "12.5"),
        (-12500, "", "-12.5"),
        (7, "", "0.007"),
        (3000, "", "3"),
        (10**18, "", "1P"),
    ],
)
def test_amounts(milli: int, resource_name: str, text: str) -> None:
    """CPU in thousandths of a core, memory in binary units, all else as a decimal number."""
    assert wording.amount(milli, resource_name) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.42, "1.42"), (2 / 3, "0.6667"), (math.inf, "infinite"), (-math.inf, "-infinite"), (math.nan, "not a number")],
)
def test_ratios(value: float, text: str) -> None:
    """Four digits, and words for what is no number."""
    assert wording.number(value) == text


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (list("a"), "a"),
        (list("abcdef"), "a, b, c, d, e, f"),
        (list("abcdefg"), "a, b, c, d, e and 2 more"),
    ],
)
def test_lists(items: list[str], text: str) -> None:
    """One more is shown rather than counted."""
    assert wording.listed(items) == text
