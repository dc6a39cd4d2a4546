"""Virtual time for tests: nothing sleeps, and time moves only when the test says so."""

import asyncio
import heapq

from podscaler.base.clock import NANOSECONDS


class VirtualClock:
    """A clock that stands still until `advance`.

    Args:
        now_ns: the wall clock at the start, nanoseconds since the Unix epoch.
    """

    def __init__(self, now_ns: int = 1_767_225_600 * NANOSECONDS) -> None:
        self._start_ns = now_ns
        self._elapsed_ns = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sequence = 0

    def now_ns(self) -> int:
        """The virtual wall clock."""
        return self._start_ns + self._elapsed_ns

    def monotonic_s(self) -> float:
        """Virtual seconds since the start."""
        return self._elapsed_ns / NANOSECONDS

    def set_wall(self, by_s: float) -> None:
        """Set the wall clock forward, or back; monotonic time and sleepers do not notice."""
        self._start_ns += round(by_s * NANOSECONDS)

    async def sleep(self, delay_s: float) -> None:
        """Return once `advance` has moved time past the delay."""
        if delay_s <= 0:
            await asyncio.sleep(0)
            return
        self._sequence += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        delay_ns = max(round(delay_s * NANOSECONDS), 1)  # a rest that floats leave must not be waited for without end
        heapq.heappush(self._sleepers, (self._elapsed_ns + delay_ns, self._sequence, future))
        await future

    async def advance(self, span_s: float, *, turns: int = 20) -> None:
        """Move time on by `span_s` seconds, waking sleepers in due order.

        After each wake-up the event loop gets `turns` turns, so that what was woken can run until it waits again.
        """
        end_ns = self._elapsed_ns + round(span_s * NANOSECONDS)
        await self._settle(turns)
        while self._sleepers and self._sleepers[0][0] <= end_ns:
            due_ns, _, future = heapq.heappop(self._sleepers)
            self._elapsed_ns = max(self._elapsed_ns, due_ns)
            if not future.done():
                future.set_result(None)
                await self._settle(turns)
        self._elapsed_ns = end_ns
        await self._settle(turns)

    async def _settle(self, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
