"""The work queue of controllers: keys to process, none of them twice at the same time.

Rules (those of client-go's delaying work queue):

1. A queued key is not added again; one that is added while it is processed is queued again when that is done.
2. Delayed additions of one key merge: the earlier due time wins. An immediate addition leaves a delayed one in place.
3. First in, first out among the keys that are due.
4. Keys that are due shortly after one another may be released together, up to `together_s` late: waking the process
   once for ten keys takes a third of the CPU of waking it ten times.

Source: k8s.io/client-go/util/workqueue (documentation); controller loop of the HorizontalPodAutoscaler.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from podscaler.base.clock import Clock

K = TypeVar("K", bound=Hashable)


class ShutDown(Exception):
    """`get` was called on a queue that is shut down."""


class WorkQueue(Generic[K]):
    """See the module's rules.

    Args:
        clock: for delays.
        together_s: how late a key may be released; 0: not.
    """

    def __init__(self, clock: Clock, *, together_s: float = 0.0) -> None:
        self._clock = clock
        self._together_s = together_s
        self._waiting: deque[K] = deque()
        self._queued: set[K] = set()
        self._working: set[K] = set()
        self._due_at: dict[K, float] = {}
        self._delayed: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._arrived = asyncio.Event()
        self._earlier = asyncio.Event()
        self._timer: asyncio.Task[None] | None = None
        self._shut_down = False
        self.adds = 0

    def __len__(self) -> int:
        """The number of keys that are due and wait for a worker."""
        return len(self._waiting)

    def add(self, key: K) -> None:
        """Queue `key` at once, unless it is queued already."""
        if self._shut_down or key in self._queued:
            return
        self.adds += 1
        self._queued.add(key)
        if key not in self._working:
            self._waiting.append(key)
            self._arrived.set()

    def add_after(self, key: K, delay_s: float) -> None:
        """Queue `key` once `delay_s` seconds have passed; the earliest due time of a key wins."""
        if self._shut_down:
            return
        if delay_s <= 0:
            self.add(key)
            return
        due_at = self._clock.monotonic_s() + delay_s
        if key in self._due_at and self._due_at[key] <= due_at:
            return
        self._due_at[key] = due_at
        self._sequence += 1
        heapq.heappush(self._delayed, (due_at, self._sequence, key))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._release_due_keys())
        elif self._delayed[0][2] == key:
            self._earlier.set()

    async def get(self) -> K:
        """The next key, which is processed until `done`; waits for one. Raises ShutDown once the queue is shut down."""
        while not self._waiting:
            if self._shut_down:
                raise ShutDown
            self._arrived.clear()
            await self._arrived.wait()
        if self._shut_down:
            raise ShutDown
        key = self._waiting.popleft()
        self._queued.discard(key)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """The processing of `key`, returned by `get`, is over."""
        self._working.discard(key)
        if key in self._queued:
            self._waiting.append(key)
            self._arrived.set()

    def shut_down(self) -> None:
        """Make every `get` raise ShutDown, and drop the queued keys."""
        self._shut_down = True
        if self._timer is not None:
            self._timer.cancel()
        self._arrived.set()

    async def _release_due_keys(self) -> None:
        while True:
            self._earlier.clear()
            self._release(self._clock.monotonic_s())
            if not self._delayed:
                await self._earlier_or(None)
            else:
                await self._earlier_or(max(self._delayed[0][0] - self._clock.monotonic_s(), self._together_s))

    def _release(self, now_s: float) -> None:
        while self._delayed and self._delayed[0][0] <= now_s:
            due_at, _, key = heapq.heappop(self._delayed)
            if self._due_at.get(key) == due_at:
                del self._due_at[key]
                self.release(key, due_at)

    def release(self, key: K, due_at_s: float) -> None:
        """Queue a key whose delay is over; `due_at_s` is its due time by the monotonic clock."""
        del due_at_s
        self.add(key)

    async def _earlier_or(self, delay_s: float | None) -> None:
        if delay_s is None:
            await self._earlier.wait()
            return
        sleeper = asyncio.ensure_future(self._clock.sleep(delay_s))
        earlier = asyncio.ensure_future(self._earlier.wait())
        try:
            await asyncio.wait((sleeper, earlier), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            earlier.cancel()
