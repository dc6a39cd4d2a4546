"""Kubernetes quantities (`100m`, `1Gi`, `1e3`): parsed, printed, added and rounded exactly as resource.Quantity in Go.

    parse("1.5Gi").value()                     1610612736
    str(parse("100m") + parse("0.2"))          "300m"
    milli("250m")                              250

Theory of operation:

1. A quantity is `unscaled x 10^scale`. Parsing yields a *small* one (Go's int64Amount) where the digits fit, else a
   *big* one (inf.Dec; docs/spec/quantity.md 2 (Parsing)). The two round differently when digits are lost or int64
   overflows, so `is_big` is part of a quantity.
2. Small quantities whose text is canonical (or close to it) print that text again; arithmetic drops it.
3. `milli(text)` is a fast path for `parse(text).milli_value()`, with which the decision core reads usages.

Called for resource amounts and metric values. Quantities are immutable, equal and ordered by value, whatever their
format.

Source: Kubernetes v1.37.0, resource.Quantity (docs/spec/quantity.md).
Differs: a number of more than _MAX_DIGITS digits is invalid; the Go code would take minutes for it.
"""

import math
import re
from enum import StrEnum
from functools import total_ordering

import msgspec

from podscaler.api.machinery import numbers

_MAX_DIGITS = 4000
"""The digits of a text and of its exponent's power of ten, in sum."""
UNIT_MILLI = 1000
"""One, in thousandths: an amount is whole if its `milli_value` is a multiple."""

MALFORMED = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
UNKNOWN_SUFFIX = "unable to parse quantity's suffix"
NO_NUMBER = "unable to parse numeric part of quantity"

# suffix -> power of ten, or of two
_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# The reverse, for printing: power of ten, or of 1024 -> suffix.
_DECIMAL_TEXTS = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_TEXTS = {exponent // 10: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}

_TEXT = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
"""The groups of `-01.5Gi`: sign (`-`), leading zeros (`0`), digits (`1`), fraction (`5`), suffix (`Gi`)."""
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)

_MILLI = -3
_NANO = -9
"""The scales of a thousandth, and of a billionth, which is the smallest unit of Go's quantities."""
_SMALL_DIGITS = 18
_BINARY_MAX_DIGITS = 14
"""The numbers of digits up to which Go makes a small quantity; for binary suffixes less by those of the suffix."""
_EXPONENT_MAX_CHARACTERS = 10
"""The length, with its sign, up to which an exponent is parsed; longer ones are invalid."""
_BINARY_BASE = 1024
_WRAPPING_POWERS = frozenset({1, 2, 3, 6, 9})
"""Powers of ten by which Go multiplies a small quantity without a check for overflow, so that the int64 wraps."""


class QuantityError(ValueError):
    """A text is not a quantity; str() is Kubernetes' message."""


