"""Quantities: every row of the measured table, the errors, and what must hold for all of them.

Source: docs/spec/quantity.md 7 (Examples): program output of Kubernetes v1.37.0.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podscaler.api.machinery import quantity
from podscaler.api.machinery.quantity import Format, Quantity, QuantityError, parse

SI, BIN, EXP = Format.DECIMAL_SI, Format.BINARY_SI, Format.DECIMAL_EXPONENT

READ = [
    ("0", "0", SI, 0, 0, 0),
    ("-0", "0", SI, 0, 0, 0),
    ("+0", "0", SI, 0, 0, 0),
    ("1", "1", SI, 1000, 1, 1),
    ("+1", "+1", SI, 1000, 1, 1),
    ("-1", "-1", SI, -1000, -1, -1),
    ("01", "01", SI, 1000, 1, 1),
    ("1.0", "1", SI, 1000, 1, 1),
    ("1.", "1.", SI, 1000, 1, 1),
    (".5", "500m", SI, 500, 1, 0.5),
    ("0.5", "500m", SI, 500, 1, 0.5),
    ("-0.5", "-500m", SI, -500, -1, -0.5),
    ("100m", "100m", SI, 100, 1, 0.1),
    ("1000m", "1", SI, 1000, 1, 1),
    ("1500m", "1500m", SI, 1500, 2, 1.5),
    ("0.1", "100m", SI, 100, 1, 0.1),
    ("0.001", "1m", SI, 1, 1, 0.001),
    ("0.0001", "100u", SI, 1, 1, 0.0001),
    ("0.0005", "500u", SI, 1, 1, 0.0005),
    ("1.0005", "1000500u", SI, 1001, 2, 1.0005),
    ("-1.0005", "-1000500u", SI, -1001, -2, -1.0005),
    ("-0.0001", "-100u", SI, -1, -1, -0.0001),
    ("1u", "1u", SI, 1, 1, 1e-06),
    ("1n", "1n", SI, 1, 1, 1e-09),
    ("1500u", "1500u", SI, 2, 1, 0.0015),
    ("1500000n", "1500u", SI, 2, 1, 0.0015),
    ("137123456n", "137123456n", SI, 138, 1, 0.137123456),
    ("0.5n", "1n", SI, 1, 1, 1e-09),
    ("1.5n", "2n", SI, 1, 1, 2e-09),
    ("-1.5n", "-2n", SI, 1, 1, -2e-09),
    ("0.1m", "100u", SI, 1, 1, 0.0001),
    ("1k", "1k", SI, 1000000, 1000, 1000),
    ("1M", "1M", SI, 1000000000, 1000000, 1e06),
    ("1500k", "1500k", SI, 1500000000, 1500000, 1.5e06),
    ("1G", "1G", SI, 1000000000000, 1000000000, 1e09),
    ("1T", "1T", SI, 1000000000000000, 1000000000000, 1e12),
    ("1P", "1P", SI, 1000000000000000000, 1000000000000000, 1e15),
    ("1E", "1E", SI, 0, 1000000000000000000, 1e18),
    ("1000000", "1M", SI, 1000000000, 1000000, 1e06),
    ("123456789", "123456789", SI, 123456789000, 123456789, 1.23456789e08),
    ("1Ki", "1Ki", BIN, 1024000, 1024, 1024),
    ("1.5Ki", "1536", BIN, 1536000, 1536, 1536),
    ("0.5Ki", "512", BIN, 512000, 512, 512),
    ("0.5Mi", "512Ki", BIN, 524288000, 524288, 524288),
    ("1Mi", "1Mi", BIN, 1048576000, 1048576, 1.048576e06),
    ("1024", "1024", SI, 1024000, 1024, 1024),
    ("1024Ki", "1Mi", BIN, 1048576000, 1048576, 1.048576e06),
    ("1000Ki", "1000Ki", BIN, 1024000000, 1024000, 1.024e06),
    ("1536Mi", "1536Mi", BIN, 1610612736000, 1610612736, 1.610612736e09),
    ("1.1Gi", "1181116006400m", BIN, 1181116006400, 1181116007, 1.1811160064e09),
    ("0.1Gi", "107374182400m", BIN, 107374182400, 107374183, 1.073741824e08),
    ("1Ei", "1Ei", BIN, -9223372036854775808, 1152921504606846976, 1.152921504606847e18),
    ("8Ei", "9223372036854775807", BIN, -1000, 9223372036854775807, 9.223372036854776e18),
    ("9Ei", "9223372036854775807", BIN, -1000, 9223372036854775807, 9.223372036854776e18),
    ("-9Ei", "-9223372036854775807", BIN, 1000, -9223372036854775807, -9.223372036854776e18),
    ("1e3", "1e3", EXP, 1000000, 1000, 1000),
    ("1E3", "1E3", EXP, 1000000, 1000, 1000),
    ("1e-3", "1e-3", EXP, 1, 1, 0.001),
    ("1.5e3", "1500", EXP, 1500000, 1500, 1500),
    ("12e6", "12e6", EXP, 12000000000, 12000000, 1.2e07),
    ("1e6", "1e6", EXP, 1000000000, 1000000, 1e06),
    ("1e0", "1e0", EXP, 1000, 1, 1),
    ("1e1", "10", EXP, 10000, 10, 10),
    ("15e2", "1500", EXP, 1500000, 1500, 1500),
    ("100e-3", "100e-3", EXP, 100, 1, 0.1),
    ("1e-9", "1e-9", EXP, 1, 1, 1e-09),
    ("1e-10", "1e-9", EXP, 1, 1, 1e-09),
    ("1e18", "1e18", EXP, 0, 1000000000000000000, 1e18),
    ("1e19", "10e18", EXP, 0, 0, 1e19),
    ("1e20", "100e18", EXP, 0, 0, 1e20),
    ("9223372036854775807", "9223372036854775807", SI, -1000, 9223372036854775807, 9.223372036854776e18),
    ("9223372036854775808", "9223372036854775808", SI, 0, -9223372036854775808, 9.223372036854776e18),
    ("9223372036854775807m", "9223372036854775807m", SI, 9223372036854775807, 9223372036854776, 9.223372036854776e15),
    ("9223372036854775808m", "9223372036854775808m", SI, -9223372036854775808, 9223372036854776, 9.223372036854776e15),
    ("-9223372036854775808", "-9223372036854775808", SI, 0, 0, -9.223372036854776e18),
    ("9223372036854775.807", "9223372036854775807m", SI, 9223372036854775807, 9223372036854776, 9.223372036854776e15),
    (
        "12345678901234567890123",
        "12345678901234567890123",
        SI,
        -7484280360333952776,
        4807115922877859019,
        1.2345678901234568e22,
    ),
    ("1.23456789012345678901", "1234567891n", SI, 1235, 2, 1.234567891),
    ("0.0000000001", "1n", SI, 1, 1, 1e-09),
    ("9999999999999999999999", "9999999999999999999999", SI, 1590897978359413784, 1864712049423024127, 1e22),
    ("1e100", "10e99", EXP, 0, 0, 1e100),
    ("1e+3", "1e+3", EXP, 1000000, 1000, 1000),
    ("Ki", "0", BIN, 0, 0, 0),
    ("-", "0", SI, 0, 0, 0),
    (".", "0", SI, 0, 0, 0),
    ("000100m", "000100m", SI, 100, 1, 0.1),
    ("1.000Ki", "1Ki", BIN, 1024000, 1024, 1024),
    ("0Ki", "0", BIN, 0, 0, 0),
    ("0e5", "0", EXP, 0, 0, 0),
    ("0.0001Ki", "102400u", SI, 103, 1, 0.1024),
    ("3.000000001", "3.000000001", SI, 3001, 4, 3.000000001),
    ("200Mi", "200Mi", BIN, 209715200000, 209715200, 2.097152e08),
    ("19675818666m", "19675818666m", SI, 19675818666, 19675819, 1.9675818666e07),
    ("2048500m", "2048500m", SI, 2048500, 2049, 2048.5),
]

COMPUTED = [
    ("999999999999999999", "999999999999999999", "999999999999999999", 3875820019684211736, 999999999999999999),
    ("99999999999999999k", "99999999999999999k", "99999999999999999k", 200376420519689664, 7766279631452240920),
    ("100P", "100P", "100P", 0, 100000000000000000),
    ("99P", "99P", "99P", 0, 99000000000000000),
    ("9P", "9P", "9P", 9000000000000000000, 9000000000000000),
    ("10E", "10E", "10E", 0, 0),
    ("999999999999999999M", "999999999999999999M", "999999999999999999M", -6930898828444486144, 2003764205205896640),
    ("99999999999999999M", "99999999999999999M", "99999999999999999M", -2537764291115403776, 200376420519689664),
    ("1.234", "1.234", "1234m", 1234, 2),
    ("1.2345", "1234500u", "1234500u", 1235, 2),
    ("-1.234", "-1.234", "-1234m", -1234, -2),
    ("+1.5", "1500m", "1500m", 1500, 2),
    ("0.100", "100m", "100m", 100, 1),
    ("1.500", "1.500", "1500m", 1500, 2),
    ("12.5k", "12500", "12500", 12500000, 12500),
    ("1500.000", "1500", "1500", 1500000, 1500),
    ("3.2Mi", "3355443200m", "3355443200m", 3355443200, 3355444),
    ("1.234k", "1.234k", "1234", 1234000, 1234),
    ("1234.567m", "1234.567m", "1234567u", 1235, 2),
    ("1.5u", "1500n", "1500n", 1, 1),
    ("7.000001", "7.000001", "7000001u", 7001, 8),
    ("1.5Gi", "1536Mi", "1536Mi", 1610612736000, 1610612736),
    ("0.3", "300m", "300m", 300, 1),
    ("1e2", "100", "100", 100000, 100),
    ("2e-3", "2e-3", "2e-3", 2, 1),
    ("1100e6", "1100e6", "1100e6", 1100000000000, 1100000000),
    ("-100m", "-100m", "-100m", -100, -1),
    ("-1Ki", "-1Ki", "-1Ki", -1024000, -1024),
    ("1000000000000000000000m", "1E", "1E", 3875820019684212736, 1000000000000000000),
    ("9223372036854775807Ki", "9223372036854775807", "9223372036854775807", -1000, 9223372036854775807),
    ("5Ti", "5Ti", "5Ti", 5497558138880000, 5497558138880),
    ("1023Ki", "1023Ki", "1023Ki", 1047552000, 1047552),
    ("1000k", "1M", "1M", 1000000000, 1000000),
    ("8Ki", "8Ki", "8Ki", 8192000, 8192),
    ("2048", "2048", "2048", 2048000, 2048),
    ("+8Ki", "8Ki", "8Ki", 8192000, 8192),
    ("9Ki", "9Ki", "9Ki", 9216000, 9216),
]

MALFORMED = ["", " 1", "1 ", "a", "abc", "1.2.3", "1MI", "5%", "1_000", "0x10", "1,5", "1e3Ki", "١"]
UNKNOWN = ["1K", "1ki", "1mm", "1m1", "1e", "1i", "--1", "1e+", "1ee3"]
NO_NUMBER = ["Pi", ".Ei", "e-10", "-Pi", "9" * 4001, "1e4000", "1e99999999999999"]


@pytest.mark.parametrize(("text", "printed", "form", "milli", "value", "number"), READ, ids=[row[0] for row in READ])
def test_read(text: str, printed: str, form: Format, milli: int, value: int, number: float) -> None:
    """A quantity prints, rounds and overflows as upstream's does."""
    read = parse(text)
    assert (str(read), read.format, read.milli_value(), read.value(), read.approximate_float()) == (
        printed,
        form,
        milli,
        value,
        number,
    )


