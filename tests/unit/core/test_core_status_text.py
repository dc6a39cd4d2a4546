"""Values in status: upstream's text, as the API server gives it back.

Source: docs/spec/decision.md 11.4 (Text of status quantities).
"""

import pytest

from podscaler.api.machinery import quantity
from podscaler.api.machinery.quantity import Format, Quantity
from podscaler.core.model import status_text


@pytest.mark.parametrize(
    ("milli", "decimal", "binary"),
    [
        (0, "0", "0"),
        (1, "1m", "1m"),
        (100, "100m", "100m"),
        (1000, "1", "1"),
        (1500, "1500m", "1500m"),
        (10000, "10", "10"),
        (1_000_000, "1k", "1k"),
        (1_023_000, "1023", "1023"),
        (1_024_000, "1024", "1Ki"),
        (1_025_000, "1025", "1025"),
        (1_500_000_000, "1500k", "1500k"),
        (10**9, "1M", "1M"),
        (73_536_000_000, "73536k", "73536k"),
        (104_857_600_000, "104857600", "100Mi"),
        (19_675_818_666, "19675818666m", "19675818666m"),
        (10**17, "100T", "97656250000Ki"),
        (2**63 - 1, "9223372036854775807m", "9223372036854775807m"),
        (-(2**63), "-9223372036854775808m", "-9223372036854775808m"),
    ],
)
def test_text(milli: int, decimal: str, binary: str) -> None:
    """The largest suffix that keeps an integer; binary ones only where they divide the number."""
    assert (status_text.decimal(milli), status_text.binary(milli)) == (decimal, binary)
    for text in (decimal, binary):
        assert str(quantity.parse(text)) == text
        assert quantity.parse(text) == Quantity.from_milli(milli)


@pytest.mark.parametrize("milli", [0, 1, -1, 1_024_000, 10**9, 5 * 2**30 * 1000, 123_456_789])
def test_agrees_with_quantities(milli: int) -> None:
    """The text is what the API server makes of the quantity that upstream sends."""
    sent = {form: str(Quantity.from_milli(milli, form)) for form in (Format.DECIMAL_SI, Format.BINARY_SI)}
    stored = [str(quantity.parse(sent[form])) for form in (Format.DECIMAL_SI, Format.BINARY_SI)]
    assert [status_text.decimal(milli), status_text.binary(milli)] == stored


def test_memory_is_binary() -> None:
    """Only the resource memory is written with binary suffixes."""
    assert [status_text.of_resource(name, 1_024_000) for name in ("memory", "cpu")] == ["1Ki", "1024"]