class Format(StrEnum):
    """The format in which a quantity is printed, if that is exact."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
class Quantity(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One quantity; make it with `parse` or `from_milli`.

    Attributes:
        unscaled: the digits, with sign.
        scale: the power of ten that they are multiplied by.
        format: DecimalSI, BinarySI or DecimalExponent.
        is_big: whether Go would hold it in the arbitrary-precision form.
        remembered: the parsed text, if str() returns it unchanged; else empty.
    """

    unscaled: int
    scale: int = 0
    format: Format = Format.DECIMAL_SI
    is_big: bool = False
    remembered: str = ""

    @classmethod
    def parse(cls, quantity_text: str) -> "Quantity":
        """As the function `parse`, for callers that import the class alone. Raises QuantityError."""
        return parse(quantity_text)

    @classmethod
    def from_milli(cls, milli: int, format: Format = Format.DECIMAL_SI) -> "Quantity":
        """The quantity of `milli` thousandths."""
        return cls(milli, _MILLI, format)

    def __str__(self) -> str:
        return self.remembered or self.canonical()

    def canonical(self) -> str:
        """The canonical text, also where another text is remembered."""
        if self.unscaled == 0:
            return "0"
        if (
            self.format is Format.BINARY_SI
            and (whole := self._whole_number()) is not None
            and abs(whole) >= _BINARY_BASE
        ):
            return _binary_text(whole)
        mantissa, exponent = _mantissa_and_exponent(self.unscaled, self.scale)
        if self.format is Format.DECIMAL_EXPONENT:
            return f"{mantissa}e{exponent}" if exponent else mantissa
        return mantissa + _DECIMAL_TEXTS.get(exponent, "")

    def _whole_number(self) -> int | None:
        """The number if it is an integer, else None."""
        if self.scale >= 0:
            return self.unscaled * _power_of_ten(self.scale)
        whole, remainder = divmod(self.unscaled, _power_of_ten(-self.scale))
        return None if remainder else whole

    def value(self) -> int:
        """The number rounded up to an integer, as int64 (overflow as in Go)."""
        return self._rounded_at(0)

    def milli_value(self) -> int:
        """The number of thousandths, rounded up, as int64 (overflow as in Go)."""
        return self._rounded_at(_MILLI)

    def milli_value_away_from_zero(self) -> int:
        """As `milli_value`, but big negative numbers are rounded away from zero.

        Source: v1.38 alpha (docs/spec/decision.md 13 (Differences of v1.38 alpha)).
        """
        if self.is_big and self.unscaled < 0 and self.scale < _MILLI:
            return numbers.wrap64(-_divide_up(-self.unscaled, _power_of_ten(_MILLI - self.scale)))
        return self.milli_value()

    def _rounded_at(self, scale: int) -> int:
        """The number in units of 10^scale, as int64, rounded as Go rounds the small or the big form."""
        shift = self.scale - scale
        if self.is_big:
            return _shift_big(self.unscaled, shift)
        return _shift_small(self.unscaled, shift)

    def approximate_float(self) -> float:
        """The number as a float, by one multiplication with a power of ten (infinite where out of range)."""
        try:
            base = float(self.unscaled)
        except OverflowError:
            base = math.inf if self.unscaled > 0 else -math.inf
        return base * float(f"1e{self.scale}") if self.scale else base

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    def __add__(self, other: "Quantity") -> "Quantity":
        total, scale = self._add_digits(other)
        is_big = self.is_big or other.is_big or not numbers.INT64_MIN <= total <= numbers.INT64_MAX
        return Quantity(total, scale, self.format if self.unscaled else other.format, is_big)

    def _add_digits(self, other: "Quantity") -> tuple[int, int]:
        """The digits and the scale of the sum."""
        if not other.unscaled:
            return self.unscaled, self.scale
        if not self.unscaled:
            return other.unscaled, other.scale
        scale = min(self.scale, other.scale)
        return self._digits_at(scale) + other._digits_at(scale), scale

    def _digits_at(self, scale: int) -> int:
        """The digits for a scale that is not larger than that of the quantity."""
        return self.unscaled * _power_of_ten(self.scale - scale)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        scale = min(self.scale, other.scale)
        return self._digits_at(scale) == other._digits_at(scale)

    def __ne__(self, other: object) -> bool:
        # msgspec.Struct has a != of its own, which goes by identity.
        return not self == other

    def __lt__(self, other: "Quantity") -> bool:
        scale = min(self.scale, other.scale)
        return self._digits_at(scale) < other._digits_at(scale)

    def __hash__(self) -> int:
        if not self.unscaled:
            return 0
        digits = str(self.unscaled)
        significant = digits.rstrip("0")
        return hash((significant, self.scale + len(digits) - len(significant)))


ZERO = Quantity(0)


def parse(quantity_text: str) -> Quantity:
    """The quantity of a text (`100m`). Raises QuantityError."""
    match = _TEXT.fullmatch(quantity_text)
    if match is None or not quantity_text:
        raise QuantityError(MALFORMED)
    sign, leading_zeros, digits, fraction, suffix = match.groups(default="")
    exponent, suffix_format = _parse_suffix(suffix)
    whole = digits or "0"
    if len(whole) + len(fraction) + abs(exponent) > _MAX_DIGITS:
        raise QuantityError(NO_NUMBER)
    if suffix_format is Format.BINARY_SI:
        quantity = _parse_small_binary(quantity_text, whole, fraction, exponent)
    else:
        quantity = _parse_small_decimal(quantity_text, whole, fraction, exponent, suffix_format)
    if quantity is None:
        if not (leading_zeros or digits or fraction):
            raise QuantityError(NO_NUMBER)
        quantity = _parse_big(int(whole + fraction), len(fraction), exponent, suffix_format)
    return _negated(quantity) if sign == "-" else quantity


_COMMON_UNITS = {
    "": (15, 1000, 1),
    "m": (18, 1, 1),
    "u": (18, 1, 1000),
    "n": (18, 1, 1_000_000),
    "k": (12, 1_000_000, 1),
    "Ki": (11, 1_024_000, 1),
    "Mi": (8, 1_048_576_000, 1),
    "Gi": (5, 1_073_741_824_000, 1),
}
"""Suffix -> (most digits that cannot overflow int64, multiplier and divisor from the number to thousandths)."""