@pytest.mark.parametrize(("text", "printed", "computed", "milli", "value"), COMPUTED, ids=[row[0] for row in COMPUTED])
def test_after_arithmetic(text: str, printed: str, computed: str, milli: int, value: int) -> None:
    """Arithmetic drops the remembered text, and nothing else."""
    read = parse(text)
    sums = (str(read + quantity.ZERO), str(quantity.ZERO + read))
    assert (str(read), *sums, read.milli_value(), read.value()) == (printed, computed, computed, milli, value)


@pytest.mark.parametrize("text", [row[0] for row in READ + COMPUTED])
def test_fast_path(text: str) -> None:
    """The fast way to thousandths agrees with the exact one."""
    assert quantity.milli(text) == parse(text).milli_value()


@pytest.mark.parametrize(
    ("text", "message"),
    [(text, quantity.MALFORMED) for text in MALFORMED]
    + [(text, quantity.UNKNOWN_SUFFIX) for text in UNKNOWN]
    + [(text, quantity.NO_NUMBER) for text in NO_NUMBER],
    ids=lambda value: value[:30],
)
def test_errors(text: str, message: str) -> None:
    """A text that is no quantity is refused with upstream's sentence, by both ways of reading."""
    for read in (parse, quantity.milli):
        with pytest.raises(QuantityError) as caught:
            read(text)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        ("1", "1000m", 0),
        ("1Ki", "1024", 0),
        ("1e3", "1k", 0),
        ("1n", "2n", -1),
        ("9Ei", "8Ei", 0),
        ("-1", "1n", -1),
        ("0", "-0", 0),
        ("1e300", "1e-9", 1),
    ],
)
def test_comparison(left: str, right: str, order: int) -> None:
    """Quantities compare by value, formats ignored, and equal ones hash alike."""
    a, b = parse(left), parse(right)
    assert (a > b) - (a < b) == order
    assert (a == b, hash(a) == hash(b)) == (order == 0, order == 0)


