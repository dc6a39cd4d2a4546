"""The clock: the only module that reads the machine's clocks.

Everything that waits or stamps takes a `Clock`, so that tests run in virtual time
(`podscaler.testing.VirtualClock`). Instants are integers: nanoseconds since the Unix epoch, UTC.
"""

import asyncio
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

NANOSECONDS = 1_000_000_000


class Clock(Protocol):
    """A source of wall-clock time, of monotonic time, and of waiting."""

    def now_ns(self) -> int:
        """The wall clock: nanoseconds since the Unix epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds of a clock that never jumps; only differences mean something."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s` seconds (0 or less: after one turn of the event loop)."""
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
    """`instant_ns` as Kubernetes writes metav1.Time: UTC, whole seconds (cut), `Z`."""
    return _rfc3339(instant_ns // NANOSECONDS)


@lru_cache(maxsize=256)
def _rfc3339(instant_s: int) -> str:
    """One text for all that is written in the same second."""
    return datetime.fromtimestamp(instant_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(instant_ns: int) -> str:
    """`instant_ns` as Kubernetes writes metav1.MicroTime: UTC, six decimals (cut), `Z`."""
    seconds, rest_ns = divmod(instant_ns, NANOSECONDS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ns // 1000:06d}Z"
