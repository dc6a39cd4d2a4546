"""Defines WorkQueue, the queue of a controller: keys of objects to process, none of them twice at the same time.

Rules (those of client-go's delaying work queue):

1. A queued key is not added again; one that is added while it is processed is queued again when that is done.
2. Delayed additions of one key merge: the earlier due time wins. An immediate addition leaves a delayed one in place.
3. First in, first out among the keys that are due.
4. Delayed keys whose due times are close may be queued together, up to `lateness_max_s` after the due time: waking the
   process once for ten keys takes a third of the CPU of waking it ten times.

A worker's loop is `key = await queue.get()`, process the key, `queue.done(key)`. Used by the HPA controller
(`podscaler.controller.queue`) and by the controllers of the control plane.

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
    """A queue of keys such as `namespace/name`, with the rules of the module's docstring; for one event loop.

    Args:
        clock: measures delays.
        lateness_max_s: how many seconds after its due time a delayed key may be queued; 0: each is queued in time.

    Attributes:
        adds: how many keys were queued so far, for metrics.
    """

    def __init__(self, clock: Clock, *, lateness_max_s: float = 0.0) -> None:
        self._clock = clock
        self._lateness_max_s = lateness_max_s
        self._waiting: deque[K] = deque()  # due, and not being processed
        self._queued: set[K] = set()  # in `_waiting`, or to be appended to it by `done`
        self._processing: set[K] = set()
        self._due_at_s: dict[K, float] = {}  # monotonic clock; other entries of `_delayed` are outdated
        self._delayed: list[tuple[float, int, K]] = []  # heap of (due time, sequence number, key)
        self._sequence = 0
        self._key_arrived = asyncio.Event()
        self._earlier_due_time = asyncio.Event()
        self._timer: asyncio.Task[None] | None = None
        self._is_shut_down = False
        self.adds = 0

    def __len__(self) -> int:
        """The number of keys that are due and wait for a worker."""
        return len(self._waiting)

    def add(self, key: K) -> None:
        """Queue `key` at once, unless it is queued already."""
        if self._is_shut_down or key in self._queued:
            return
        self.adds += 1
        self._queued.add(key)
        if key not in self._processing:
            self._waiting.append(key)
            self._key_arrived.set()

    def add_after(self, key: K, delay_s: float) -> None:
        """Queue `key` once `delay_s` seconds have passed; the earliest due time of a key wins."""
        if self._is_shut_down:
            return
        if delay_s <= 0:
            self.add(key)
            return
        due_at_s = self._clock.monotonic_s() + delay_s
        if key in self._due_at_s and self._due_at_s[key] <= due_at_s:
            return
        self._due_at_s[key] = due_at_s
        self._sequence += 1
        heapq.heappush(self._delayed, (due_at_s, self._sequence, key))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._queue_due_keys())
        else:
            _, _, earliest_key = self._delayed[0]
            if earliest_key == key:
                self._earlier_due_time.set()

    async def get(self) -> K:
        """Wait for a key and return it; the caller processes it and calls `done`.

        Raises:
            ShutDown: the queue is shut down.
        """
        while not self._waiting:
            if self._is_shut_down:
                raise ShutDown
            self._key_arrived.clear()
            await self._key_arrived.wait()
        if self._is_shut_down:
            raise ShutDown
        key = self._waiting.popleft()
        self._queued.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        """The processing of `key`, returned by `get`, is over."""
        self._processing.discard(key)
        if key in self._queued:
            self._waiting.append(key)
            self._key_arrived.set()

    def shut_down(self) -> None:
        """Make every `get` raise ShutDown, and drop the queued keys."""
        self._is_shut_down = True
        if self._timer is not None:
            self._timer.cancel()
        self._key_arrived.set()

    async def _queue_due_keys(self) -> None:
        """The timer task: queues delayed keys when they are due."""
        while True:
            self._earlier_due_time.clear()
            self._release_until(self._clock.monotonic_s())
            if not self._delayed:
                await self._wait_for_earlier(None)
            else:
                earliest_due_s, _, _ = self._delayed[0]  # of an outdated entry, perhaps: then nothing is queued
                # at least for the allowed lateness, in which further keys become due
                await self._wait_for_earlier(max(earliest_due_s - self._clock.monotonic_s(), self._lateness_max_s))

    def _release_until(self, now_s: float) -> None:
        """Queue the delayed keys that are due by `now_s`."""
        while self._delayed and self._delayed[0][0] <= now_s:
            due_at_s, _, key = heapq.heappop(self._delayed)
            if self._due_at_s.get(key) == due_at_s:
                del self._due_at_s[key]
                self.release(key, due_at_s)

    def release(self, key: K, due_at_s: float) -> None:
        """Queue a key whose delay is over; subclasses measure its lateness.

        Args:
            key: the key.
            due_at_s: its due time, in seconds of the monotonic clock.
        """
        del due_at_s
        self.add(key)

    async def _wait_for_earlier(self, delay_s: float | None) -> None:
        """Wait until an earlier due time is added, at most for `delay_s` (None for no limit)."""
        if delay_s is None:
            await self._earlier_due_time.wait()
            return
        sleeper = asyncio.ensure_future(self._clock.sleep(delay_s))
        earlier = asyncio.ensure_future(self._earlier_due_time.wait())
        try:
            await asyncio.wait((sleeper, earlier), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            earlier.cancel()
