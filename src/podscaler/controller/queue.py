"""The queue of autoscalers to look at: the shared work queue, which also tells how long keys wait and are worked on.

The loop adds keys and takes them; `podscaler.controller.telemetry` reads the figures.

Source: controller.md 2 and 8.
"""

from podscaler.clock import Clock
from podscaler.controller.telemetry import QueueMetrics
from podscaler.kube.cache import Key
from podscaler.workqueue import WorkQueue

TOGETHER_S = 0.05


class MeteredQueue(WorkQueue[Key]):
    """A work queue that reports to `metrics`.

    Args:
        clock: where delays come from.
        metrics: what is told of each key's way.
    """

    def __init__(self, clock: Clock, metrics: QueueMetrics) -> None:
        super().__init__(clock, together_s=TOGETHER_S)
        self._metrics = metrics

    def add(self, key: Key) -> None:
        """As in WorkQueue."""
        self.release(key, self._clock.monotonic_s())

    def release(self, key: Key, due_at_s: float) -> None:
        """As in WorkQueue."""
        adds = self.adds
        super().add(key)
        if self.adds > adds:
            self._metrics.added(key, due_at_s)

    def add_after(self, key: Key, delay_s: float) -> None:
        """As in WorkQueue."""
        super().add_after(key, delay_s)
        self._metrics.delayed()

    async def get(self) -> Key:
        """As in WorkQueue."""
        key = await super().get()
        self._metrics.started(key)
        return key

    def done(self, key: Key) -> None:
        """As in WorkQueue."""
        self._metrics.finished(key)
        super().done(key)
