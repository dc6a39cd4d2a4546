"""Evaluates all metrics of an autoscaler and combines their proposals: the largest wins, unless failures forbid it.

`podscaler.core.decide` calls `evaluate` where the branch needs metrics; `podscaler.core.failure_responses` calls
`combine_results` again for an autoscaler with a failure policy. Examples at 4 replicas: proposals 3 and 6 give 6; a
failed metric and 6 give 6; a failed metric and 3 give no proposal, because the failed one might want more. What forbids
a proposal is decided in `combine_results`.

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


class MetricsEvaluation(Fact, frozen=True, gc=False):
    """The pods of the target, the result of each metric, and their combination.

    Attributes:
        target: the pods of the target, and the selector for the selector store.
        results: one for each metric, in the order of the spec; empty if the target's pods are unknown.
        combination: the results taken together; its `proposal` is None where failures forbid one.
        failures: the failure to find the pods, or those of metrics in order; each that has a reason leads to one event.
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
        """The name of the metric with the largest proposal; empty if no metric has a proposal."""
        index = self.combination.winner
        return "" if index is None else self.results[index].step.name


def evaluate(
    spec: Spec, scale: Scale, observation: Observation, *, now_ns: int, tolerance: Tolerance, settings: Settings
) -> MetricsEvaluation:
    """The evaluation of all metrics of `spec`. Raises IncompleteObservation if a measurement is missing or unfit."""
    target = target_pods.find(spec, scale, observation, settings)
    failure = target.step.failure
    if failure is not None:
        combination = Combination(proposal=None, winner=None, error=failure.error)
        return MetricsEvaluation(target, (), combination, (failure,), is_spec_error=False)
    situation = Situation(now_ns, scale.replicas, scale.status_replicas, target.pods, tolerance, settings)
    results = _metric_results(spec, observation, situation)
    combination = combine_results(results, scale.replicas)
    failed = combination.failed
    return MetricsEvaluation(
        target,
        results,
        combination,
        tuple([failure for metric_result in results if (failure := metric_result.step.failure)]),
        is_spec_error=bool(failed) and isinstance(spec.metrics[failed[0]], UnknownMetric),
    )


def _metric_results(spec: Spec, observation: Observation, situation: Situation) -> tuple[MetricResult, ...]:
    """The result of each metric of the spec, in its order."""
    measurements = observation.metrics
    results = []
    for index, metric in enumerate(spec.metrics):
        measurement = measurements[index] if index < len(measurements) else None
        try:
            results.append(proposals.of_metric(metric, measurement, situation))
        except IncompleteObservation as error:
            raise IncompleteObservation(f"metrics[{index}]: {error}") from None
    return tuple(results)


def combine_results(results: Sequence[MetricResult], current: int, *, ignores_missing: bool = False) -> Combination:
    """The combination of the results of all metrics; its `proposal` is None where none may be applied.

    A metric that failed has no proposal, except where a failure policy keeps its last one.

    Args:
        results: at least one.
        current: the replicas of the target.
        ignores_missing: whether the others may scale down without the metrics that have no proposal, as a failure
            policy can allow.
    """
    failed = tuple([index for index, metric_result in enumerate(results) if metric_result.step.failure])
    error = _sync_error(results, failed)
    largest, winner_index = _largest_proposal(results)
    is_any_missing = any(metric_result.step.proposal is None for metric_result in results)
    is_scale_down_forbidden = is_any_missing and not ignores_missing
    if winner_index is None or (largest < current and is_scale_down_forbidden):
        return Combination(proposal=None, winner=winner_index, failed=failed, error=error)
    return Combination(proposal=largest, winner=winner_index, failed=failed, error=error)


def _largest_proposal(results: Sequence[MetricResult]) -> tuple[int, int | None]:
    """The largest proposal and the index of its metric; 0 and None if no metric has a proposal.

    As upstream, any later proposal replaces one of 0, also a negative one.
    """
    largest, winner_index = 0, None
    for index, metric_result in enumerate(results):
        proposal = metric_result.step.proposal
        if proposal is not None and (largest == 0 or proposal > largest):
            largest, winner_index = proposal, index
    return largest, winner_index


def _sync_error(results: Sequence[MetricResult], failed: tuple[int, ...]) -> str:
    """The error of a sync about its failed metrics, given their indexes; empty if none failed."""
    first_failure = results[failed[0]].step.failure if failed else None
    if first_failure is None:
        return ""
    return f"invalid metrics ({len(failed)} invalid out of {len(results)}), first error is: {first_failure.error}"
