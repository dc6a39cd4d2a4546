"""Numbers of CEL: arithmetic of int64 and uint64 with overflow as an error, and the text form of doubles.

    checked_int(2**63)      raises EvaluationError("integer overflow")
    quotient(-7, 2)         -3
    double_text(1e21)       "1e+21"

Called by `lexing`, `operators` and the function libraries. int is Python's int, uint is `Uint`, double is float.

Source: the CEL specification, "Numeric values"; cel-go's messages.
"""

import math
from decimal import Decimal

from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.machinery import numbers

INT_MIN, INT_MAX = numbers.INT64_MIN, numbers.INT64_MAX
UINT_MAX = 2**64 - 1
_LEAST_LARGE_EXPONENT = 6
"""Doubles are written with an exponent from this power of ten on: `100000` but `1e+06`."""

_MOST_SMALL_EXPONENT = -5
"""Doubles are written with an exponent up to this power of ten: `0.0001` but `1e-05`."""


class Uint(int):
    """A CEL uint; the type alone distinguishes it from a CEL int."""

    __slots__ = ()


def checked_int(value: int) -> int:
    """`value`, if it is an int64. Raises EvaluationError otherwise."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def checked_uint(value: int) -> Uint:
    """`value` as Uint, if it is a uint64. Raises EvaluationError otherwise."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def quotient(dividend: int, divisor: int) -> int:
    """Division that truncates toward zero. Raises EvaluationError for a zero divisor."""
    if not divisor:
        raise EvaluationError("division by zero")
    return numbers.divide_toward_zero(dividend, divisor)


def remainder(dividend: int, divisor: int) -> int:
    """The remainder with the sign of the dividend. Raises EvaluationError for a zero divisor."""
    if not divisor:
        raise EvaluationError("modulus by zero")
    return dividend - divisor * numbers.divide_toward_zero(dividend, divisor)


def double_text(number: float) -> str:
    """A double as CEL's `string()` writes it: the fewest digits, with an exponent for large and small numbers."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    digit_text = "".join(map(str, digits))
    first_exponent = int(exponent) + len(digit_text) - 1  # the power of ten of the first digit
    is_plain = _MOST_SMALL_EXPONENT < first_exponent < _LEAST_LARGE_EXPONENT
    notation = _plain_notation if is_plain else _scientific_notation
    return ("-" if sign else "") + notation(digit_text, first_exponent)


def _plain_notation(digits: str, first_exponent: int) -> str:
    """The digits without exponent; `first_exponent` is the power of ten of the first digit."""
    if first_exponent < 0:
        return f"0.{'0' * (-first_exponent - 1)}{digits}"
    whole, fraction = digits[: first_exponent + 1].ljust(first_exponent + 1, "0"), digits[first_exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


def _scientific_notation(digits: str, first_exponent: int) -> str:
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{mantissa}e{'-' if first_exponent < 0 else '+'}{abs(first_exponent):02d}"
