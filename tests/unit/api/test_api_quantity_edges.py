"""Quantities where their rules turn: how many digits stay small, which texts are remembered, floats out of range.

Source: docs/spec/quantity.md 2 (Parsing) to 6 (JSON). The measured table is in test_api_quantity.py.
"""

import math

import pytest

from podscaler.api.machinery import quantity
from podscaler.api.machinery.quantity import Format, Quantity, parse

SMALL, BIG = True, False


@pytest.mark.parametrize(
    ("digits", "suffix", "is_small"),
    [
        (11, "Ki", SMALL),
        (12, "Ki", BIG),
        (8, "Mi", SMALL),
        (9, "Mi", BIG),
        (5, "Gi", SMALL),
        (6, "Gi", BIG),
        (2, "Ti", SMALL),
        (3, "Ti", BIG),
        (1, "Pi", BIG),
        (1, "Ei", BIG),
        (18, "", SMALL),
        (19, "", BIG),
        (18, "k", SMALL),
        (19, "m", BIG),
        (18, "n", SMALL),
    ],
)
def test_how_many_digits_stay_small(digits: int, suffix: str, is_small: bool) -> None:
    """Only the small form remembers a text with its plus sign (docs/spec/quantity.md 2 (steps 1 and 2))."""
    text = f"+{'1' * digits}{suffix}"
    assert str(parse(text)).startswith("+") is is_small


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("+1.00000000000000001", "1000000001n"),
        ("+1.000000001", "+1.000000001"),
        ("+1.0000000001", "1000000001n"),
        ("+1.000000001m", "1000001n"),
        ("+1.001u", "+1.001u"),
        ("+1e-9", "+1e-9"),
        ("+1e-12", "1e-9"),
    ],
)
def test_how_many_decimals_stay_small(text: str, printed: str) -> None:
    """The small form ends at 10^-9; below it a value is rounded away from zero."""
    assert str(parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1.234", "1.234"),
        ("+1", "+1"),
        ("01", "01"),
        ("1.", "1."),
        ("1.500", "1.500"),
        ("1e0", "1e0"),
        ("100e-3", "100e-3"),
        ("1E3", "1E3"),
        ("1e+3", "1e+3"),
        ("1.234k", "1.234k"),
        ("3.000000001", "3.000000001"),
        ("0", "0"),
        ("1.23", "1230m"),
        ("+1000", "1k"),
        ("+1.000", "1"),
        ("+0.123", "123m"),
        ("+8Ki", "8Ki"),
        ("+16Mi", "16Mi"),
        ("+9Ki", "+9Ki"),
    ],
)
def test_remembered_texts(text: str, printed: str) -> None:
    """A text is kept where its scale is a multiple of 3 and it has neither three last zeros nor a leading one."""
    assert str(parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("1.234", "1234m"), ("+1", "1"), ("01", "1"), ("1e+3", "1e3"), ("100e-3", "100e-3"), ("+9Ki", "9Ki")],
)
def test_arithmetic_forgets_the_text(text: str, canonical: str) -> None:
    """After an addition the canonical text is printed."""
    assert str(parse(text) + quantity.ZERO) == canonical


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.3", 0.30000000000000004),
        ("100m", 0.1),
        ("3.3", 3.3000000000000003),
        ("50m", 0.05),
        ("0.05", 0.05),
        ("1.1Gi", 1181116006.4),
        ("9Ei", 9.223372036854775807e18),
        ("9" * 400, math.inf),
        ("-" + "9" * 400, -math.inf),
    ],
    ids=lambda value: str(value)[:20],
)
def test_approximate_floats(text: str, number: float) -> None:
    """A float is the number times its power of ten in one multiplication, infinite where it does not fit."""
    assert parse(text).approximate_float() == number


@pytest.mark.parametrize(
    ("text", "milli", "value"),
    [
        ("-1.0005", -1001, -2),
        ("0.1m", 1, 1),
        ("-0.1m", -1, -1),
        ("-1.5n", 1, 1),
        ("-1.0000000001", -999, 0),
        ("1.0000000001", 1001, 2),
        ("100P", 0, 10**17),
        ("10E", 0, 0),
        ("18446744073709552k", 384000, 18446744073709552000 - 2**64),
    ],
)
def test_rounding_and_overflow(text: str, milli: int, value: int) -> None:
    """Small numbers round away from zero; big ones are cut and get one added; products wrap or vanish."""
    read = parse(text)
    assert (read.milli_value(), read.value()) == (milli, value)


@pytest.mark.parametrize("milli", [9223372036854775, -9223372036854775])
def test_thousandths_are_exact(milli: int) -> None:
    """Amounts of up to 9223372036854775 have exact thousandths."""
    assert parse(str(milli)).milli_value() == milli * 1000


@pytest.mark.parametrize(
    ("milli", "decimal", "binary"),
    [(0, "0", "0"), (1, "1m", "1m"), (1_024_000, "1024", "1Ki"), (-(2**63), f"-{2**63}m", f"-{2**63}m")],
)
def test_from_thousandths(milli: int, decimal: str, binary: str) -> None:
    """What is built from thousandths prints canonically and gives them back."""
    built = [Quantity.from_milli(milli, form) for form in (Format.DECIMAL_SI, Format.BINARY_SI)]
    assert ([str(each) for each in built], {each.milli_value() for each in built}) == ([decimal, binary], {milli})
