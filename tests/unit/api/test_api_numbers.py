"""Go's arithmetic: wrapping, truncation and conversions at their edges."""

import math

import pytest

from podscaler.api.machinery import numbers


@pytest.mark.parametrize(
    ("value", "wrapped"),
    [
        (2**31 - 1, 2**31 - 1),
        (2**31, -(2**31)),
        (-(2**31) - 1, 2**31 - 1),
        (2147483653, -2147483643),
        (4294967301, 5),
        (2**63 - 1, -1),
    ],
)
def test_wrap32(value: int, wrapped: int) -> None:
    """An int32 keeps the low 32 bits."""
    assert numbers.wrap32(value) == wrapped


@pytest.mark.parametrize(
    ("value", "wrapped"), [(2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (-(2**63) - 1, 2**63 - 1), (2**64 + 5, 5)]
)
def test_wrap64(value: int, wrapped: int) -> None:
    """An int64 keeps the low 64 bits."""
    assert numbers.wrap64(value) == wrapped


@pytest.mark.parametrize(("a", "b", "quotient"), [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (0, -5, 0)])
def test_division_truncates(a: int, b: int, quotient: int) -> None:
    """Integer division goes toward zero."""
    assert numbers.divide_toward_zero(a, b) == quotient


@pytest.mark.parametrize(
    ("a", "b", "quotient"),
    [(1.0, 4.0, 0.25), (1.0, 0.0, math.inf), (-1.0, 0.0, -math.inf), (1.0, -0.0, -math.inf), (math.inf, 0.0, math.inf)],
)
def test_float_division(a: float, b: float, quotient: float) -> None:
    """Division of floats by zero gives an infinity."""
    assert numbers.divide(a, b) == quotient


def test_zero_by_zero() -> None:
    """0/0 is NaN."""
    assert math.isnan(numbers.divide(0.0, 0.0))


@pytest.mark.parametrize(
    ("value", "truncated", "ceiling", "saturated"),
    [
        (1.5, 1, 2, 2),
        (-1.5, -1, -1, -1),
        (2147483647.0, 2147483647, 2147483647, 2147483647),
        (2147483647.5, 2147483647, -2147483648, 2147483647),
        (2147483648.0, -2147483648, -2147483648, 2147483647),
        (-2147483648.5, -2147483648, -2147483648, -2147483648),
        (math.inf, -2147483648, -2147483648, 2147483647),
        (math.nan, -2147483648, -2147483648, -2147483648),
    ],
)
def test_to_int32(value: float, truncated: int, ceiling: int, saturated: int) -> None:
    """A float that is no int32 becomes the smallest one, unless the rule saturates."""
    assert (
        numbers.int32_of_float(value),
        numbers.ceil_int32(value),
        numbers.ceil_int32_saturating(value),
    ) == (truncated, ceiling, saturated)


@pytest.mark.parametrize(
    ("value", "truncated"),
    [(1.9, 1), (-(2.0**63), -(2**63)), (2.0**63, -(2**63)), (math.nan, -(2**63)), (-math.inf, -(2**63))],
)
def test_to_int64(value: float, truncated: int) -> None:
    """A float that is no int64 becomes the smallest one."""
    assert numbers.int64_of_float(value) == truncated


def test_ceil_of_floats() -> None:
    """Rounding up keeps infinities."""
    assert [numbers.ceil(value) for value in (1.2, -1.2, math.inf)] == [2.0, -1.0, math.inf]


@pytest.mark.parametrize(
    ("text", "bits", "value"),
    [("0", 16, 0), ("0080", 16, 80), ("65535", 16, 65535), (str(2**64 - 1), 64, 2**64 - 1), ("0" * 5000 + "1", 64, 1)],
    ids=lambda value: str(value)[:20],
)
def test_unsigned_numbers(text: str, bits: int, value: int) -> None:
    """Decimal digits, with zeros before them."""
    assert numbers.parse_uint(text, bits) == value


@pytest.mark.parametrize(
    ("text", "bits", "why"),
    [
        ("", 16, "invalid syntax"),
        ("-1", 16, "invalid syntax"),
        ("+80", 16, "invalid syntax"),
        ("1_0", 16, "invalid syntax"),
        (" 1", 16, "invalid syntax"),
        ("\uff11", 16, "invalid syntax"),
        ("65536", 16, "value out of range"),
        (str(2**64), 64, "value out of range"),
        ("9" * 5000, 64, "value out of range"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_no_unsigned_numbers(text: str, bits: int, why: str) -> None:
    """Everything else is refused in the words of strconv.ParseUint."""
    with pytest.raises(ValueError, match="strconv") as refused:
        numbers.parse_uint(text, bits)
    assert str(refused.value) == f'strconv.ParseUint: parsing "{text}": {why}'
