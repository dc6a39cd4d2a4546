"""Defines the local deadline until which the holder of a lease may write.

The elector prolongs a write lease with each renewal; before each write `remaining_s` is read, and the write gets no
more time than that. Rules:

1. A write lease lasts for the renew deadline from the instant at which the successful renewal began. Others wait for
   the lease duration, which is longer, and begin to count later: the difference is the margin for a late write.
2. It is measured by the monotonic clock and by the wall clock, which goes on while a machine is suspended; it ends when
   either reaches the end. A wall clock that is set forward blocks writes until the next renewal, and has no other
   effect.
3. In a process that was paused it has ended before the process can find out whether the lease is lost.
"""

import math
from typing import NamedTuple

from podscaler.base.clock import NANOSECONDS, Clock


class ClockReading(NamedTuple):
    """An instant by both clocks."""

    monotonic_s: float
    wall_ns: int


def now(clock: Clock) -> ClockReading:
    """This instant."""
    return ClockReading(clock.monotonic_s(), clock.now_ns())


class WriteLease:
    """Permission to write until an instant, by the module's rules.

    Args:
        within: a write lease that bounds this one; None if there is none.
    """

    def __init__(self, clock: Clock, within: "WriteLease | None" = None) -> None:
        self._clock = clock
        self._within = within
        self._renewed: ClockReading | None = None
        self._span_s = 0.0

    def renew(self, begun: ClockReading, span_s: float) -> None:
        """A renewal that began at `begun` has succeeded: writes are allowed for `span_s` seconds from then."""
        self._renewed, self._span_s = begun, span_s

    def end(self) -> None:
        """Allow no more writes."""
        self._renewed = None

    def remaining_s(self) -> float:
        """For how many seconds writes are still allowed; 0 or less: not any more."""
        if self._renewed is None:
            return 0.0
        passed_s = self._clock.monotonic_s() - self._renewed.monotonic_s
        wall_passed_s = (self._clock.now_ns() - self._renewed.wall_ns) / NANOSECONDS
        remaining_s = self._span_s - max(passed_s, wall_passed_s)
        return remaining_s if self._within is None else min(remaining_s, self._within.remaining_s())


class UnlimitedWriteLease(WriteLease):
    """The write lease of a controller without leader election."""

    def __init__(self) -> None:
        """It has no clock and no end."""

    def remaining_s(self) -> float:
        """Infinity."""
        return math.inf