def test_unequal_goes_by_value() -> None:
    """`!=` is the reverse of `==`."""
    assert [parse("1") != parse("1000m"), parse("1") != parse("2")] == [False, True]


def test_comparison_with_another_type() -> None:
    """A quantity equals no number and no text."""
    assert parse("1") != "1"


@pytest.mark.parametrize(
    ("left", "right", "total", "form"),
    [
        ("1Gi", "1", "1073741825", BIN),
        ("1", "1Gi", "1073741825", SI),
        ("0", "1Ki", "1Ki", BIN),
        ("0Ki", "1k", "1k", SI),
        ("100m", "0.1", "200m", SI),
        ("9223372036854775807m", "1", "9223372036854776807m", SI),
        ("999999999999999999E", "1n", "999999999999999999000000000000000000000000001n", SI),
    ],
)
def test_addition(left: str, right: str, total: str, form: Format) -> None:
    """Sums are exact and keep the left format unless the left side is zero."""
    added = parse(left) + parse(right)
    assert (str(added), added.format) == (total, form)


@pytest.mark.parametrize(
    ("milli", "text"),
    [
        (0, "0"),
        (1, "1m"),
        (999, "999m"),
        (1000, "1"),
        (1_023_999, "1023999m"),
        (1_024_000, "1Ki"),
        (1_536_000, "1536"),
        (5_120_000, "5Ki"),
        (5_120_001, "5120001m"),
        (1_000_000, "1k"),
        (10**9, "1000000"),
        (104_857_600_000, "100Mi"),
        (10**17, "97656250000Ki"),
    ],
)
def test_binary_from_milli(milli: int, text: str) -> None:
    """The milli constructor with BinarySI prints powers of 1024 where they are exact."""
    assert str(Quantity.from_milli(milli, BIN)) == text


