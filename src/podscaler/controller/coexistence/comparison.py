"""Compares our decisions with the status that another controller writes about the same autoscalers (`--compare`).

`podscaler.controller.reconcile.sync_reporter` calls `DecisionComparison.compare` for each decision; nothing is written.
Two controllers sync at different instants; a difference counts only if this does not explain it. Verdicts, in order:

1. A status that was not written for the latest spec, or of a target that had other replicas than in any of our last
   syncs, cannot be compared (`unsettled`).
2. The same replicas, conditions aside: `same`, if the conditions of one of our last syncs are the same too.
3. Replicas between those of our last syncs, or what our rules give for the metrics that the other reported
   (`podscaler.core.rescaled_samples`): `sampling`, the other had samples of another instant.
4. As long as we have run shorter than the windows that can explain the difference: `history`, the other has a history
   that we do not have. Replicas that it holds above ours are explained by its windows for scaling down; replicas below
   ours, or a scale-up beyond ours, by those for scaling up, which are 15 s unless a behavior says otherwise.
5. What is left is `different`: a rescale at once, anything else when it is still so at our next sync. It is logged with
   our explanation, and counted once until it changes.

A further verdict: a constant in VERDICTS, which is a label value of a metric, a rule here, and its use in `_judge`.
"""

import logging
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.coexistence import standby
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.observed_sync import ObservedSync
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.core import decide, rescaled_samples
from podscaler.core.decision import Decision
from podscaler.core.model.conditions import ABLE_TO_SCALE, SCALING_ACTIVE, SCALING_LIMITED
from podscaler.core.model.history import History
from podscaler.core.model.observation import Observation, Scale
from podscaler.core.model.spec import Spec
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

SYNCS_MAX = 4
"""How many of our last syncs count: those of the other's last period, and one before and after."""
ABLE_REASONS = frozenset({"SucceededRescale", "ReadyForNewScale", "SucceededGetScale"})
"""Reasons that depend only on whether the last sync rescaled, which one in standby never does."""
SCALE_UP_PERIOD_NS = 15 * NANOSECONDS
"""The period of the policies for scaling up where there is no behavior."""
COMPARED_CONDITIONS = (ABLE_TO_SCALE, SCALING_ACTIVE, SCALING_LIMITED)

SAME, UNSETTLED, SAMPLING, HISTORY, DIFFERENT = "same", "unsettled", "sampling", "history", "different"
VERDICTS = (SAME, SAMPLING, HISTORY, UNSETTLED, DIFFERENT)

ConditionTexts = dict[str, tuple[str, str]]
"""Conditions by type: status and reason."""


class _OwnSync(NamedTuple):
    """One of our syncs: its instant, the target's replicas, the inputs, the history before, and the decision."""

    at_ns: int
    replicas: int
    observation: Observation
    prior_history: History
    decision: Decision

    @property
    def desired(self) -> int:
        return self.decision.status.desired_replicas


class _Comparison:
    """The comparisons of one autoscaler so far.

    Attributes:
        since_ns: when the first sync here was, since the epoch.
        syncs: our last syncs in which a scale was read, the newest last.
        suspected: the difference at the last sync, which the next one may confirm; empty if there was no difference.
        logged: the difference that was logged last; empty if no difference was logged.
        has_differed: whether a verdict was ever DIFFERENT.
    """

    def __init__(self, since_ns: int) -> None:
        self.since_ns = since_ns
        self.syncs: deque[_OwnSync] = deque(maxlen=SYNCS_MAX)
        self.suspected = ""
        self.logged = ""
        self.has_differed = False


