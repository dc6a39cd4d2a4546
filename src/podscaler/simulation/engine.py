"""Runs a scenario in virtual time, and yields every sync of every autoscaler.

Called by the commands `simulate`, `backtest` and `tune`. At each sync an autoscaler observes its workload as a
controller observes a cluster, `podscaler.core.decide` decides with the history of earlier syncs, and the new replicas
are written to the workload at once.

Invariants: equal scenarios give equal results. Memory does not grow with the length of a scenario, apart from what the
caller keeps.
"""

import functools
from collections.abc import Iterator

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.core import decide
from podscaler.core.decision import Decision
from podscaler.core.model import history
from podscaler.core.model.observation import Observation
from podscaler.core.model.selector_store import SelectorStore
from podscaler.simulation.metric_feeds import MetricFeeds
from podscaler.simulation.model.results import SimulatedSync, WorkloadState
from podscaler.simulation.model.scenario import (
    AutoscalerModel,
    ManualScale,
    RolloutStart,
    ScenarioEvent,
    SimulationScenario,
    SpecEdit,
)
from podscaler.simulation.world.event_queue import EventPriority, EventQueue
from podscaler.simulation.world.nodes import Nodes
from podscaler.simulation.world.pods import MS_NS
from podscaler.simulation.world.workload import VirtualWorkload


def simulate(scenario: SimulationScenario) -> Iterator[SimulatedSync]:
    """The syncs of a scenario in order, each as soon as it is made.

    Raises ValueError, at the call, if the scenario contradicts itself: an autoscaler without its workload or without
    values of a metric, two demands for one resource, a pod larger than a node.
    """
    return _Simulation(scenario).run()


class _Autoscaler:
    """An autoscaler with the status, history and generation that its controller keeps between syncs.

    Attributes:
        last_state: of its workload at the sync before; None if this is the first.
    """

    def __init__(self, model: AutoscalerModel, workload: VirtualWorkload, feeds: MetricFeeds) -> None:
        self.model = model
        self.workload = workload
        self.feeds = feeds
        self.status = HorizontalPodAutoscalerStatus()
        self.history = history.EMPTY
        self.generation = 1
        self.last_state: WorkloadState | None = None
        self.last_sync_ms = 0


