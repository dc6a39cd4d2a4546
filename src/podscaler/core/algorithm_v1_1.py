"""Implements the algorithm of Kubernetes v1.1: as many pods as put the sum of their CPU utilizations on target.

    replicas = ceil(sum of the pods' utilizations / target),    unless their mean is within 10 % of the target

Used with `--algorithm=v1.1`, by way of `podscaler.core.algorithm`. After a rescale it waits, 3 minutes before a
scale-up and 5 before a scale-down (`podscaler.core.limits.cooldown`); it has no windows, no policies and no scaling to
zero. Its functions are the fields of `algorithm.V1_1`.

A metric of pods with a target for their average, as annotations of Kubernetes 1.2 had it, is computed in the same way:
ceil(sum of the values / target). The highest number of all metrics counts. Any other metric is an error of `propose`.

Worked example: three pods at 90 %, 60 % and 120 % of their requests on a target of 60 %: the mean is 90 %, the ratio
1.5, and ceil(270 / 60) = 5.

Differs: the document does not specify pods that start, end or have no sample. Pods that are pending, failed or being
deleted do not count; with a running pod without a sample the metric fails, as in the releases that implemented the
document. The mean is exact, not rounded down to a percent. Kubernetes 1.2 multiplied the ratio of custom metrics by the
replicas; here, as with CPU, pods that do not run do not count.

Source: the design document of the horizontal pod autoscaler, Kubernetes v1.1 ("Autoscaling Algorithm"); custom metrics
in the autoscaler of Kubernetes 1.2.
"""

from collections.abc import Sequence
from fractions import Fraction

from podscaler.api.machinery import numbers
from podscaler.api.typed.autoscaling import MetricValueStatus
from podscaler.core.calculation import per_pod, pod_groups
from podscaler.core.calculation.calculation_types import MetricError, Proposal, Situation, Tolerance
from podscaler.core.calculation.pod_groups import Grouped
from podscaler.core.limits import bounds
from podscaler.core.limits.normalisation import NormalisationInput, Normalised
from podscaler.core.limits.stabilization import READY_FOR_NEW_SCALE, Stabilized
from podscaler.core.model import status_text
from podscaler.core.model.metric_spec import Average, Metric, PodsMetric, ResourceMetric, Utilization
from podscaler.core.model.observation import Measurement
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Limits, Outcome, PerPod, PodSample, Reading, Stabilization

RESOURCE = "cpu"
UNSUPPORTED_METRIC = (
    "the algorithm v1.1 knows no other metrics than the utilization of cpu by pods and averages of custom metrics"
)
MIN_REPLICAS = 1


def propose(metric: Metric, measurement: Measurement, situation: Situation) -> Proposal:
    """The proposal of a metric; the algorithm's `propose` for every type of metric.

    Raises MetricError if the metric has no proposal or the algorithm lacks it, IncompleteObservation for a measurement
    of another type.
    """
    target = metric.target
    if isinstance(metric, PodsMetric) and isinstance(target, Average):
        return _propose_custom(metric, target, measurement, situation)
    if not isinstance(metric, ResourceMetric) or not isinstance(target, Utilization):
        raise MetricError(UNSUPPORTED_METRIC)
    if metric.resource != RESOURCE or metric.container:
        raise MetricError(UNSUPPORTED_METRIC)
    grouped = per_pod.grouped_samples(metric, measurement, situation)
    requests_milli = [pod_groups.request_milli(pod, RESOURCE, "", situation.settings) for pod in situation.pods]
    samples = _trace_samples(grouped, requests_milli, situation)
    _check_complete(grouped, samples)
    reading, sum_pct = _utilization_reading(grouped, requests_milli, target, situation.tolerance)
    if reading.is_within_tolerance:
        replicas, outcome = situation.replicas, Outcome.WITHIN_TOLERANCE
    else:
        replicas, outcome = min(_ceil(sum_pct / target.pct), numbers.INT32_MAX), Outcome.SCALED
    current = MetricValueStatus(
        average_value=status_text.of_resource(RESOURCE, reading.average_milli), average_utilization=reading.current
    )
    calculation = PerPod(samples, grouped.unlisted, ready_pods=reading.entries, first=reading, outcome=outcome)
    return Proposal(replicas, current, calculation)


