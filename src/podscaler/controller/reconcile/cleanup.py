"""Drops what the process keeps of an autoscaler that it manages no more.

The sync that finds an autoscaler gone calls `forget`; the end of a write lease calls `release` for those that it
covers.
"""

from collections.abc import Callable, Sequence

from podscaler.base.clock import Clock
from podscaler.controller.history.store import HistoryStore
from podscaler.controller.reconcile.state import AutoscalerStates
from podscaler.controller.recording.recording import End, Recording
from podscaler.kube.informers.cache import Key


class AutoscalerCleanup:
    """See the module.

    Args:
        states: the records of autoscalers.
        history: the kept histories.
        recording: gets an end for each.
        clock: the instant of that end.
        others: drop what else is kept of an autoscaler, by its key.
    """

    def __init__(
        self,
        states: AutoscalerStates,
        history: HistoryStore,
        recording: Recording,
        clock: Clock,
        others: Sequence[Callable[[Key], None]],
    ) -> None:
        self._states = states
        self._history = history
        self._recording = recording
        self._clock = clock
        self._others = others

    def forget(self, key: Key) -> None:
        """The autoscaler was deleted: its kept history goes too."""
        self._history.forget(key)
        self._drop(key)

    def release(self, key: Key) -> None:
        """Another process manages the autoscaler from now on, and continues its kept history."""
        self._history.drop(key)
        self._drop(key)

    def _drop(self, key: Key) -> None:
        self._states.forget(key)
        for drop in self._others:
            drop(key)
        self._recording.report(End(self._clock.now_ns(), key))
