"""Computes proposals from metrics that have one value for all pods: Object and External metrics.

Called by `podscaler.core.algorithm`. Value targets multiply the ready pods by the ratio: 150 on a target of 100 with 4
ready pods gives 6. AverageValue targets divide the value: 150 with a target of 50 for each pod gives 3. Another type of
target: a proposal function like `_total_proposal`, called by both propose functions.

Source: docs/spec/decision.md 6.5 (Object, Value target) to 6.8 (External, AverageValue target), 7.3 (Object metrics),
7.4 (External metrics).
"""

from podscaler.api.machinery import numbers
from podscaler.api.typed.autoscaling import MetricValueStatus
from podscaler.core.calculation import pod_groups
from podscaler.core.calculation.calculation_types import NO_PODS, MetricError, Proposal, Situation
from podscaler.core.model import status_text
from podscaler.core.model.metric_spec import ExternalMetric, ObjectMetric, Total
from podscaler.core.model.observation import Failure, IncompleteObservation, Measurement, Values
from podscaler.core.model.trace import OfAverage, OfTotal, Outcome


def propose_object(metric: ObjectMetric, measurement: Measurement, situation: Situation) -> Proposal:
    """The proposal of an Object metric. Raises MetricError, and IncompleteObservation for a measurement of pods."""
    usage_milli = _object_usage(metric, measurement)
    if isinstance(metric.target, Total):
        return _total_proposal(usage_milli, metric.target.milli, situation)
    ceil_int32 = situation.settings.emulation.ceil_int32
    target_milli = metric.average_milli
    replicas = ceil_int32(numbers.divide(float(usage_milli), float(target_milli)))
    reported_milli = situation.settings.emulation.average_milli(usage_milli, situation.status_replicas)
    return _average_proposal(usage_milli, target_milli, replicas, reported_milli, situation)


def propose_external(metric: ExternalMetric, measurement: Measurement, situation: Situation) -> Proposal:
    """The proposal of an External metric. Raises as `propose_object`.

    As upstream, its replicas and its average stop at the largest integer, where those of an Object metric overflow.
    """
    values_milli = _external_values(metric, measurement)
    if isinstance(metric.target, Total):
        return _total_proposal(_saturating_sum(values_milli), metric.target.milli, situation)
    usage_milli = _sum_until_negative(values_milli)
    target_milli = metric.average_milli
    replicas = numbers.ceil_int32_saturating(numbers.ceil(numbers.divide(float(usage_milli), float(target_milli))))
    if float(usage_milli) < 2.0**63:
        reported_milli = situation.settings.emulation.average_milli(usage_milli, situation.status_replicas)
    else:  # the sum stopped at the largest int64
        reported_milli = numbers.INT64_MAX
    return _average_proposal(usage_milli, target_milli, replicas, reported_milli, situation)


def _object_usage(metric: ObjectMetric, measurement: Measurement) -> int:
    """The value of an Object metric. Raises MetricError if there is not exactly one."""
    prefix = f"{metric.query_prefix}unable to fetch metrics from custom metrics API: "
    if isinstance(measurement, Failure):
        raise MetricError(f"{prefix}{measurement.message}")
    if not isinstance(measurement, Values):
        raise IncompleteObservation("an answer with values is needed")
    count = len(measurement.values_milli)
    if count != 1:
        raise MetricError(
            f"{prefix}the custom metrics API server returned {count} results when we asked for exactly one"
        )
    return measurement.values_milli[0]


def _external_values(metric: ExternalMetric, measurement: Measurement) -> tuple[int, ...]:
    """The values of an External metric. Raises MetricError if there is none."""
    if isinstance(measurement, Failure):
        raise MetricError(
            f"{metric.query_prefix}unable to fetch metrics from external metrics API: {measurement.message}"
        )
    if not isinstance(measurement, Values):
        raise IncompleteObservation("an answer with values is needed")
    if not measurement.values_milli:
        raise MetricError(f"{metric.query_prefix}no metrics returned from external metrics API")
    return measurement.values_milli


def _saturating_sum(values_milli: tuple[int, ...]) -> int:
    """The sum, which stops at the largest int64."""
    total_milli = 0
    for value_milli in values_milli:
        if value_milli > 0 and total_milli > numbers.INT64_MAX - value_milli:
            return numbers.INT64_MAX
        total_milli = numbers.wrap64(total_milli + value_milli)
    return total_milli


def _sum_until_negative(values_milli: tuple[int, ...]) -> int:
    """The sum; the largest int64 as soon as it is negative, by overflow or by a negative value, as upstream."""
    total_milli = 0
    for value_milli in values_milli:
        total_milli = numbers.wrap64(total_milli + value_milli)
        if total_milli < 0:
            return numbers.INT64_MAX
    return total_milli


def _total_proposal(usage_milli: int, target_milli: int, situation: Situation) -> Proposal:
    """The proposal for a value that is compared whole: the ratio times the ready pods, or the ratio alone from zero."""
    ratio = numbers.divide(float(usage_milli), float(target_milli))
    is_within = situation.tolerance.allows(ratio)
    ready_pods: int | None = None
    if situation.replicas == 0:
        replicas, outcome = situation.settings.emulation.ceil_int32(ratio), Outcome.FROM_ZERO
    elif is_within:
        replicas, outcome = situation.replicas, Outcome.WITHIN_TOLERANCE
    else:
        ready_pods = _ready_pods(situation)
        replicas, outcome = numbers.ceil_int32_saturating(ratio * float(ready_pods)), Outcome.SCALED
    return Proposal(
        replicas,
        MetricValueStatus(value=status_text.decimal(usage_milli)),
        OfTotal(usage_milli, ratio, is_within, ready_pods, outcome),
    )


def _ready_pods(situation: Situation) -> int:
    """The number of ready pods. Raises MetricError if the target has no pods."""
    if not situation.pods:
        raise MetricError(f"unable to calculate ready pods: {NO_PODS}")
    return pod_groups.count_ready(situation)


def _average_proposal(
    usage_milli: int, target_milli: int, scaled_replicas: int, reported_milli: int, situation: Situation
) -> Proposal:
    """The proposal `scaled_replicas`, unless the value is close to the target times the replicas of the status."""
    replicas = situation.status_replicas
    ratio = numbers.divide(float(usage_milli), float(target_milli) * float(replicas))
    is_within = situation.tolerance.allows(ratio)
    outcome = Outcome.WITHIN_TOLERANCE if is_within else Outcome.SCALED
    return Proposal(
        replicas if is_within else scaled_replicas,
        MetricValueStatus(average_value=status_text.decimal(reported_milli)),
        OfAverage(usage_milli, replicas, ratio, is_within, reported_milli, outcome),
    )
