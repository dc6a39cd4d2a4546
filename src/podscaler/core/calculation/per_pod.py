"""Proposals from a metric that has a value for each pod: Resource, ContainerResource and Pods metrics.

Called by `podscaler.core.algorithm`. A new type of target: a gauge, which `propose_resource` or `propose_pods` makes.
Theory of operation:

1. Pods are grouped (`podscaler.core.calculation.pod_groups`), and the samples that count are compared with the target:
   the first reading.
2. Where no pod is missing, and none is unready while the ratio asks for more, that reading decides.
3. Otherwise values are assumed for missing and unready pods that damp the change, and the second reading decides: no
   change if it is within tolerance or reverses the direction.

Source: docs/spec/decision.md 6.3 (Utilisation target), 6.4 (Plain per-pod value), 7.1 (Resource metrics), 7.2 (Custom
metrics for pods).
"""

import itertools
from collections.abc import Mapping
from typing import NamedTuple

from podscaler.api.machinery import numbers
from podscaler.api.typed.autoscaling import MetricValueStatus
from podscaler.core.calculation import pod_groups
from podscaler.core.calculation.calculation_types import NO_PODS, MetricError, Proposal, Situation, Tolerance
from podscaler.core.calculation.pod_groups import Grouped
from podscaler.core.model import pod_list, status_text
from podscaler.core.model.metric_spec import PodsMetric, ResourceMetric, Utilization
from podscaler.core.model.observation import Failure, IncompleteObservation, Measurement, PodSamples, Sample
from podscaler.core.model.trace import Outcome, PerPod, PodSample, Reading

NOTHING_RECEIVED = "did not receive metrics for targeted pods (pods might be unready)"

_AssumedValues = Mapping[int, int]
"""The values assumed for pods without a usable sample, by index, in thousandths."""

_NONE_ASSUMED: _AssumedValues = {}


def propose_resource(metric: ResourceMetric, measurement: Measurement, situation: Situation) -> Proposal:
    """The proposal of a Resource or ContainerResource metric. Raises MetricError, and as `grouped_samples`."""
    grouped = grouped_samples(metric, measurement, situation, readiness_resource=metric.resource)
    gauge: _AverageGauge | _UtilizationGauge
    if isinstance(metric.target, Utilization):
        gauge = _UtilizationGauge(metric.target.pct, _requests_of_pods(metric, grouped, situation), situation.tolerance)
    else:
        gauge = _AverageGauge(metric.average_milli, situation.tolerance)
    replicas, calculation, first_reading = _calculate(gauge, grouped, situation)
    current = MetricValueStatus(average_value=status_text.of_resource(metric.resource, first_reading.average_milli))
    if isinstance(metric.target, Utilization):
        current = MetricValueStatus(average_value=current.average_value, average_utilization=first_reading.current)
    return Proposal(replicas, current, calculation)


def grouped_samples(
    metric: ResourceMetric | PodsMetric, measurement: Measurement, situation: Situation, *, readiness_resource: str = ""
) -> Grouped:
    """The pods of the target, grouped by their samples of a metric; `podscaler.core.algorithm_v1_1` calls it, too.

    Args:
        readiness_resource: the resource whose readiness rules apply; only `cpu` has such rules.

    Raises MetricError if the query failed, or no sample counts; IncompleteObservation for a measurement without pods.
    """
    api = "custom metrics API" if isinstance(metric, PodsMetric) else "resource metrics API"
    return _nonempty_groups(_received_samples(measurement, metric.query_prefix, api), readiness_resource, situation)


def propose_pods(metric: PodsMetric, measurement: Measurement, situation: Situation) -> Proposal:
    """The proposal of a Pods metric. Raises as `propose_resource`."""
    grouped = grouped_samples(metric, measurement, situation)
    gauge = _AverageGauge(metric.average_milli, situation.tolerance)
    replicas, calculation, first_reading = _calculate(gauge, grouped, situation)
    return Proposal(
        replicas, MetricValueStatus(average_value=status_text.decimal(first_reading.average_milli)), calculation
    )


def _received_samples(measurement: Measurement, query_prefix: str, api: str) -> Mapping[str, Sample]:
    """The samples by pod. Raises MetricError with upstream's message if there are none; IncompleteObservation."""
    if isinstance(measurement, Failure):
        raise MetricError(f"{query_prefix}unable to fetch metrics from {api}: {measurement.message}")
    if not isinstance(measurement, PodSamples):
        raise IncompleteObservation("an answer by pod is needed")
    if measurement.is_empty:
        raise MetricError(f"{query_prefix}no metrics returned from {api}")
    return measurement.samples


