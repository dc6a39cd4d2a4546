"""Numbers of metrics: which are valid, and the quantities that they become."""

from decimal import Decimal
from typing import Any

import pytest

from podscaler.sources import metric_numbers
from podscaler.sources.protocol import InvalidValue, Number

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("number", "milli", "quantity"),
    [
        pytest.param(0, 0, "0", id="zero"),
        pytest.param(42, 42_000, "42", id="an integer"),
        pytest.param(1.5, 1500, "1500m", id="a fraction"),
        pytest.param(0.1, 100, "100m", id="a float that is not exact"),
        pytest.param(Decimal("0.0001"), 1, "1m", id="less than a thousandth is rounded up"),
        pytest.param(-0.0, 0, "0", id="minus zero"),
        pytest.param(LARGEST // 1000, LARGEST // 1000 * 1000, str(LARGEST // 1000), id="the largest integer"),
        pytest.param(Decimal(LARGEST) / 1000, LARGEST, f"{LARGEST}m", id="the largest number"),
    ],
)
def test_quantities(number: Number, milli: int, quantity: str) -> None:
    """Thousandths, rounded up, in the canonical form."""
    assert (metric_numbers.milli_of(number), metric_numbers.quantity(milli)) == (milli, quantity)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (float("nan"), "the result is NaN"),
        (Decimal("NaN"), "the result is NaN"),
        (float("inf"), "the result is infinite"),
        (float("-inf"), "the result is infinite"),
        (-1, "the result is negative"),
        (-0.001, "the result is negative"),
        (LARGEST // 1000 + 1, "the result is greater than 9223372036854775"),
        (1e300, "the result is greater than 9223372036854775"),
        (Decimal("1e99999"), "the result is greater than 9223372036854775"),
        (True, "the result is not a number"),
        ("7", "the result is not a number"),
    ],
)
def test_numbers_that_no_metric_has(number: Any, text: str) -> None:
    """Each is a failure with its reason."""
    with pytest.raises(InvalidValue, match=f"^{text}$"):
        metric_numbers.milli_of(number)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (7, 7),
        (0.5, 0.5),
        ("7", Decimal(7)),
        (" 1.50\n", Decimal("1.50")),
        ("1e3", Decimal(1000)),
        ("+3", Decimal(3)),
    ],
)
def test_values_that_are_numbers(value: object, number: Number) -> None:
    """Numbers, and texts in decimal notation."""
    assert metric_numbers.number_of(value) == number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "the result is null, not a number"),
        (True, "the result is a boolean, not a number"),
        ([1], "the result is a list, not a number"),
        ({"a": 1}, "the result is an object, not a number"),
        (b"7", "the result is bytes, not a number"),
        (object(), "the result is of a type that is no number, not a number"),
        ("", "the result is an empty text, not a number"),
        (" ", "the result is an empty text, not a number"),
        ("swordfish", "the result is a text that is no number"),
        ("1_000", "the result is a text that is no number"),
        ("٣", "the result is a text that is no number"),
        ("1" * 401, "the result is a text that is no number"),
    ],
)
def test_values_that_are_no_numbers(value: object, text: str) -> None:
    """The reason does not repeat the value."""
    with pytest.raises(InvalidValue, match=f"^{text}$"):
        metric_numbers.number_of(value)
