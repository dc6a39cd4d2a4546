"""Defines the work queue of autoscalers' keys, with the work queue metrics of kube-controller-manager.

The worker takes keys from it. The next sync of an autoscaler is due a period after this one was due, not after it ended
(`add_next`). Syncs that wait together for a slow response end together; counted from their ends they would be due
together in each later period, and make the next response slow.

Source: docs/spec/controller.md 2 (Queueing) and 8 (Prometheus metrics).
"""

from podscaler.base.clock import Clock
from podscaler.base.workqueue import WorkQueue
from podscaler.controller.telemetry.telemetry import QueueMetrics
from podscaler.kube.informers.cache import Key

TOGETHER_RATIO = 1 / 75
"""Of a period: keys that are due within this time (0.2 s of 15 s) are released together: a third less CPU time."""
PAUSE_RATIO = 0.1
"""Of a period: the least time between the end of a sync and the next, however late the sync was."""


class MeteredQueue(WorkQueue[Key]):
    """A work queue of keys that are due again after a period, and that reports to `metrics`.

    Args:
        metrics: counts keys, and measures waits and durations.
        period_s: the sync period.
    """

    def __init__(self, clock: Clock, metrics: QueueMetrics, *, period_s: float) -> None:
        super().__init__(clock, lateness_max_s=period_s * TOGETHER_RATIO)
        self.period_s = period_s
        self._metrics = metrics
        self._queued_due_at_s: dict[Key, float] = {}
        self._working_due_at_s: dict[Key, float] = {}

    def add(self, key: Key) -> None:
        self.release(key, self._clock.monotonic_s())

    def release(self, key: Key, due_at_s: float) -> None:
        """Make a key ready that was due at that instant of the monotonic clock; counted unless it is ready already.

        The base class calls it for keys whose delay has ended.
        """
        adds_before = self.adds
        super().add(key)
        if self.adds > adds_before:
            self._queued_due_at_s[key] = due_at_s
            self._metrics.added(key, due_at_s)

    def add_after(self, key: Key, delay_s: float) -> None:
        super().add_after(key, delay_s)
        self._metrics.delayed()

    def add_next(self, key: Key) -> None:
        """Queue a key that is being synced for its next sync, a period after this one was due."""
        now_s = self._clock.monotonic_s()
        remaining_s = self._working_due_at_s.get(key, now_s) + self.period_s - now_s
        self.add_after(key, max(remaining_s, self.period_s * PAUSE_RATIO))

    async def get(self) -> Key:
        """Wait for a ready key; its next period counts from when it was due."""
        key = await super().get()
        self._working_due_at_s[key] = self._queued_due_at_s.pop(key, self._clock.monotonic_s())
        self._metrics.started(key)
        return key

    def done(self, key: Key) -> None:
        self._working_due_at_s.pop(key, None)
        self._metrics.finished(key)
        super().done(key)