def _nonempty_groups(samples: Mapping[str, Sample], resource: str, situation: Situation) -> Grouped:
    """The samples in groups: counted, ignored, missing. Raises MetricError if no sample can be counted."""
    if not situation.pods:
        raise MetricError(NO_PODS)
    grouped = pod_groups.grouped(samples, resource, situation)
    if not grouped.counted and not grouped.unlisted:
        raise MetricError(NOTHING_RECEIVED, PerPod(_trace_samples(grouped, None, _NONE_ASSUMED, situation)))
    return grouped


def _requests_of_pods(metric: ResourceMetric, grouped: Grouped, situation: Situation) -> list[int]:
    """The request of every pod of the target in thousandths, also of those that do not count. Raises MetricError."""
    try:
        return pod_groups.requests_milli(metric.resource, metric.container, situation)
    except MetricError as error:
        error.calculation = PerPod(_trace_samples(grouped, None, _NONE_ASSUMED, situation), grouped.unlisted)
        raise


class _UtilizationGauge:
    """Measures percent of the requests, rounded down; samples of unlisted pods do not count, as upstream."""

    def __init__(self, target_pct: int, requests_milli: list[int], tolerance: Tolerance) -> None:
        self._target_pct = target_pct
        self.requests_milli = requests_milli
        self._tolerance = tolerance

    def read(self, grouped: Grouped, assumed_milli: _AssumedValues) -> Reading:
        """Usage in percent of the requests, in Go's integer arithmetic. Raises MetricError if nothing is requested."""
        members = [*grouped.counted, *assumed_milli]
        usage_milli = numbers.wrap64(_counted_milli(grouped) + sum(assumed_milli.values()))
        member_requests_milli = self.requests_milli
        if len(members) < len(member_requests_milli):  # mostly all pods are members: no copy then
            member_requests_milli = [member_requests_milli[index] for index in members]
        requests_milli = numbers.wrap64(sum(member_requests_milli))
        if requests_milli == 0:
            raise MetricError("no metrics returned matched known pods")
        current = numbers.divide_toward_zero(numbers.wrap64(usage_milli * 100), requests_milli)
        current_pct = numbers.wrap32(current)
        average_milli = numbers.divide_toward_zero(usage_milli, len(members))
        ratio = numbers.divide(float(current_pct), float(self._target_pct))
        is_within = self._tolerance.allows(ratio)
        return Reading(
            usage_milli=usage_milli,
            entries=len(members),
            requests_milli=requests_milli,
            current=current_pct,
            average_milli=average_milli,
            ratio=ratio,
            is_within_tolerance=is_within,
        )

    def on_target(self, index: int) -> int:
        """The usage of a pod that is on target, or at its request if the target is lower, as upstream assumes."""
        amount = numbers.wrap64(self.requests_milli[index] * max(100, self._target_pct))
        return numbers.divide_toward_zero(amount, 100)


class _AverageGauge:
    """Measures the amount for each sample, those of unlisted pods included, as upstream."""

    requests_milli: list[int] | None = None  # an average needs no requests

    def __init__(self, target_milli: int, tolerance: Tolerance) -> None:
        self._target_milli = target_milli
        self._tolerance = tolerance

    def read(self, grouped: Grouped, assumed_milli: _AssumedValues) -> Reading:
        """The average value of a pod; samples of pods that are not listed count too."""
        unlisted_milli = sum([sample.value_milli for sample in grouped.unlisted])
        usage_milli = numbers.wrap64(_counted_milli(grouped) + unlisted_milli + sum(assumed_milli.values()))
        sample_count = len(grouped.counted) + len(grouped.unlisted) + len(assumed_milli)
        average_milli = numbers.divide_toward_zero(usage_milli, sample_count)
        ratio = numbers.divide(float(average_milli), float(self._target_milli))
        is_within = self._tolerance.allows(ratio)
        return Reading(
            usage_milli=usage_milli,
            entries=sample_count,
            requests_milli=None,
            current=average_milli,
            average_milli=average_milli,
            ratio=ratio,
            is_within_tolerance=is_within,
        )

    def on_target(self, index: int) -> int:
        """The usage of a pod that is on target."""
        del index
        return self._target_milli


_Gauge = _UtilizationGauge | _AverageGauge


