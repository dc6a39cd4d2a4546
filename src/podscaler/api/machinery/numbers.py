"""Go's integer and float arithmetic on amd64, so that results equal those of Kubernetes' Go code to the last bit.

    wrap32(2**31)                -2147483648      integer overflow wraps
    divide(1.0, 0.0)             inf              float division by zero
    int32_of_float(1e300)        INT32_MIN        a float beyond the integer type

Called by quantities, the decision core and the decoding of requests. Only `parse_uint` raises.

Source: the Go specification (integer overflow, conversions) and the behaviour of amd64 where it leaves freedom
(docs/spec/decision.md 1.1 (Integer and float semantics)); Go's strconv.
"""

import math

from podscaler.api.text import quoting

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
_UINT64_DIGITS = 20


def parse_uint(text: str, bits: int) -> int:
    """The number of a text of ASCII digits; `bits` is at most 64.

    Raises:
        ValueError: another text, or a number of more than `bits` bits; with the message of Go's strconv.ParseUint.
    """
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"strconv.ParseUint: parsing {quoting.quoted(text)}: invalid syntax")
    digits = text.lstrip("0") or "0"
    number = int(digits) if len(digits) <= _UINT64_DIGITS else 1 << 64  # long texts, which take long, are too large
    if number >> bits:
        raise ValueError(f"strconv.ParseUint: parsing {quoting.quoted(text)}: value out of range")
    return number


def wrap32(value: int) -> int:
    """The low 32 bits of `value`, signed."""
    if INT32_MIN <= value <= INT32_MAX:
        return value
    return ((value + 2**31) & 0xFFFF_FFFF) - 2**31


def wrap_unsigned32(value: int) -> int:
    """The low 32 bits of `value`."""
    return value & 0xFFFF_FFFF


def wrap64(value: int) -> int:
    """The low 64 bits of `value`, signed."""
    if INT64_MIN <= value <= INT64_MAX:
        return value
    return ((value + 2**63) & 0xFFFF_FFFF_FFFF_FFFF) - 2**63


def divide_toward_zero(dividend: int, divisor: int) -> int:
    """Integer division that truncates; `divisor` is not 0."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def divide(dividend: float, divisor: float) -> float:
    """Float division in which x/0 is an infinity and 0/0 is NaN."""
    if divisor:
        return dividend / divisor
    if dividend == 0 or math.isnan(dividend) or math.isnan(divisor):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def int32_of_float(value: float) -> int:
    """`value` truncated toward zero; INT32_MIN beyond int32 (also for NaN and infinities)."""
    if INT32_MIN - 1 < value < INT32_MAX + 1:
        return int(value)
    return INT32_MIN


def int64_of_float(value: float) -> int:
    """`value` truncated toward zero; INT64_MIN beyond int64 (also for NaN and infinities)."""
    if INT64_MIN <= value < 2.0**63:
        return int(value)
    return INT64_MIN


def ceil(value: float) -> float:
    """`value` rounded up to an integer, as a float; NaN and infinities are returned unchanged."""
    return float(math.ceil(value)) if math.isfinite(value) else value


def ceil_int32(value: float) -> int:
    """`value` rounded up; INT32_MIN beyond int32 (also for NaN and infinities)."""
    if INT32_MIN - 1 < value <= INT32_MAX:
        return math.ceil(value)
    return INT32_MIN


def ceil_int32_saturating(value: float) -> int:
    """`value` rounded up, at most INT32_MAX; INT32_MIN for NaN and below."""
    return INT32_MAX if value > INT32_MAX else ceil_int32(value)
