"""Defines the Clock that other modules read and wait by, and formats instants as texts of API objects.

Code that waits or needs the time takes a `Clock` as an argument, so that tests run in virtual time
(`podscaler.testing.VirtualClock`). Instants (`_ns`) are integers: nanoseconds since the Unix epoch, UTC.
`podscaler.api.machinery.instants` parses the texts.

    rfc3339(1_769_860_800_000_000_000)     "2026-01-31T12:00:00Z"
"""

import asyncio
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""


class Clock(Protocol):
    """A source of wall-clock time, of monotonic time, and of waiting."""

    def now_ns(self) -> int:
        """The wall clock: nanoseconds since the Unix epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds of a clock that never jumps; only differences mean something."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s` seconds; for 0 or less, after one iteration of the event loop."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ns(self) -> int:
        """The wall clock: nanoseconds since the Unix epoch."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Seconds since an unspecified start."""
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Wait on the running event loop."""
        await asyncio.sleep(max(delay_s, 0.0))


def rfc3339(instant_ns: int) -> str:
    """`instant_ns` as Kubernetes writes metav1.Time: UTC, whole seconds (truncated), `Z`.

    Raises ValueError or OverflowError outside the years 1 to 9999.
    """
    return _rfc3339_of_second(instant_ns // NANOSECONDS)


@lru_cache(maxsize=1024)
def _rfc3339_of_second(instant_s: int) -> str:
    """`instant_s` is seconds since the epoch; cached, since many objects are written in the same second."""
    minute, second = divmod(instant_s, 60)
    return f"{_rfc3339_minute(minute)}:{second:02}Z"


@lru_cache(maxsize=64)
def _rfc3339_minute(minute: int) -> str:
    """The text of a minute since the epoch; cached, since simulations and replays go through each second."""
    return datetime.fromtimestamp(minute * 60, UTC).isoformat()[:16]


def rfc3339_micro(instant_ns: int) -> str:
    """`instant_ns` as Kubernetes writes metav1.MicroTime: UTC, six decimals (truncated), `Z`. Raises as `rfc3339`."""
    return f"{rfc3339(instant_ns)[:-1]}.{instant_ns % NANOSECONDS // 1000:06d}Z"