def _counted_milli(grouped: Grouped) -> int:
    """The sum of the samples that count."""
    values_milli, counted = grouped.values_milli, grouped.counted  # mostly all pods count: no copy then
    if len(counted) < len(values_milli):
        values_milli = [values_milli[index] for index in counted]
    return sum(filter(None, values_milli))


class _SecondResult(NamedTuple):
    """The second reading, the replicas that it leads to, and the number of pods that its ratio multiplies."""

    reading: Reading
    replicas: int
    pods_counted: int
    outcome: Outcome


def _calculate(gauge: _Gauge, grouped: Grouped, situation: Situation) -> tuple[int, PerPod, Reading]:
    """The replicas, the calculation, and the first reading, which the status reports. Raises MetricError."""
    assumed_milli = _NONE_ASSUMED
    try:
        first_reading = gauge.read(grouped, _NONE_ASSUMED)
        includes_unready = bool(grouped.unready) and first_reading.ratio > 1.0
        if includes_unready or grouped.missing:
            assumed_milli = _assumed_values(gauge, grouped, first_reading.ratio, includes_unready=includes_unready)
            second_result = _by_second_reading(
                first_reading, gauge.read(grouped, assumed_milli), grouped, assumed_milli, situation
            )
        else:
            second_result = None
    except MetricError as error:
        error.calculation = PerPod(_trace_samples(grouped, gauge, assumed_milli, situation), grouped.unlisted)
        raise
    samples = _trace_samples(grouped, gauge, assumed_milli, situation)
    ready_pods = len(grouped.counted)
    if second_result is not None:
        calculation = PerPod(
            samples,
            grouped.unlisted,
            ready_pods,
            first=first_reading,
            second=second_result.reading,
            second_pods=second_result.pods_counted,
            outcome=second_result.outcome,
        )
        return second_result.replicas, calculation, first_reading
    if first_reading.is_within_tolerance:
        replicas, outcome = situation.replicas, Outcome.WITHIN_TOLERANCE
    else:
        replicas = situation.settings.emulation.ceil_int32(first_reading.ratio * float(ready_pods))
        outcome = Outcome.SCALED
    return replicas, PerPod(samples, grouped.unlisted, ready_pods, first_reading, outcome=outcome), first_reading


def _assumed_values(gauge: _Gauge, grouped: Grouped, ratio: float, *, includes_unready: bool) -> _AssumedValues:
    """The assumed values that damp the change: on target before a scale-down, 0 before a scale-up."""
    assumed_milli: dict[int, int] = {}
    if ratio < 1.0:
        assumed_milli = {index: gauge.on_target(index) for index in grouped.missing}
    elif ratio > 1.0:
        assumed_milli = dict.fromkeys(grouped.missing, 0)
    if includes_unready:
        assumed_milli.update(dict.fromkeys(grouped.unready, 0))
    return assumed_milli


def _by_second_reading(
    first: Reading, second: Reading, grouped: Grouped, assumed_milli: _AssumedValues, situation: Situation
) -> _SecondResult:
    """The result of `second`, which has values assumed for the pods in `assumed_milli` (rule 3)."""
    pods_counted = len(grouped.counted) + len(grouped.unlisted) + len(assumed_milli)
    current = situation.replicas
    if second.is_within_tolerance:
        return _SecondResult(second, current, pods_counted, Outcome.STILL_WITHIN_TOLERANCE)
    if (first.ratio < 1.0 < second.ratio) or (second.ratio < 1.0 < first.ratio):
        return _SecondResult(second, current, pods_counted, Outcome.DIRECTION_REVERSED)
    replicas = situation.settings.emulation.ceil_int32(second.ratio * float(pods_counted))
    if (second.ratio < 1.0 and replicas > current) or (second.ratio > 1.0 and replicas < current):
        return _SecondResult(second, current, pods_counted, Outcome.WRONG_DIRECTION)
    return _SecondResult(second, replicas, pods_counted, Outcome.REFILLED)


def _trace_samples(
    grouped: Grouped, gauge: _Gauge | None, assumed_milli: _AssumedValues, situation: Situation
) -> tuple[PodSample, ...]:
    """The pods of the target for the trace, in list order; `gauge` None: requests are not used."""
    requests_milli = gauge.requests_milli if gauge else None
    return tuple(
        map(
            PodSample,
            pod_list.of(situation.pods).names,
            [rule.group for rule in grouped.rules],
            grouped.rules,
            grouped.values_milli,
            requests_milli or itertools.repeat(None),
            map(assumed_milli.get, itertools.count()) if assumed_milli else itertools.repeat(None),
        )
    )
