"""Runs the decision core on a simulated target in virtual time, for tests that compare a whole timeline.

`Scenario` syncs as a controller does: at the start and after each sync period, with status, history and selector
carried from sync to sync. There is no API server and no process, so a simulated day takes less than a second.

Example: one pod, a load of 610m against a target of half of the requested 200m::

    target = ScenarioTarget(1, start=scenario.START, containers={"app": {"cpu": 200}})
    world = Scenario(autoscaler, target, scenario_meters.shared({0: 0, 60: 610}))
    assert world.run(90) == [(60, 4, "cpu ... above target"), (75, 7, "cpu ... above target")]
"""

from typing import NamedTuple

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.base.clock import NANOSECONDS
from podscaler.core import decide
from podscaler.core.decision import AutoscalerEvent, Decision
from podscaler.core.model import history
from podscaler.core.model import settings as core_settings
from podscaler.core.model.observation import Observation
from podscaler.core.model.selector_store import SelectorStore
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.testing.scenario_meters import Meter, ScenarioMoment
from podscaler.testing.scenario_target import ScenarioTarget

START = 1_767_225_600 * NANOSECONDS
"""2026-01-01T00:00:00Z: second 0 of every scenario."""


class Rescale(NamedTuple):
    """One row of a timeline: the second, the new replicas of the target, and the reason."""

    at_s: float
    replicas: int
    reason: str


class ConditionChange(NamedTuple):
    """A change of a condition: the second, the new status and the new reason."""

    at_s: float
    status: str
    reason: str


class ScenarioSync(NamedTuple):
    """One sync: the second, the replicas before it, and the decision."""

    at_s: float
    replicas: int
    decision: Decision


class Scenario:
    """A simulation of one autoscaler and its target.

    Args:
        autoscaler: the autoscaler's parsed spec.
        target: the simulated workload.
        meters: one for each entry of the spec's metrics.
        settings: the controller's settings.
        sync_period_s: the seconds between syncs.
        selectors: shared by scenarios whose autoscalers are in one namespace.
    """

    def __init__(
        self,
        autoscaler: Spec,
        target: ScenarioTarget,
        *meters: Meter,
        settings: Settings = core_settings.DEFAULT,
        sync_period_s: float = 15,
        selectors: SelectorStore | None = None,
    ) -> None:
        self.autoscaler = autoscaler
        self.target = target
        self.meters = meters
        self.settings = settings
        self.status = HorizontalPodAutoscalerStatus()
        self.history = history.EMPTY
        self.syncs: list[ScenarioSync] = []
        self._sync_period_s = sync_period_s
        self._selectors = SelectorStore() if selectors is None else selectors
        self._next_at_s: float = 0
        self._generation = 1

    @property
    def at_s(self) -> float:
        """The second of the last sync."""
        return self.syncs[-1].at_s if self.syncs else 0

    @property
    def last(self) -> Decision:
        """The decision of the last sync. Raises IndexError before the first one."""
        return self.syncs[-1].decision

    @property
    def timeline(self) -> list[Rescale]:
        """All rescales of the target by the autoscaler, in order."""
        return [
            Rescale(sync.at_s, sync.decision.replicas, sync.decision.trace.reason)
            for sync in self.syncs
            if sync.decision.replicas is not None
        ]

    @property
    def events(self) -> list[AutoscalerEvent]:
        """All events, in order."""
        return [event for sync in self.syncs for event in sync.decision.events]

    def run(self, until_s: float) -> list[Rescale]:
        """Carry out all syncs up to and including that second; returns the timeline."""
        while self._next_at_s <= until_s:
            self._sync(self._next_at_s)
            self._next_at_s += self._sync_period_s
        return self.timeline

    def scale_by_hand(self, replicas: int) -> None:
        """Resize the target just after the last sync, as a user does."""
        self.target.resize(replicas, self._instant(self.at_s))

    def change(self, autoscaler: Spec, *meters: Meter) -> None:
        """Replace the autoscaler's spec just after the last sync; without `meters` the former ones are kept."""
        self.autoscaler = autoscaler
        self.meters = meters or self.meters
        self._generation += 1

    def condition_changes(self, condition_type: str) -> list[ConditionChange]:
        """All changes of the status or reason of the condition with this type, the first value included."""
        changes: list[ConditionChange] = []
        for sync in self.syncs:
            for condition in sync.decision.status.conditions or ():
                change = ConditionChange(sync.at_s, condition.status, condition.reason)
                if condition.type == condition_type and (not changes or changes[-1][1:] != change[1:]):
                    changes.append(change)
        return changes

    def _instant(self, at_s: float) -> int:
        return START + round(at_s * NANOSECONDS)

    def _sync(self, at_s: float) -> None:
        """Decide at that second, resize the target, and keep what later syncs need."""
        now_ns = self._instant(at_s)
        replicas = self.target.replicas
        decision = decide.decide(self.autoscaler, self._observation(at_s), self.history, now_ns, self.settings)
        self.status, self.history = decision.status, decision.history
        if decision.selector is not None:
            self._selectors.store(self.autoscaler.key, decision.selector)
        if decision.replicas is not None:
            self.target.resize(decision.replicas, now_ns)
        self.syncs.append(ScenarioSync(at_s, replicas, decision))

    def _observation(self, at_s: float) -> Observation:
        """What a controller reads at that second, with the status of the sync before."""
        now_ns = self._instant(at_s)
        moment = ScenarioMoment(at_s, now_ns, self.target)
        return Observation(
            scale=self.target.scale(),
            status=self.status,
            generation=self._generation,
            pods=self.target.facts(now_ns),
            metrics=tuple(meter(moment) for meter in self.meters),
            neighbours=self._selectors.namespace(self.autoscaler.namespace),
        )
