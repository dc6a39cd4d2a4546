"""Combines the proposals of all metrics: the largest wins, unless failures forbid a conclusion.

Called by `podscaler.core.decide` where metrics decide (`Branch.METRICS`), and by `podscaler.core.failure_responses`.
Examples at 4 replicas: proposals 3 and 6 give 6; a failed metric and 6 give 6; a failed metric and 3 give no
conclusion, because the failed one might want more.

Source: docs/spec/decision.md 3 (Combining the metrics).
"""

from collections.abc import Sequence

from podscaler.api.typed.autoscaling import MetricStatus
from podscaler.core import proposals
from podscaler.core.calculation import target_pods
from podscaler.core.calculation.calculation_types import Situation, Tolerance
from podscaler.core.calculation.target_pods import TargetPods
from podscaler.core.model.metric_spec import UnknownMetric
from podscaler.core.model.observation import Fact, IncompleteObservation, Observation, Scale
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Combination, MetricFailure
from podscaler.core.proposals import MetricResult


class Combined(Fact, frozen=True, gc=False):
    """The combined result of the metrics.

    Attributes:
        target: the pods of the target, and their selector, which the controller keeps in `model.selector_store`.
        results: one for each metric; empty if the target's pods are unknown.
        combination: the largest proposal; its `proposal` is None where failures forbid a conclusion.
        failures: the failures of the pods or of metrics, in order; each leads to one event.
        is_spec_error: whether the first failure is an error of the spec (an unknown metric type).
    """

    target: TargetPods
    results: tuple[MetricResult, ...]
    combination: Combination
    failures: tuple[MetricFailure, ...]
    is_spec_error: bool

    @property
    def statuses(self) -> tuple[MetricStatus, ...]:
        """The entries of `status.currentMetrics`."""
        return tuple([metric_result.status for metric_result in self.results])

    @property
    def winner_name(self) -> str:
        """The name of the metric whose proposal won; empty if no metric has a proposal."""
        index = self.combination.winner
        return "" if index is None else self.results[index].step.name


def of_metrics(
    spec: Spec, scale: Scale, observation: Observation, *, now_ns: int, tolerance: Tolerance, settings: Settings
) -> Combined:
    """The combined result of all metrics of `spec`. Raises IncompleteObservation if a measurement is missing."""
    target = target_pods.find(spec, scale, observation, settings)
    failure = target.step.failure
    if failure is not None:
        combination = Combination(None, None, error=failure.error)
        return Combined(target, (), combination, (failure,), is_spec_error=False)
    situation = Situation(now_ns, scale.replicas, scale.status_replicas, target.pods, tolerance, settings)
    results = _results(spec, observation, situation)
    combination = combine_results(results, scale.replicas)
    failed = combination.failed
    return Combined(
        target,
        results,
        combination,
        tuple([failure for metric_result in results if (failure := metric_result.step.failure)]),
        is_spec_error=bool(failed) and isinstance(spec.metrics[failed[0]], UnknownMetric),
    )


def _results(spec: Spec, observation: Observation, situation: Situation) -> tuple[MetricResult, ...]:
    """The proposal or failure of each metric of the spec, in its order."""
    measurements = observation.metrics
    results = []
    for index, metric in enumerate(spec.metrics):
        measurement = measurements[index] if index < len(measurements) else None
        try:
            results.append(proposals.of_metric(metric, measurement, situation))
        except IncompleteObservation as error:
            raise IncompleteObservation(f"metrics[{index}]: {error}") from None
    return tuple(results)


def combine_results(results: Sequence[MetricResult], current: int, *, ignores_failed: bool = False) -> Combination:
    """The combination of the results of all metrics.

    A metric may have failed and still have a proposal: `failure_responses` keeps the last one, if the policy says so.

    Args:
        current: the replicas of the target.
        ignores_failed: whether a metric without a proposal leaves the others free to scale down; `failure_responses`
            sets it where the failure policy ignores failed metrics.
    """
    winner = _winner(results)
    proposal = 0 if winner is None else results[winner].step.proposal or 0
    failed = tuple([index for index, metric_result in enumerate(results) if metric_result.step.failure])
    without_proposal = sum([metric_result.step.proposal is None for metric_result in results])
    error = _error(results, failed)
    if without_proposal == len(results) or (without_proposal and proposal < current and not ignores_failed):
        return Combination(None, winner, failed, error)
    return Combination(proposal, winner, failed, error)


def _winner(results: Sequence[MetricResult]) -> int | None:
    """The index of the largest proposal; None if all failed. As upstream, any later proposal replaces one of 0."""
    largest, winner = 0, None
    for index, metric_result in enumerate(results):
        proposal = metric_result.step.proposal
        if proposal is not None and (largest == 0 or proposal > largest):
            largest, winner = proposal, index
    return winner


def _error(results: Sequence[MetricResult], failed: tuple[int, ...]) -> str:
    """The error of a sync about its failed metrics, given their indexes; empty if none failed."""
    failure = results[failed[0]].step.failure if failed else None
    if failure is None:
        return ""
    return f"invalid metrics ({len(failed)} invalid out of {len(results)}), first error is: {failure.error}"
