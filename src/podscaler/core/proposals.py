"""Computes the proposal of one metric of any type: replicas and a status entry, or the failure with its texts.

Called by `podscaler.core.combine` for each entry of `spec.metrics`. The calculator for the metric's type is that of the
algorithm (`podscaler.core.algorithm`); a new type also needs an entry of `_STATUS_BY_TYPE`, and a class and a reader in
`podscaler.core.model.metric_spec`.

Source: docs/spec/decision.md 3.3 (Failure of one metric), 4 (One metric).
"""

from collections.abc import Callable

from podscaler.api.typed import autoscaling
from podscaler.api.typed.autoscaling import MetricStatus, MetricValueStatus
from podscaler.core import algorithm
from podscaler.core.calculation.calculation_types import Calculation, MetricError, Situation
from podscaler.core.model.metric_spec import (
    ExternalMetric,
    Metric,
    ObjectMetric,
    PodsMetric,
    ResourceMetric,
    Utilization,
)
from podscaler.core.model.observation import Fact, IncompleteObservation, Measurement, Values
from podscaler.core.model.trace import MetricFailure, MetricStep

NO_STATUS = MetricStatus()


class MetricResult(Fact, frozen=True, gc=False):
    """The result of one metric.

    Attributes:
        status: the metric's entry for `status.currentMetrics`; empty if it failed.
        step: the metric's step of the trace, with its proposal or failure.
        current: the value in `status`; None if it failed.
    """

    status: MetricStatus
    step: MetricStep
    current: MetricValueStatus | None = None


def of_metric(metric: Metric, measurement: Measurement | None, situation: Situation) -> MetricResult:
    """The proposal of `metric`, or its failure.

    Raises IncompleteObservation if `measurement` is None or of another type; a metric with a `fault` needs none.
    """
    if metric.fault:
        inner_prefix = metric.inner_prefix if metric.has_inner_fault else ""
        return _failed_result(metric, metric.fault, inner_prefix, calculation=None)
    if measurement is None:
        raise IncompleteObservation("an answer is needed")
    try:
        proposal = algorithm.of(situation.settings).propose[type(metric)](metric, measurement, situation)
    except MetricError as error:
        return _failed_result(metric, f"{metric.calculator_prefix}{error}", metric.inner_prefix, error.calculation)
    target = _target_number(metric)
    query = measurement.query if isinstance(measurement, Values) else ""
    step = MetricStep(
        metric.type,
        metric.name,
        target,
        proposal=proposal.replicas,
        calculation=proposal.calculation,
        subject=metric.subject,
        query=query,
    )
    return MetricResult(status_of(metric, proposal.current), step, proposal.current)


def status_of(metric: Metric, current: MetricValueStatus) -> MetricStatus:
    """The entry for `status.currentMetrics` of a metric that has a value."""
    return _STATUS_BY_TYPE[type(metric)](metric, current)


def _failed_result(metric: Metric, message: str, inner_prefix: str, calculation: Calculation | None) -> MetricResult:
    """The result of a failed metric: `message` is the error, `inner_prefix` its further prefix in the sync's error."""
    failure = MetricFailure(metric.reason, message, f"{metric.outer_prefix}{inner_prefix}{message}")
    target, subject = _target_number(metric), metric.subject
    step = MetricStep(metric.type, metric.name, target, calculation=calculation, failure=failure, subject=subject)
    return MetricResult(NO_STATUS, step)


def _target_number(metric: Metric) -> int | None:
    """The target in percent for a utilization, else in thousandths; None if the spec sets none."""
    target = metric.target
    if target is None:
        return None
    return target.pct if isinstance(target, Utilization) else target.milli


def _resource_status(metric: ResourceMetric, current: MetricValueStatus) -> MetricStatus:
    """The status entry of a Resource or a ContainerResource metric."""
    if metric.type == "ContainerResource":
        container = autoscaling.ContainerResourceMetricStatus(metric.resource, current, metric.container)
        return MetricStatus(metric.type, container_resource=container)
    return MetricStatus(metric.type, resource=autoscaling.ResourceMetricStatus(metric.resource, current))


def _pods_status(metric: PodsMetric, current: MetricValueStatus) -> MetricStatus:
    return MetricStatus(metric.type, pods=autoscaling.PodsMetricStatus(metric.identifier, current))


def _object_status(metric: ObjectMetric, current: MetricValueStatus) -> MetricStatus:
    status = autoscaling.ObjectMetricStatus(metric.identifier, current, metric.described)
    return MetricStatus(metric.type, object=status)


def _external_status(metric: ExternalMetric, current: MetricValueStatus) -> MetricStatus:
    return MetricStatus(metric.type, external=autoscaling.ExternalMetricStatus(metric.identifier, current))


_STATUS_BY_TYPE: dict[type[Metric], Callable[..., MetricStatus]] = {
    ResourceMetric: _resource_status,
    PodsMetric: _pods_status,
    ObjectMetric: _object_status,
    ExternalMetric: _external_status,
}