def _propose_custom(metric: PodsMetric, target: Average, measurement: Measurement, situation: Situation) -> Proposal:
    """The proposal of a custom metric. Raises MetricError and IncompleteObservation as `propose`."""
    grouped = per_pod.grouped_samples(metric, measurement, situation)
    samples = _trace_samples(grouped, None, situation)
    _check_complete(grouped, samples)
    if not grouped.counted or target.milli <= 0:
        raise MetricError("no metrics returned matched known pods")
    sum_milli = sum(grouped.values_milli[index] or 0 for index in grouped.counted)  # counted pods have a value
    sample_count = len(grouped.counted)
    average_milli = numbers.divide_toward_zero(sum_milli, sample_count)
    ratio = float(Fraction(sum_milli, sample_count * target.milli))
    is_within = situation.tolerance.allows(ratio)
    reading = Reading(
        usage_milli=sum_milli,
        entries=sample_count,
        requests_milli=None,
        current=average_milli,
        average_milli=average_milli,
        ratio=ratio,
        is_within_tolerance=is_within,
    )
    replicas = situation.replicas if is_within else min(_ceil(Fraction(sum_milli, target.milli)), numbers.INT32_MAX)
    outcome = Outcome.WITHIN_TOLERANCE if is_within else Outcome.SCALED
    calculation = PerPod(samples, grouped.unlisted, ready_pods=sample_count, first=reading, outcome=outcome)
    return Proposal(replicas, MetricValueStatus(average_value=status_text.decimal(average_milli)), calculation)


def _check_complete(grouped: Grouped, samples: tuple[PodSample, ...]) -> None:
    """Raises MetricError if a running pod has no sample."""
    if grouped.missing:
        running = len(grouped.counted) + len(grouped.missing)
        message = f"samples of {len(grouped.counted)} of {running} running pods only"
        raise MetricError(message, PerPod(samples, grouped.unlisted))


def _utilization_reading(
    grouped: Grouped, requests_milli: Sequence[int], target: Utilization, tolerance: Tolerance
) -> tuple[Reading, Fraction]:
    """The samples taken together, and the sum of the utilizations in percent. Raises MetricError."""
    used_by_request: dict[int, int] = {}  # pods with equal requests share one fraction: there are few distinct ones
    for index in grouped.counted:
        request_milli = requests_milli[index]
        used_by_request[request_milli] = used_by_request.get(request_milli, 0) + (grouped.values_milli[index] or 0)
    if not used_by_request or min(used_by_request) <= 0 or target.pct <= 0:
        raise MetricError("no metrics returned matched known pods")
    sum_pct = sum((Fraction(100 * used, request) for request, used in used_by_request.items()), Fraction(0))
    sample_count, usage_milli = len(grouped.counted), sum(used_by_request.values())
    ratio = float(sum_pct / sample_count / target.pct)
    reading = Reading(
        usage_milli=usage_milli,
        entries=sample_count,
        requests_milli=sum(requests_milli[index] for index in grouped.counted),
        current=int(sum_pct / sample_count),
        average_milli=numbers.divide_toward_zero(usage_milli, sample_count),
        ratio=ratio,
        is_within_tolerance=tolerance.allows(ratio),
    )
    return reading, sum_pct


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


def _trace_samples(
    grouped: Grouped, requests_milli: Sequence[int] | None, situation: Situation
) -> tuple[PodSample, ...]:
    """The pods for the trace; `requests_milli` has the request of each pod, None where requests are not used."""
    requests = requests_milli if requests_milli is not None else [None] * len(situation.pods)
    facts = zip(situation.pods, grouped.rules, grouped.values_milli, requests, strict=True)
    return tuple(
        [PodSample(pod.name, rule.group, rule, value_milli, request) for pod, rule, value_milli, request in facts]
    )


def tolerance(spec: Spec, settings: Settings) -> Tolerance:
    """The tolerance of the flag, in both directions."""
    del spec
    return Tolerance(settings.tolerance, settings.tolerance)


def within_bounds(inputs: NormalisationInput) -> Normalised:
    """The proposal within minimum and maximum, at least 1: nothing would scale the target up from 0."""
    spec, proposal = inputs.spec, inputs.proposal
    lowest = max(spec.min_replicas, MIN_REPLICAS)
    limited_replicas = min(max(proposal, lowest), spec.max_replicas)
    if limited_replicas == proposal:
        reason = "DesiredWithinRange"
    else:
        reason = "TooFewReplicas" if limited_replicas > proposal else "TooManyReplicas"
    limits = Limits(
        wanted=proposal,
        direction=bounds.direction(proposal, inputs.current),
        select_policy="",
        policies=(),
        rate_limit=None,
        bound=None if limited_replicas == proposal else limited_replicas,
        reason=reason,
        result=limited_replicas,
    )
    step = Stabilization(
        proposal=proposal,
        recommendations=(),
        down_cutoff=inputs.now_ns,
        up_cutoff=None,
        highest=proposal,
        lowest=None,
        result=proposal,
        held_by=None,
    )
    return Normalised(Stabilized(inputs.prior_history.recommendations, READY_FOR_NEW_SCALE, step), limits)