class DecisionComparison:
    """Compares decisions with another controller's statuses, by the module's rules; remembers our last syncs.

    Args:
        telemetry: counts verdicts.
        settings: the controller's settings, with which decisions are made.
    """

    def __init__(self, telemetry: Telemetry, settings: ControllerSettings) -> None:
        self._telemetry = telemetry
        self._flags = settings.decision
        self._comparisons: dict[Key, _Comparison] = {}
        self._verdict_counts: Counter[str] = Counter()
        self._differed_count = 0
        telemetry.add_comparison_metrics(VERDICTS)

    def compare(
        self, autoscaler: Autoscaler, observed: ObservedSync, prior_history: History, decision: Decision
    ) -> None:
        """Compare a decision with the status that the autoscaler has; count the verdict, and log a new difference."""
        now_ns, scale = decision.trace.now, observed.observation.scale
        comparison = self._comparisons.setdefault(autoscaler.key, _Comparison(now_ns))
        if isinstance(scale, Scale):
            comparison.syncs.append(_OwnSync(now_ns, scale.replicas, observed.observation, prior_history, decision))
        verdict, difference = self._judge(autoscaler, comparison, decision)
        is_confirmed = difference == comparison.suspected or _is_rescale(autoscaler.wire.status)
        comparison.suspected = difference
        if verdict == DIFFERENT and not is_confirmed:
            verdict = UNSETTLED
        self._report(autoscaler, comparison, verdict, difference)

    def forget(self, key: Key) -> None:
        """The autoscaler was deleted, or is synced here no more."""
        self._comparisons.pop(key, None)

    def log_summary(self) -> None:
        """Log all verdicts in one sentence."""
        counts = ", ".join(f"{self._verdict_counts[verdict]} {verdict}" for verdict in VERDICTS)
        scope = f"compared {self._verdict_counts.total()} decisions about {len(self._comparisons)} autoscalers"
        log.info("%s: %s; %d autoscalers differed", scope, counts, self._differed_count)

    def _judge(self, autoscaler: Autoscaler, comparison: _Comparison, decision: Decision) -> tuple[str, str]:
        """The verdict by rules 1 to 5, and the difference in words (empty if there is none)."""
        their_status = autoscaler.wire.status
        syncs = [sync for sync in comparison.syncs if sync.replicas == their_status.current_replicas]
        if not their_status.conditions or not _is_up_to_date(autoscaler) or not syncs:
            return UNSETTLED, ""
        if their_status.desired_replicas not in {sync.desired for sync in syncs}:
            difference = f"desiredReplicas {their_status.desired_replicas}, here {syncs[-1].desired}"
            return self._judge_replicas(autoscaler, syncs, comparison, decision), difference
        difference = "; ".join(
            _differing_conditions(
                _conditions_of(their_status), [_conditions_of(sync.decision.status) for sync in syncs]
            )
        )
        if not difference:
            return SAME, ""
        windows_ns = [*self._down_windows_ns(autoscaler.spec), *self._up_windows_ns(autoscaler.spec)]
        return self._history_or_different(windows_ns, comparison, decision), difference

    def _judge_replicas(
        self, autoscaler: Autoscaler, syncs: Sequence[_OwnSync], comparison: _Comparison, decision: Decision
    ) -> str:
        """The verdict about replicas that none of these syncs desired (rules 3 to 5)."""
        their_status, our_desired = autoscaler.wire.status, [sync.desired for sync in syncs]
        is_between = min(our_desired) < their_status.desired_replicas < max(our_desired)
        if is_between or self._is_explained_by_samples(autoscaler.spec, syncs, their_status):
            return SAMPLING
        is_held_up = our_desired[-1] < their_status.desired_replicas <= their_status.current_replicas
        windows_ns = self._down_windows_ns(autoscaler.spec) if is_held_up else self._up_windows_ns(autoscaler.spec)
        return self._history_or_different(windows_ns, comparison, decision)

    def _is_explained_by_samples(
        self, spec: Spec, syncs: Sequence[_OwnSync], their_status: HorizontalPodAutoscalerStatus
    ) -> bool:
        """Whether our rules give the other's replicas for the metrics that it reported (rule 3)."""
        for sync in syncs:
            rescaled_observations = rescaled_samples.lowest_and_highest(
                sync.observation, sync.decision.status, their_status
            )
            if rescaled_observations is None:
                continue
            decisions = [
                decide.decide(spec, rescaled_observation, sync.prior_history, sync.at_ns, self._flags)
                for rescaled_observation in rescaled_observations
            ]
            low, high = sorted(decision.status.desired_replicas for decision in decisions)
            if low <= their_status.desired_replicas <= high:
                return True
        return False

    def _down_windows_ns(self, spec: Spec) -> list[int]:
        """For how long (ns) recommendations and scale-downs may hold replicas up."""
        windows_ns = [self._flags.downscale_stabilization_ns]
        if spec.behavior is not None:
            windows_ns += [spec.behavior.down.window_ns or 0, spec.behavior.down.longest_period_ns]
        return windows_ns

    def _up_windows_ns(self, spec: Spec) -> list[int]:
        """For how long (ns) recommendations and scale-ups may hold replicas down."""
        if spec.behavior is None:
            return [SCALE_UP_PERIOD_NS]
        return [spec.behavior.up.window_ns or 0, spec.behavior.up.longest_period_ns]

    def _history_or_different(self, windows_ns: Sequence[int], comparison: _Comparison, decision: Decision) -> str:
        """The verdict about a difference that only a longer history could explain (rules 4 and 5)."""
        return HISTORY if decision.trace.now - comparison.since_ns < max(windows_ns) else DIFFERENT

    def _report(self, autoscaler: Autoscaler, comparison: _Comparison, verdict: str, difference: str) -> None:
        """Count the verdict, and log the difference (empty: there is none) if it was not logged before."""
        self._verdict_counts[verdict] += 1
        self._telemetry.compared(verdict)
        if verdict != DIFFERENT:
            comparison.logged = "" if verdict == SAME else comparison.logged
            return
        if not comparison.has_differed:
            comparison.has_differed = True
            self._differed_count += 1
        if comparison.logged != difference:
            comparison.logged = difference
            self._telemetry.differed("desiredReplicas" if difference.startswith("desiredReplicas") else "conditions")
            decision = comparison.syncs[-1].decision
            log.warning(
                "%s differs: the status says %s; %s", autoscaler.described, difference, standby.unwritten(decision)
            )


def _is_up_to_date(autoscaler: Autoscaler) -> bool:
    """Whether the status was written for the latest spec."""
    observed = autoscaler.wire.status.observed_generation
    return observed is None or observed >= autoscaler.metadata.generation


def _is_rescale(status: HorizontalPodAutoscalerStatus) -> bool:
    return status.current_replicas != status.desired_replicas


def _conditions_of(status: HorizontalPodAutoscalerStatus) -> ConditionTexts:
    """The compared conditions of a status; the reasons of ABLE_REASONS count as one reason, "able"."""
    conditions: ConditionTexts = {}
    for condition in status.conditions or ():
        if condition.type in COMPARED_CONDITIONS:
            reason = "able" if condition.reason in ABLE_REASONS else condition.reason
            conditions[condition.type] = (condition.status, reason)
    return conditions


def _differing_conditions(
    their_conditions: ConditionTexts, our_alternatives: Sequence[ConditionTexts]
) -> Iterable[str]:
    """The conditions that none of our syncs had, in words."""
    for name in COMPARED_CONDITIONS:
        theirs, ours = their_conditions.get(name), [conditions.get(name) for conditions in our_alternatives]
        if theirs not in ours:
            yield f"{name} {_condition_text(theirs)}, here {_condition_text(ours[-1])}"


def _condition_text(condition: tuple[str, str] | None) -> str:
    return "absent" if condition is None else " ".join(condition)