class _Simulation:
    """The workloads, autoscalers and nodes of one run, with the queue of events that change them."""

    def __init__(self, scenario: SimulationScenario) -> None:
        self._scenario = scenario
        self._event_queue = EventQueue()
        cluster = scenario.cluster
        self._nodes = None if cluster is None else Nodes(cluster, self._event_queue, str(scenario.seed))
        feeds = MetricFeeds(scenario)
        self._workloads = {
            model.key: VirtualWorkload(
                model, scenario, self._event_queue, self._nodes, feeds.sampled_resources(model.key)
            )
            for model in scenario.workloads
        }
        self._selectors = SelectorStore()
        self._autoscalers = [self._make_autoscaler(model, feeds) for model in scenario.autoscalers]
        self._due_syncs_ms: list[int] = []
        self._event_queue.add(scenario.first_sync_ms, EventPriority.SYNC, self._mark_sync_due)
        for event in scenario.events:
            self._event_queue.add(event.at_ms, EventPriority.USER, functools.partial(self._apply_event, event))

    def run(self) -> Iterator[SimulatedSync]:
        """Run all events until the end of the scenario, and yield a sync of each autoscaler where one is due."""
        while self._event_queue.run_next(self._scenario.duration_ms) is not None:
            for at_ms in self._due_syncs_ms:  # the event only marks the sync, since an action cannot yield
                for autoscaler in self._autoscalers:
                    yield self._sync(autoscaler, at_ms)
            self._due_syncs_ms.clear()

    def _make_autoscaler(self, model: AutoscalerModel, feeds: MetricFeeds) -> _Autoscaler:
        """The autoscaler without history. Raises ValueError if the scenario lacks its workload."""
        workload = self._workloads.get(model.workload)
        if workload is None:
            raise ValueError(f"{model.spec.key}: the scenario has no workload {model.workload}")
        return _Autoscaler(model, workload, feeds)

    def _mark_sync_due(self, at_ms: int) -> None:
        self._due_syncs_ms.append(at_ms)
        self._event_queue.add(at_ms + self._scenario.sync_period_ms, EventPriority.SYNC, self._mark_sync_due)

    def _apply_event(self, event: ScenarioEvent, at_ms: int) -> None:
        """Apply an event of the scenario. A new type of event: a case here, and a member of `ScenarioEvent`."""
        match event:
            case ManualScale(_, key, replicas):
                self._workloads[key].set_replicas(replicas, at_ms)
            case RolloutStart(_, key):
                self._workloads[key].roll_out(at_ms)
            case SpecEdit(_, spec):
                autoscaler = next(candidate for candidate in self._autoscalers if candidate.model.spec.key == spec.key)
                autoscaler.model = msgspec.structs.replace(autoscaler.model, spec=spec)
                autoscaler.generation += 1

    def _sync(self, autoscaler: _Autoscaler, at_ms: int) -> SimulatedSync:
        """Decide about one autoscaler, apply the decision, and return both."""
        workload, scenario = autoscaler.workload, self._scenario
        state = workload.state(at_ms)
        now_ns = scenario.start_ns + at_ms * MS_NS
        decision = decide.decide(
            autoscaler.model.spec,
            self._observe(autoscaler, at_ms),
            autoscaler.history,
            now_ns,
            scenario.settings,
        )
        self._apply(autoscaler, decision, at_ms)
        sync = SimulatedSync(
            at_ms=at_ms,
            autoscaler=autoscaler.model,
            workload=difference_since(autoscaler.last_state, state, at_ms - autoscaler.last_sync_ms),
            decision=decision,
            nodes=None if self._nodes is None else self._nodes.count,
        )
        autoscaler.last_state, autoscaler.last_sync_ms = state, at_ms
        return sync

    def _observe(self, autoscaler: _Autoscaler, at_ms: int) -> Observation:
        """The scale, status, pods and metrics that the autoscaler reads from the simulated cluster at an instant."""
        spec, workload = autoscaler.model.spec, autoscaler.workload
        return Observation(
            scale=workload.scale(),
            status=autoscaler.status,
            generation=autoscaler.generation,
            pods=workload.observed_pods(),
            metrics=tuple([autoscaler.feeds.measurement(metric, workload, at_ms) for metric in spec.metrics]),
            neighbours=self._selectors.namespace(spec.namespace),
        )

    def _apply(self, autoscaler: _Autoscaler, decision: Decision, at_ms: int) -> None:
        """Store the status, the history and the selector of a decision, and write its replicas."""
        autoscaler.status, autoscaler.history = decision.status, decision.history
        if decision.selector is not None:
            self._selectors.store(autoscaler.model.spec.key, decision.selector)
        if decision.replicas is not None:
            autoscaler.workload.set_replicas(decision.replicas, at_ms)


def difference_since(earlier_state: WorkloadState | None, state: WorkloadState, period_ms: int) -> WorkloadState:
    """The state with the sums since an earlier one in place of those since the start.

    Args:
        earlier_state: with sums since the start; None if there is none.
        period_ms: the time between both; `used_ucores` becomes the average over it.
    """
    arrived = lost = used = 0
    if earlier_state is not None:
        arrived, lost = earlier_state.arrived_ucores_ms, earlier_state.lost_ucores_ms
        used = earlier_state.used_ucores
    return msgspec.structs.replace(
        state,
        arrived_ucores_ms=state.arrived_ucores_ms - arrived,
        lost_ucores_ms=state.lost_ucores_ms - lost,
        used_ucores=(state.used_ucores - used) // period_ms if period_ms else 0,
    )
