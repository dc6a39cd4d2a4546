"""Schedules of a metric's value over time: constant, in steps, or on a ramp. Pure.

`parsing` creates schedules (a new kind is a case of its `_parse_schedule`), `lookup` evaluates them. Stated quantities
are returned exactly as written; computed values (points of a ramp, shares) are exact, rounded up to thousandths, the
precision of autoscalers.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from podscaler.api.machinery.quantity import Quantity


class Schedule(Protocol):
    """A value over time."""

    def value_at(self, now_ns: int) -> Quantity | None:
        """The value at a time (nanoseconds since the epoch), None before the first value."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """One value at all times."""

    value: Quantity

    def value_at(self, now_ns: int) -> Quantity | None:
        """See Schedule."""
        del now_ns
        return self.value


@dataclass(frozen=True, slots=True)
class ValueStep:
    """From `at_ns` (nanoseconds since the epoch) on, the value is `value`."""

    at_ns: int
    value: Quantity


class Steps:
    """A sequence of values.

    Args:
        steps: in any order; of two at the same time the later one in the list applies.
        before: the value before the first step; None if there is no value until then.
    """

    def __init__(self, steps: Sequence[ValueStep], before: Quantity | None) -> None:
        self._steps = sorted(steps, key=lambda step: step.at_ns)
        self._before = before

    def value_at(self, now_ns: int) -> Quantity | None:
        """See Schedule."""
        passed = bisect_right(self._steps, now_ns, key=lambda step: step.at_ns)
        return self._steps[passed - 1].value if passed else self._before


@dataclass(frozen=True, slots=True)
class Ramp:
    """Linear interpolation from one value to another.

    Attributes:
        first, last: the value until the start, and from the end on.
        start_ns: the start, nanoseconds since the epoch.
        span_ns: the duration; more than 0.
    """

    first: Quantity
    last: Quantity
    start_ns: int
    span_ns: int

    def value_at(self, now_ns: int) -> Quantity | None:
        """See Schedule."""
        elapsed_ns = now_ns - self.start_ns
        if elapsed_ns <= 0:
            return self.first
        if elapsed_ns >= self.span_ns:
            return self.last
        first_exact = _exact(self.first)
        interpolated = first_exact + (_exact(self.last) - first_exact) * Fraction(elapsed_ns, self.span_ns)
        return _rounded_up(interpolated, like=self.first if self.first.sign() else self.last)


def share(total: Quantity, share_count: int) -> Quantity:
    """One of `share_count` (at least 1) equal shares of a total."""
    return total if share_count == 1 else _rounded_up(_exact(total) / share_count, like=total)


def _exact(quantity: Quantity) -> Fraction:
    return Fraction(quantity.unscaled) * Fraction(10) ** quantity.scale


def _rounded_up(exact: Fraction, *, like: Quantity) -> Quantity:
    """`exact` in thousandths, printed in the format of `like`."""
    milli = -(-exact.numerator * 1000 // exact.denominator)
    return Quantity.from_milli(milli, like.format)
