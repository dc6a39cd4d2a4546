"""Waits until it is notified or until a deadline, whichever comes first.

`kubelet.pods.pod_worker`, `simulated_pod` and `kubelet.containers.container_run` wait with it. Time is the clock's, so
that tests run in virtual time.
"""

import asyncio

from podscaler.base.clock import NANOSECONDS, Clock


class Notification:
    """A flag that `notify` sets and that `wait` clears. One task waits at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake the task that waits, or let the next `wait` return at once."""
        self._event.set()

    async def wait(self, until_ns: int | None) -> None:
        """Return after `notify` was called, or at the instant `until_ns` of the wall clock (None: no deadline)."""
        if until_ns is None:
            await self._event.wait()
        else:
            await self._wait_at_most((until_ns - self._clock.now_ns()) / NANOSECONDS)
        self._event.clear()

    async def _wait_at_most(self, delay_s: float) -> None:
        """Wait for the notification or for the delay."""
        if self._event.is_set() or delay_s <= 0:
            return
        delay_or_event = [asyncio.ensure_future(self._clock.sleep(delay_s)), asyncio.ensure_future(self._event.wait())]
        try:
            await asyncio.wait(delay_or_event, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for future in delay_or_event:
                future.cancel()
