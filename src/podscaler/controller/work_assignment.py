"""Decides which autoscalers this process syncs, and starts and stops their syncs as leases are acquired and lost.

`podscaler.controller.assembly` makes one `WorkAssignment`. The controller and its informers tell it which autoscalers
exist, leader elections (`podscaler.controller.leaderelection`) which leases are held; without an election this process
has all autoscalers. `podscaler.controller.worker` takes the due keys from the queue and starts them as `RunningSyncs`.
State of an autoscaler that is kept elsewhere and must go with it: one of the `further_cleanups`. When a lease ends, the
state of its autoscalers is dropped: the next holder, which may be this process again, continues from their stored
histories (`podscaler.controller.history.store`).
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from podscaler.base import concurrency
from podscaler.base.clock import Clock
from podscaler.base.concurrency import Slot
from podscaler.controller.history.store import HistoryStore
from podscaler.controller.leaderelection import timeouts
from podscaler.controller.leaderelection.shard_ownership import EVERYTHING, KeyFilter, ShardOwnership, every_key
from podscaler.controller.leaderelection.write_lease import WriteLease
from podscaler.controller.queue import MeteredQueue
from podscaler.controller.reconcile.autoscaler_state import AutoscalerStates
from podscaler.controller.reconcile.event_recorder import AutoscalerEventRecorder
from podscaler.controller.recording.recording import Recording, SyncsEnd
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.kube.informers.cache import Key

STOP_TIMEOUT_S = 10.0
"""How long running syncs may take to end before a lease is released, or at the end."""
FLUSH_TIMEOUT_S = 2.0
"""How long the writing of waiting events may take before a lease is released, and again that of histories."""
FIRST_RATE_PER_S = 50.0
"""How many autoscalers a second are synced first after a lease was acquired, at least."""


class AutoscalerCleanup:
    """Drops the state of an autoscaler that this process no longer syncs.

    Args:
        states: the state of each autoscaler between syncs.
        history: stores histories.
        recording: records the end of each autoscaler.
        further_cleanups: functions that drop further state of the autoscaler with a key.
    """

    def __init__(
        self,
        states: AutoscalerStates,
        history: HistoryStore,
        recording: Recording,
        clock: Clock,
        further_cleanups: Sequence[Callable[[Key], None]],
    ) -> None:
        self._states = states
        self._history = history
        self._recording = recording
        self._clock = clock
        self._further_cleanups = further_cleanups

    def forget(self, key: Key) -> None:
        """Drop all state of an autoscaler that was deleted, and delete its stored history."""
        self._history.forget(key)
        self._drop(key)

    def release(self, key: Key) -> None:
        """Drop all state of an autoscaler that another process syncs from now on; the stored history stays for it."""
        self._history.drop(key)
        self._drop(key)

    def _drop(self, key: Key) -> None:
        """Drop all state in memory, and record the end of the autoscaler's history."""
        self._states.forget(key)
        for forget_key in self._further_cleanups:
            forget_key(key)
        self._recording.report(SyncsEnd(self._clock.now_ns(), key))


class RunningSyncs:
    """The tasks of the syncs that run now.

    Args:
        queue: the work queue; its `done` is called when a sync ends.

    Attributes:
        last_key: the key whose sync was started last; None: no sync yet.
    """

    def __init__(self, queue: MeteredQueue) -> None:
        self._queue = queue
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self.last_key: Key | None = None

    def run(self, key: Key, sync: Coroutine[Any, Any, None], slot: Slot) -> None:
        """Start the sync of a key that has none, in a concurrency slot that is released when it ends."""
        task = asyncio.get_running_loop().create_task(sync, context=concurrency.enter(slot, copy_context()))
        self._tasks[key] = task
        self.last_key = key
        task.add_done_callback(lambda ended_task: self._on_sync_done(key, ended_task, slot))

    async def wait_ended(self, belongs: KeyFilter = every_key) -> None:
        """Return when no sync runs of a key for which `belongs` is true."""
        while running := self._running(belongs):
            await asyncio.wait(running)

    async def cancel(self, belongs: KeyFilter = every_key) -> None:
        """Cancel the syncs of keys for which `belongs` is true, and return when they have ended."""
        await timeouts.end(*self._running(belongs))

    def _running(self, belongs: KeyFilter) -> list[asyncio.Task[None]]:
        return [task for key, task in self._tasks.items() if belongs(key)]

    def _on_sync_done(self, key: Key, task: asyncio.Task[None], slot: Slot) -> None:
        """A callback of the task, as a sync that is cancelled before it has begun runs no code of its own."""
        if self._tasks.get(key) is task:
            del self._tasks[key]
        self._queue.done(key)
        slot.release()


@dataclass(frozen=True, slots=True)
class LeaseHandover:
    """The parts that are flushed for the next holder, before a lease is released.

    Attributes:
        recorder: writes the events that wait.
        history: writes the histories.
        cleanup: drops the state of the autoscalers.
        clock: limits the time that this takes.
    """

    recorder: AutoscalerEventRecorder
    history: HistoryStore
    cleanup: AutoscalerCleanup
    clock: Clock


