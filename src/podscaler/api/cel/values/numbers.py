"""Numbers of expressions: int64, uint64 and double, with overflow that is an error.

Called by `lexing`, `operators` and the libraries.

Source: the CEL specification, "Numeric values"; cel-go's messages.
"""

import math
from decimal import Decimal

from podscaler.api.cel.values.faults import EvaluationError

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1
_PLAIN_BEFORE = 6
"""From this power of ten on doubles are written with an exponent, as Go does in its shortest form."""


class Uint(int):
    """An unsigned integer, apart from int by its type alone."""

    __slots__ = ()


def checked_int(value: int) -> int:
    """The value. Raises EvaluationError beyond 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def checked_uint(value: int) -> Uint:
    """The value. Raises EvaluationError beyond 64 bits, and below zero."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def quotient(dividend: int, divisor: int) -> int:
    """Division that cuts toward zero. Raises EvaluationError for zero."""
    if not divisor:
        raise EvaluationError("division by zero")
    whole = abs(dividend) // abs(divisor)
    return whole if (dividend < 0) == (divisor < 0) else -whole


def remainder(dividend: int, divisor: int) -> int:
    """What is left, with the sign of the dividend. Raises EvaluationError for zero."""
    if not divisor:
        raise EvaluationError("modulus by zero")
    return dividend - divisor * quotient(dividend, divisor)


def divided(dividend: float, divisor: float) -> float:
    """Division as IEEE 754 has it."""
    if divisor:
        return dividend / divisor
    if not dividend or math.isnan(dividend):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def double_text(value: float) -> str:
    """A double as string() writes it: the fewest digits, with an exponent where it is large or small."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    first = int(exponent) + len(text) - 1
    return ("-" if sign else "") + (_plain(text, first) if -5 < first < _PLAIN_BEFORE else _scientific(text, first))


def _plain(digits: str, first: int) -> str:
    if first < 0:
        return f"0.{'0' * (-first - 1)}{digits}"
    whole, rest = digits[: first + 1].ljust(first + 1, "0"), digits[first + 1 :]
    return f"{whole}.{rest}" if rest else whole


def _scientific(digits: str, first: int) -> str:
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{mantissa}e{'-' if first < 0 else '+'}{abs(first):02d}"
