"""Runs a workload under a scaler that is no HorizontalPodAutoscaler, in the world of the exact engine.

Called by `podscaler.simulation.evaluation.comparison`, for candidates that are no specs. The scaler sees the
state of the workload at its own ticks; states are yielded at the instants at which the scenario's autoscalers would
sync, so that all candidates are measured at the same instants. At an instant that is both, the state comes first.
"""

from collections.abc import Iterator
from typing import Protocol

from podscaler.simulation import engine
from podscaler.simulation.model.results import WorkloadState
from podscaler.simulation.model.scenario import SimulationScenario
from podscaler.simulation.model.workloads import WorkloadModel
from podscaler.simulation.world.event_queue import EventPriority, EventQueue
from podscaler.simulation.world.nodes import Nodes
from podscaler.simulation.world.workload import VirtualWorkload


class Scaler(Protocol):
    """Decides the replicas of one workload at regular ticks, the first at millisecond 0."""

    @property
    def tick_ms(self) -> int:
        """The time between two ticks."""
        ...

    def replicas(self, at_ms: int, state: WorkloadState) -> int:
        """The replicas from now on. The sums of the state are those since the tick before, as at a sync."""
        ...


def run_scaler(scenario: SimulationScenario, key: str, scaler: Scaler) -> Iterator[tuple[int, WorkloadState]]:
    """The instants of syncs, and the workload's state at each with the sums since the one before.

    Args:
        scenario: its autoscalers, events and other workloads are ignored.
        key: `namespace/name` of the workload.

    Raises ValueError if the scenario has no such workload, or contradicts itself.
    """
    model = next((workload for workload in scenario.workloads if workload.key == key), None)
    if model is None:
        raise ValueError(f"the scenario has no workload {key}")
    return _ScaledWorkload(scenario, model, scaler).run()


class _ScaledWorkload:
    """One workload in a world of its own, with the events of its syncs and of the scaler's ticks."""

    def __init__(self, scenario: SimulationScenario, model: WorkloadModel, scaler: Scaler) -> None:
        self._scenario = scenario
        self._scaler = scaler
        self._event_queue = EventQueue()
        nodes = None if scenario.cluster is None else Nodes(scenario.cluster, self._event_queue, str(scenario.seed))
        self._workload = VirtualWorkload(model, scenario, self._event_queue, nodes, ())
        self._sums_of_syncs = _StateDifferences()
        self._sums_of_ticks = _StateDifferences()
        self._unread_sync: tuple[int, WorkloadState] | None = None
        self._event_queue.add(scenario.first_sync_ms, EventPriority.SYNC, self._sync)
        self._event_queue.add(0, EventPriority.TICK, self._tick)

    def run(self) -> Iterator[tuple[int, WorkloadState]]:
        """Run all events until the end of the scenario, and yield the state after each sync."""
        while self._event_queue.run_next(self._scenario.duration_ms) is not None:
            if self._unread_sync is not None:
                yield self._unread_sync
                self._unread_sync = None

    def _sync(self, at_ms: int) -> None:
        """Keep the state for `run` to yield, and plan the next sync."""
        self._unread_sync = at_ms, self._sums_of_syncs.since_last(self._workload.state(at_ms), at_ms)
        self._event_queue.add(at_ms + self._scenario.sync_period_ms, EventPriority.SYNC, self._sync)

    def _tick(self, at_ms: int) -> None:
        """Write the replicas that the scaler decides, and plan the next tick."""
        state = self._sums_of_ticks.since_last(self._workload.state(at_ms), at_ms)
        replicas = self._scaler.replicas(at_ms, state)
        if replicas != self._workload.replicas:
            self._workload.set_replicas(replicas, at_ms)
        self._event_queue.add(at_ms + self._scaler.tick_ms, EventPriority.TICK, self._tick)


class _StateDifferences:
    """Turns the sums of states since the start into those since the state before."""

    def __init__(self) -> None:
        self._last_state: WorkloadState | None = None
        self._last_ms = 0

    def since_last(self, state: WorkloadState, at_ms: int) -> WorkloadState:
        """The state with the sums since the last call."""
        difference = engine.difference_since(self._last_state, state, at_ms - self._last_ms)
        self._last_state, self._last_ms = state, at_ms
        return difference
