"""The autoscalers that this process looks after, as parts that come and go with leases.

The loop asks `write_lease` before each sync and runs syncs through `run`; elections
(`podscaler.controller.leaderelection`) say what comes and goes. A part that goes is forgotten whole: whoever looks
after it next begins with what was kept (`podscaler.controller.history.store`), and so does this process when the part
comes back.
"""

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any

from podscaler.base import concurrency
from podscaler.base.clock import NANOSECONDS
from podscaler.base.concurrency import Slot
from podscaler.base.workqueue import WorkQueue
from podscaler.controller.leaderelection import timeouts
from podscaler.controller.leaderelection.shard_ownership import EVERYTHING, Part, Share
from podscaler.controller.leaderelection.write_lease import Tenure
from podscaler.controller.reconcile.state import Memory
from podscaler.controller.reconcile.surroundings import Surroundings
from podscaler.controller.recording.recording import End
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

STOP_TIMEOUT_S = 10.0
FLUSH_TIMEOUT_S = 2.0
FIRST_RATE_PER_S = 50.0


class Parts:
    """See the module; the Work of elections.

    Args:
        around: what syncs work with.
        memory: what they remember.
        queue: where turns wait.
        period_ns: the sync period.
        wait_listed: returns once everything is followed.

    Attributes:
        has_begun: set whenever there is something to do: at the start of a lone controller, and with every lease.
    """

    def __init__(
        self,
        around: Surroundings,
        memory: Memory,
        *,
        queue: WorkQueue[Key],
        period_ns: int,
        wait_listed: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._share = EVERYTHING
        self._around = around
        self._memory = memory
        self._queue = queue
        self._period_s = period_ns / NANOSECONDS
        self._wait_listed = wait_listed
        self._syncs: dict[Key, asyncio.Task[None]] = {}
        self._counted: set[Key] = set()
        self._last: Key | None = None
        self.has_begun = asyncio.Event()

    def share_by(self, share: Share) -> None:
        """Have the work shared with other processes; call it before it begins."""
        self._share = share

    def tenure(self, key: Key) -> Tenure | None:
        """By which an autoscaler is looked after here; None where it is not."""
        return self._share.find(key)

    def run(self, key: Key, sync: Coroutine[Any, Any, None], turn: Slot) -> None:
        """Let a sync run by a turn, which it gives when it ends; there is no other of the key."""
        task = asyncio.get_running_loop().create_task(sync, context=concurrency.enter(turn, copy_context()))
        self._syncs[key] = task
        self._last = key
        task.add_done_callback(lambda done: self._ended(key, done, turn))

    def count(self, key: Key) -> None:
        """An autoscaler is there."""
        if key not in self._counted and self.tenure(key) is not None:
            self._counted.add(key)
            self._around.telemetry.autoscaler_added()

    def discount(self, key: Key) -> None:
        """An autoscaler is gone."""
        if key in self._counted:
            self._counted.discard(key)
            self._around.telemetry.autoscaler_deleted()

    def begin(self, part: Part) -> None:
        """Look at all of a part, one after the other; those of a namespace come together, which shares answers.

        Goes on after the one that was looked at last: where leases are lost again and again, all have their turn.
        """
        if self._share is EVERYTHING:
            self.has_begun.set()
        keys = sorted(key for key in self._memory.registered if part(key) and self.tenure(key) is not None)
        if self._last is not None:
            start = bisect_right(keys, self._last)
            keys = keys[start:] + keys[:start]
        span_s = min(self._period_s, len(keys) / FIRST_RATE_PER_S)
        for index, key in enumerate(keys):
            self._queue.add_after(key, index * span_s / len(keys))

    async def wait_listed(self) -> None:
        """As Work."""
        await self._wait_listed()

    def take_up(self, part: Part) -> None:
        """As Work."""
        self._around.archive.expect_changes()
        for key in filter(part, self._memory.registered):
            self.count(key)
        self.has_begun.set()
        self.begin(part)

    async def lay_down(self, part: Part) -> None:
        """As Work; what does not end in time is cut off."""
        clock = self._around.clock
        await timeouts.first_of(self.ended(part), clock.sleep(STOP_TIMEOUT_S))
        await self._cancel(part)
        await timeouts.first_of(self._around.recorder.flush(part), clock.sleep(FLUSH_TIMEOUT_S))
        handing_over = self._around.archive.hand_over(list(filter(part, self._memory.known)))
        await timeouts.first_of(handing_over, clock.sleep(FLUSH_TIMEOUT_S))
        await self.drop(part)

    async def drop(self, part: Part) -> None:
        """As Work."""
        await self._cancel(part)
        now_ns = self._around.clock.now_ns()
        for key in list(filter(part, self._memory.known)):
            self.discount(key)
            self._memory.lay_down(key)
            self._around.lay_down(key)
            self._around.recording.report(End(now_ns, key))

    async def ended(self, part: Part) -> None:
        """Return when no sync of a part runs."""
        while running := self._running(part):
            await asyncio.wait(running)

    async def cancel(self) -> None:
        """End all syncs."""
        await timeouts.end(*self._syncs.values())

    async def _cancel(self, part: Part) -> None:
        await timeouts.end(*self._running(part))

    def _running(self, part: Part) -> list[asyncio.Task[None]]:
        return [task for key, task in self._syncs.items() if part(key)]

    def _ended(self, key: Key, task: asyncio.Task[None], turn: Slot) -> None:
        """Here and not in the sync, which may be cancelled before it has begun."""
        if self._syncs.get(key) is task:
            del self._syncs[key]
        self._queue.done(key)
        turn.release()
