"""Waiting for the first of two things: somebody rings, or an instant comes.

`pod_worker` and the stopping of containers wait with it; time is the clock's, so that tests run in virtual time.
"""

import asyncio

from podscaler.base.clock import NANOSECONDS, Clock


class Alarm:
    """An alarm that others `ring`.

    Args:
        clock: what measures the waiting.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the waiter, or the next one."""
        self._rung.set()

    async def wait(self, until_ns: int | None) -> None:
        """Return when it rings, or rang since the last wait, or at `until_ns` of the wall clock (None: never)."""
        if until_ns is None:
            await self._rung.wait()
        else:
            await self._wait_at_most((until_ns - self._clock.now_ns()) / NANOSECONDS)
        self._rung.clear()

    async def _wait_at_most(self, delay_s: float) -> None:
        if self._rung.is_set() or delay_s <= 0:
            return
        waits = [asyncio.ensure_future(self._clock.sleep(delay_s)), asyncio.ensure_future(self._rung.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
