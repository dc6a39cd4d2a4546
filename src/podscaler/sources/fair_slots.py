"""Limits how many reads run at once, so that the sources of one namespace leave room for those of others.

`open_sources` takes a concurrency slot for each read. Rules:

1. At most `total` slots are taken, and at most `group_max` of them by one group (a namespace).
2. Free slots go to the groups round-robin, and within a group to the caller that waits longest.
3. A caller that waits for longer than `wait_max_s` gets no slot: `take` raises ReadTimeout.

Invariant: slots taken and not released are those of `take` calls that returned, whichever caller is cancelled when.
"""

import asyncio
from collections import Counter, OrderedDict, deque

from podscaler.base.clock import Clock
from podscaler.sources.protocol import ReadTimeout

Waiter = asyncio.Future[None]
"""Done when the slot is granted to its caller, and then counted as taken."""


class FairSlots:
    """The concurrency slots of reads, by the module's rules.

    Args:
        clock: limits waiting.
        total: the number of slots.
        group_max: how many of them one group may have.
        wait_max_s: how long a caller waits for a slot, in seconds.
    """

    def __init__(self, clock: Clock, *, total: int, group_max: int, wait_max_s: float) -> None:
        self._clock = clock
        self._free = total
        self._group_max = group_max
        self._wait_max_s = wait_max_s
        self._taken: Counter[str] = Counter()  # by group
        self._waiting: OrderedDict[str, deque[Waiter]] = OrderedDict()  # by group; the next one first

    async def take(self, group: str) -> None:
        """Wait for a slot and take it; the caller releases it. Raises ReadTimeout if there is none in time."""
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(waiter)
        self._grant()
        if waiter.done():
            return
        timer = asyncio.ensure_future(self._clock.sleep(self._wait_max_s))
        is_taken = False
        try:
            await asyncio.wait((waiter, timer), return_when=asyncio.FIRST_COMPLETED)
            if not waiter.done():
                raise ReadTimeout(
                    f"not read: {self._taken[group]} other sources of the namespace were being read"
                    f" for {self._wait_max_s:g} s"
                )
            is_taken = True
        finally:
            timer.cancel()
            if not is_taken:
                self._stop_waiting(group, waiter)

    def release(self, group: str) -> None:
        """Return a slot of the group, to which it was granted by `take`."""
        self._free += 1
        self._taken[group] -= 1
        if not self._taken[group]:
            del self._taken[group]
        self._grant()

    def _stop_waiting(self, group: str, waiter: Waiter) -> None:
        """End the wait of a caller without a slot, also of one whose slot was taken at the last moment."""
        if waiter.done():
            self.release(group)
            return
        self._waiting[group].remove(waiter)
        if not self._waiting[group]:
            del self._waiting[group]

    def _grant(self) -> None:
        """Grant the free slots to waiting callers (rule 2)."""
        while self._free:
            below_limit = (group for group in self._waiting if self._taken[group] < self._group_max)
            group = next(below_limit, None)
            if group is None:
                return
            self._free -= 1
            self._taken[group] += 1
            self._waiting[group].popleft().set_result(None)
            if self._waiting[group]:
                self._waiting.move_to_end(group)
            else:
                del self._waiting[group]