class WorkAssignment:
    """The set of autoscalers that this process syncs; implements `shard_ownership.LeaderCallbacks`.

    Args:
        states: the state of each autoscaler between syncs.
        syncs: the running syncs.
        queue: the work queue, with the keys that are due.
        handover: the parts that are flushed before a lease is released.
        telemetry: counts the autoscalers.
        wait_listed: returns once all autoscalers and pods are listed.

    Attributes:
        syncs: the running syncs.
        has_begun: set when there is work: at the start without an election, and with every lease. Its one waiter,
            `options.effective_settings`, clears it.
    """

    def __init__(
        self,
        states: AutoscalerStates,
        syncs: RunningSyncs,
        queue: MeteredQueue,
        *,
        handover: LeaseHandover,
        telemetry: Telemetry,
        wait_listed: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._ownership = EVERYTHING
        self._is_open = False
        self._states = states
        self.syncs = syncs
        self._queue = queue
        self._handover = handover
        self._telemetry = telemetry
        self._wait_listed = wait_listed
        self._counted: set[Key] = set()
        self.has_begun = asyncio.Event()

    def set_ownership(self, ownership: ShardOwnership) -> None:
        """Sync only the autoscalers whose leases this process holds; call it before `open`."""
        self._ownership = ownership

    def write_lease(self, key: Key) -> WriteLease | None:
        """The lease by which this process syncs an autoscaler; None: another process syncs it, or none."""
        return self._ownership.find(key)

    def open(self) -> None:
        """Allow syncs, now that all autoscalers and pods are listed, and queue the autoscalers of this process."""
        self._is_open = True
        self.queue_registered(every_key)

    def is_mine(self, key: Key) -> bool:
        """Whether this process syncs the autoscaler now."""
        return self._is_open and self.write_lease(key) is not None

    def register(self, key: Key) -> None:
        """Queue an autoscaler that is new, or that is to be synced at once."""
        self._states.register(key)
        self._count(key)
        if self.is_mine(key):
            self._queue.add(key)

    def queue_within_period(self, key: Key) -> None:
        """Queue an autoscaler with a new version that is not urgent: it is synced within a period."""
        if self.is_mine(key):
            self._queue.add_after(key, self._queue.period_s)

    def unregister(self, key: Key, uid: str) -> None:
        """Remove a deleted autoscaler from the registered and counted ones; its next sync drops its state."""
        self._states.unregister(key, uid)
        self._uncount(key)

    def queue_registered(self, belongs: KeyFilter) -> None:
        """Queue all keys for which `belongs` is true, by namespace and name: metrics of a namespace are shared.

        Their first syncs are spread evenly, FIRST_RATE_PER_S or more a second, over one sync period at most. The first
        key is the one after the key that was synced last, so that all are synced in turn if leases are lost often.
        """
        if self._ownership is EVERYTHING:  # with an election `on_started_leading` sets it
            self.has_begun.set()
        keys = sorted(key for key in self._states.registered(belongs) if self.write_lease(key) is not None)
        if self.syncs.last_key is not None:
            start = bisect_right(keys, self.syncs.last_key)
            keys = keys[start:] + keys[:start]
        span_s = min(self._queue.period_s, len(keys) / FIRST_RATE_PER_S)
        for index, key in enumerate(keys):
            self._queue.add_after(key, index * span_s / len(keys))

    async def wait_listed(self) -> None:
        """Return once all autoscalers and pods are listed: an election starts only then."""
        await self._wait_listed()

    def on_started_leading(self, belongs: KeyFilter) -> None:
        """Sync the autoscalers of an acquired lease; stored histories are read again: others may have written them."""
        self._handover.history.expect_changes()
        for key in self._states.registered(belongs):
            self._count(key)
        self.has_begun.set()
        self.queue_registered(belongs)

    async def on_stopped_leading(self, belongs: KeyFilter) -> None:
        """Hand over the autoscalers of a lease before its release; syncs and writes lasting too long are cancelled."""
        handover, clock = self._handover, self._handover.clock
        await timeouts.first_of(self.syncs.wait_ended(belongs), clock.sleep(STOP_TIMEOUT_S))
        await self.syncs.cancel(belongs)
        await timeouts.first_of(handover.recorder.flush(belongs), clock.sleep(FLUSH_TIMEOUT_S))
        writing = handover.history.hand_over(self._states.known_keys(belongs))
        await timeouts.first_of(writing, clock.sleep(FLUSH_TIMEOUT_S))
        await self.on_lost_lease(belongs)

    async def on_lost_lease(self, belongs: KeyFilter) -> None:
        """Stop the syncs of a lease that is lost or was handed over; stored histories stay, for the next holder."""
        await self.syncs.cancel(belongs)
        for key in self._states.known_keys(belongs):
            self._uncount(key)
            self._handover.cleanup.release(key)

    def shut_down(self) -> None:
        """Start no more syncs."""
        self._queue.shut_down()

    async def close(self) -> None:
        """Cancel all syncs, and start no more."""
        self.shut_down()
        await self.syncs.cancel()

    def _count(self, key: Key) -> None:
        """Count an autoscaler in the telemetry, once, if this process manages it."""
        if key not in self._counted and self.write_lease(key) is not None:
            self._counted.add(key)
            self._telemetry.autoscaler_added()

    def _uncount(self, key: Key) -> None:
        """Undo `_count`."""
        if key in self._counted:
            self._counted.discard(key)
            self._telemetry.autoscaler_deleted()