@pytest.mark.parametrize(
    ("milli", "text"),
    [
        (1, "1m"),
        (1000, "1"),
        (1500, "1500m"),
        (10**6, "1k"),
        (1_500_000_000, "1500k"),
        (10**17, "100T"),
        (2**63 - 1, "9223372036854775807m"),
        (-(2**63), "-9223372036854775808m"),
    ],
)
def test_decimal_from_milli(milli: int, text: str) -> None:
    """The milli constructor with DecimalSI prints the largest suffix that keeps an integer."""
    assert str(Quantity.from_milli(milli)) == text


def test_negative_rounding_of_the_next_version() -> None:
    """Big negative quantities round away from zero from v1.38 on, where v1.37 adds one."""
    read = parse("-1.5n")
    assert (read.milli_value(), read.milli_value_away_from_zero()) == (1, -1)


def test_sign() -> None:
    """The sign is that of the exact value."""
    assert [parse(text).sign() for text in ("-1n", "-0", "0.1n")] == [-1, 0, 1]


SUFFIXES = st.sampled_from(["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "e-4"])
TEXTS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**20),
    st.one_of(st.just(""), st.integers(0, 10**10).map(lambda digits: f".{digits}")),
    SUFFIXES,
)


@given(TEXTS)
def test_canonical_text_keeps_the_value(text: str) -> None:
    """Reading a printed quantity gives the same value again (beyond `E` upstream prints nonsense)."""
    read = parse(text)
    if parse("-1000E") < read < parse("1000E"):
        assert parse(str(read)) == read
        assert parse(read.canonical()) == read


@given(TEXTS)
def test_fast_path_everywhere(text: str) -> None:
    """The fast way to thousandths agrees with the exact one on any text."""
    assert quantity.milli(text) == parse(text).milli_value()


@given(TEXTS, TEXTS)
def test_addition_commutes_in_value(left: str, right: str) -> None:
    """a + b equals b + a."""
    assert parse(left) + parse(right) == parse(right) + parse(left)