def milli(quantity_text: str) -> int:
    """`parse(text).milli_value()`, faster for common texts. Raises QuantityError."""
    digits = quantity_text.rstrip("kmunKMGi")
    unit = _COMMON_UNITS.get(quantity_text[len(digits) :])
    if unit is not None:
        max_digits, multiplier, divisor = unit
        if len(digits) <= max_digits and digits.isdigit() and digits.isascii():
            return -(-int(digits) * multiplier // divisor)  # as `_divide_up`, without the call
    return parse(quantity_text).milli_value()


def _parse_suffix(suffix: str) -> tuple[int, Format]:
    """The exponent (of two for BINARY_SI, else of ten) and the format of a suffix. Raises QuantityError."""
    if suffix in _DECIMAL_SUFFIXES:
        return _DECIMAL_SUFFIXES[suffix], Format.DECIMAL_SI
    if suffix in _BINARY_SUFFIXES:
        return _BINARY_SUFFIXES[suffix], Format.BINARY_SI
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise QuantityError(UNKNOWN_SUFFIX)
    if len(match[1]) > _EXPONENT_MAX_CHARACTERS:
        raise QuantityError(NO_NUMBER)
    return int(match[1]), Format.DECIMAL_EXPONENT


def _parse_small_decimal(
    quantity_text: str, whole: str, fraction: str, exponent: int, suffix_format: Format
) -> Quantity | None:
    """The small form, without the sign; it remembers the text if that is canonical. None if the digits do not fit."""
    digits = whole + fraction
    scale = exponent - len(fraction)
    if len(digits) > _SMALL_DIGITS or scale < _NANO:
        return None
    # The canonical text has no leading zero, and the largest suffix (a multiple of 10^3) without fraction.
    is_canonical = scale % 3 == 0 and not digits.endswith("000") and whole[0] != "0"
    return Quantity(int(digits), scale, suffix_format, remembered=quantity_text if is_canonical else "")


def _parse_small_binary(quantity_text: str, whole: str, fraction: str, binary_exponent: int) -> Quantity | None:
    """As `_parse_small_decimal`, for `Ki` to `Ei`; `binary_exponent` is the exponent of two of the suffix."""
    max_digits = _BINARY_MAX_DIGITS - binary_exponent * 3 // 10  # ten binary digits are about three decimal ones
    if fraction or len(whole) > max_digits:
        return None
    number = int(whole)
    # Go remembers the text unless the number is a multiple of 8, for which a larger suffix may be canonical.
    return Quantity(number << binary_exponent, 0, Format.BINARY_SI, remembered=quantity_text if number % 8 else "")


def _parse_big(digits: int, fraction_digits: int, exponent: int, suffix_format: Format) -> Quantity:
    """The big form, without the sign, rounded up to billionths.

    Args:
        digits: those of the number and of its fraction, as one number.
        fraction_digits: how many of them are the fraction.
        exponent: the exponent of the suffix: of two for BINARY_SI, else of ten.
        suffix_format: the format of the suffix.
    """
    if suffix_format is not Format.BINARY_SI:
        shift = exponent - fraction_digits - _NANO
        nanos = digits * _power_of_ten(shift) if shift >= 0 else _divide_up(digits, _power_of_ten(-shift))
        return Quantity(nanos, _NANO, suffix_format, is_big=True)
    # A binary quantity is at most the largest int64; one below 1 is printed as a decimal one, as Go does.
    nanos = _divide_up((digits << exponent) * 10**9, _power_of_ten(fraction_digits))
    if nanos > numbers.INT64_MAX * 10**9:
        return Quantity(numbers.INT64_MAX, 0, suffix_format, is_big=True)
    return Quantity(nanos, _NANO, Format.DECIMAL_SI if 0 < nanos < 10**9 else suffix_format, is_big=True)


def _negated(quantity: Quantity) -> Quantity:
    """The quantity with the other sign; it remembers the same text, which has the sign."""
    return msgspec.structs.replace(quantity, unscaled=-quantity.unscaled)


def _shift_small(unscaled: int, shift: int) -> int:
    """`unscaled x 10^shift`, away from zero where digits are lost; overflow wraps for some powers, else gives 0."""
    if shift < 0:
        magnitude = _divide_up(abs(unscaled), _power_of_ten(-shift))
        return -magnitude if unscaled < 0 else magnitude
    product = unscaled * _power_of_ten(shift)
    wrapped = numbers.wrap64(product)
    return wrapped if wrapped == product or shift in _WRAPPING_POWERS else 0


def _shift_big(unscaled: int, shift: int) -> int:
    """`unscaled x 10^shift`, with 1 added where digits are lost; below the largest int64, Go computes it in int64."""
    if shift >= 0:
        return numbers.wrap64(unscaled * _power_of_ten(shift))
    divisor = _power_of_ten(-shift)
    if unscaled < numbers.INT64_MAX:
        wrapped = numbers.wrap64(unscaled)
        return numbers.divide_toward_zero(wrapped, divisor) + (wrapped % divisor != 0)
    return numbers.wrap64(_divide_up(unscaled, divisor))


def _divide_up(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def _power_of_ten(exponent: int) -> int:
    """10^exponent; `exponent` is not negative."""
    return int(10**exponent)


def _mantissa_and_exponent(unscaled: int, scale: int) -> tuple[str, int]:
    """The shortest digits, with an exponent that is a multiple of three."""
    digits = str(unscaled)
    significant = digits.rstrip("0")
    exponent = scale + len(digits) - len(significant)
    padding = exponent % 3
    return significant + "0" * padding, exponent - padding


def _binary_text(whole: int) -> str:
    """An integer with the largest binary suffix that is exact (`1536Mi`)."""
    power_of_1024 = 0
    while whole % _BINARY_BASE == 0:
        whole //= _BINARY_BASE
        power_of_1024 += 1
    return f"{whole}{_BINARY_TEXTS.get(power_of_1024, '')}"
