"""A virtual clock for tests: implements `podscaler.base.clock.Clock`; time moves only by `advance`.

A test passes it in place of SystemClock; `await clock.advance(15)` runs all that 15 seconds would, at once.
"""

import asyncio
import heapq

from podscaler.base.clock import NANOSECONDS


class VirtualClock:
    """A clock whose time moves only by `advance`.

    Args:
        now_ns: the wall clock at the start, nanoseconds since the Unix epoch.
    """

    def __init__(self, now_ns: int = 1_767_225_600 * NANOSECONDS) -> None:
        self._start_ns = now_ns
        self._elapsed_ns = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sequence = 0

    def now_ns(self) -> int:
        """The virtual wall clock, nanoseconds since the Unix epoch."""
        return self._start_ns + self._elapsed_ns

    def monotonic_s(self) -> float:
        """Virtual seconds since the clock was made."""
        return self._elapsed_ns / NANOSECONDS

    def set_wall(self, by_s: float) -> None:
        """Move the wall clock by so many seconds, also back; monotonic time and sleepers are not affected."""
        self._start_ns += round(by_s * NANOSECONDS)

    async def sleep(self, delay_s: float) -> None:
        """Return once `advance` has moved time past the delay; one of 0 or less only yields to the event loop once."""
        if delay_s <= 0:
            await asyncio.sleep(0)
            return
        self._sequence += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        delay_ns = max(round(delay_s * NANOSECONDS), 1)  # a rounding rest below 1 ns must still end
        heapq.heappush(self._sleepers, (self._elapsed_ns + delay_ns, self._sequence, future))
        await future

    async def advance(self, span_s: float, *, turns: int = 20) -> None:
        """Advance time by `span_s` seconds, and wake sleepers in the order in which they are due.

        After each wake-up the event loop runs `turns` iterations, so that woken tasks run until they wait again.
        """
        end_ns = self._elapsed_ns + round(span_s * NANOSECONDS)
        await self._settle(turns)
        while self._sleepers and self._sleepers[0][0] <= end_ns:
            due_ns, _, future = heapq.heappop(self._sleepers)
            self._elapsed_ns = max(self._elapsed_ns, due_ns)
            if not future.done():  # else the sleeper was cancelled
                future.set_result(None)
                await self._settle(turns)
        self._elapsed_ns = end_ns
        await self._settle(turns)

    async def _settle(self, turns: int) -> None:
        """Run `turns` iterations of the event loop without moving time."""
        for _ in range(turns):
            await asyncio.sleep(0)
