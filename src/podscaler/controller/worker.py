"""Takes the keys of autoscalers from the work queue, syncs the autoscalers, and queues the keys again.

The controller runs `SyncWorker`, the loop; `KeyProcessor` does one sync of one key. A further outcome: in
SyncOutcome, `process` and `_queue_next`. Rules:

1. One autoscaler is never synced twice at the same time, whatever the number of concurrency slots.
2. A failure that is a bug, in one sync, affects no other autoscaler; it is logged with its traceback and counted.
3. A sync without a result, because the API server did not respond, is retried with backoff (`AutoscalerState`).
4. The state of an autoscaler is dropped when its next sync finds it gone.
5. Only autoscalers whose write lease this process holds are synced, and nothing is written once that lease has ended.

Source: docs/spec/controller.md 2 (Queueing), 3 (Processing one key).
"""

import logging
from collections.abc import Callable
from enum import Enum

from podscaler.base.clock import Clock
from podscaler.base.concurrency import Slots
from podscaler.base.workqueue import ShutDown
from podscaler.controller.informers.autoscaler_informer import AutoscalerInformer
from podscaler.controller.leaderelection import fence
from podscaler.controller.leaderelection.fence import LeadershipLost
from podscaler.controller.options import autoscaler_kinds, feature_gates
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.queue import MeteredQueue
from podscaler.controller.reconcile.autoscaler_state import AutoscalerStates
from podscaler.controller.reconcile.reconcile import Outdated
from podscaler.controller.reconcile.sync_reporter import SyncReporter
from podscaler.controller.telemetry import current_sync
from podscaler.controller.telemetry.current_sync import SyncHandler
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.controller.work_assignment import AutoscalerCleanup, WorkAssignment
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

RESTART_DELAY_S = 1.0
"""After how long a key is tried again whose sync failed by a bug, or whose write lease is being renewed."""


class SyncOutcome(Enum):
    """How a sync ended: deleted before, synced or skipped, or edited meanwhile; `SyncWorker._queue_next` uses it."""

    GONE = "gone"
    SYNCED = "synced"
    EDITED = "edited"


class KeyProcessor:
    """Syncs the autoscaler of a key, unless it was deleted, waits for a migration, or the cache is stale.

    Args:
        autoscalers: the cache of autoscalers.
        states: the state of each autoscaler between syncs.
        reconciler: carries out a sync; replaced by `wrap`.
        cleanup: drops the state of deleted autoscalers.
        reporter: reports outcomes.
        settings: the sync period and the feature gates.
    """

    def __init__(
        self,
        autoscalers: AutoscalerInformer,
        states: AutoscalerStates,
        *,
        reconciler: SyncHandler,
        cleanup: AutoscalerCleanup,
        reporter: SyncReporter,
        settings: ControllerSettings,
    ) -> None:
        self._autoscalers = autoscalers
        self._states = states
        self.reconciler = reconciler
        self._cleanup = cleanup
        self._reporter = reporter
        self._is_dry_run = settings.dry_run
        self._period_s = settings.sync_period_s
        self._checks_cache = settings.gates.enabled(feature_gates.STALE_CONTROLLER_CONSISTENCY)

    def wrap(self, wrapper: Callable[[SyncHandler], SyncHandler]) -> None:
        """Have every sync pass through `wrapper(reconciler)`; call it before the first sync."""
        self.reconciler = wrapper(self.reconciler)

    async def process(self, key: Key) -> SyncOutcome:
        """Sync one autoscaler. Raises LeadershipLost if its write lease ended meanwhile; all else is a bug."""
        state = self._states.of(key)
        state.begin_sync()
        if self._checks_cache and (lag := state.find_lag(self._autoscalers.version(key))) is not None:
            state.lacks_result = True
            self._reporter.report_skipped(autoscaler_kinds.described(key), lag)
            return SyncOutcome.SYNCED  # `lacks_result` has it repeated with backoff
        autoscaler = self._autoscalers.find(key)
        if autoscaler is None:
            log.info("%s has been deleted", autoscaler_kinds.described(key))
            self._cleanup.forget(key)
            return SyncOutcome.GONE
        if self._autoscalers.is_waiting(autoscaler):
            if self._states.begin_waiting(state) and not self._is_dry_run:
                self._reporter.report_waiting(autoscaler)
            return SyncOutcome.SYNCED
        state.is_waiting = False
        try:
            await self.reconciler.reconcile(autoscaler)
        except Outdated as error:
            log.debug("%s", error)
            return SyncOutcome.EDITED
        return SyncOutcome.SYNCED

    def take_retry_delay_s(self, key: Key) -> float | None:
        """As `AutoscalerState.take_retry_delay_s`; called once after each sync."""
        return self._states.of(key).take_retry_delay_s(self._period_s)


class SyncWorker:
    """Takes keys from the queue and syncs them, up to the limit of concurrency slots, by the module's rules.

    Args:
        queue: the keys that are due.
        slots: the concurrency slots of syncs.
        assignment: which autoscalers are synced here, and by which write lease.
        processor: one sync.
        telemetry: counts bugs.
    """

    def __init__(
        self,
        queue: MeteredQueue,
        slots: Slots,
        assignment: WorkAssignment,
        *,
        processor: KeyProcessor,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self._queue = queue
        self._slots = slots
        self._assignment = assignment
        self._processor = processor
        self._telemetry = telemetry
        self._clock = clock

    async def run(self) -> None:
        """Start a sync for each key that is due, once a slot is free, until the queue is shut down."""
        while True:
            slot = await self._slots.take()
            try:
                key = await self._queue.get()
            except BaseException as error:  # also a cancellation, which would leave the slot taken
                slot.release()
                if isinstance(error, ShutDown):
                    return
                raise
            self._assignment.syncs.run(key, self._sync(key), slot)

    async def _sync(self, key: Key) -> None:
        """Sync one autoscaler if this process holds its write lease, and queue its key again."""
        current_sync.CURRENT.set(key)  # for log records
        write_lease = self._assignment.write_lease(key)
        if write_lease is None:
            return  # queued again when the lease is
        if write_lease.remaining_s() <= 0:
            self._queue.add_after(key, RESTART_DELAY_S)  # the lease is being renewed, or lost
            return
        fence.enter(write_lease)
        began_s = self._clock.monotonic_s()
        try:
            outcome = await self._processor.process(key)
        except LeadershipLost as error:
            log.info("the sync of %s/%s ends: %s", *key, error)
            self._queue.add_after(key, RESTART_DELAY_S)
            return
        except Exception:
            log.exception("the sync of %s/%s failed in a way that is a bug; it is tried again", *key)
            self._telemetry.sync_panicked(self._clock.monotonic_s() - began_s)
            self._queue.add_after(key, self._queue.period_s)
            await self._clock.sleep(RESTART_DELAY_S)  # holds the slot: many bugs at once do not fill the log
            return
        self._queue_next(key, outcome)

    def _queue_next(self, key: Key, outcome: SyncOutcome) -> None:
        """Queue the next sync of an autoscaler, unless it is gone: at once, with backoff, or a period later."""
        if outcome is SyncOutcome.GONE:
            return
        if outcome is SyncOutcome.EDITED:
            self._queue.add(key)
        self._queue.add_next(key)  # also after an edit: the immediate sync does not shift the period
        retry_delay_s = self._processor.take_retry_delay_s(key)
        if retry_delay_s is not None:
            self._queue.add_after(key, retry_delay_s)
