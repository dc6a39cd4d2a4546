"""Fetches the values of one entry of `spec.metrics`, and converts the response to the input of a decision.

`podscaler.controller.reconcile.observer` calls `fetch` for each metric of an autoscaler. A failure of any kind becomes
an `observation.Failure`, about which `podscaler.core.decide` decides. A new type of metric: a class in
`podscaler.core.model.metric_spec`, a query in `queries`, and a case in `_query_metric`.

Source: docs/spec/decision.md 7 (Metrics client).
"""

from dataclasses import dataclass

from podscaler.api.machinery.selectors import Selector
from podscaler.base.errors import StatusError
from podscaler.core.calculation import samples
from podscaler.core.model import observation
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.metric_spec import ExternalMetric, Metric, ObjectMetric, PodsMetric, ResourceMetric
from podscaler.metrics.queries import (
    ExternalMetricQuery,
    MetricsResponse,
    MetricsSource,
    ObjectMetricQuery,
    PodsMetricQuery,
    ResourceMetricsQuery,
)


@dataclass(frozen=True, slots=True)
class FetchedMetric:
    """One metric's measurement for the decision, and the API's response.

    Attributes:
        measurement: the samples of the metric, or the failure to get them.
        response: the response, for recordings; None if the query failed or its response could not be read.
    """

    measurement: observation.Measurement
    response: MetricsResponse | None = None


async def fetch(
    source: MetricsSource, metric: Metric, *, namespace: str, selector: Selector, rules: Emulation
) -> FetchedMetric:
    """The measurement of `metric`, or the Failure to get it; raises neither StatusError nor ValueError.

    Args:
        source: executes the query.
        metric: a valid entry of the spec: one whose `fault` is empty.
        namespace: the autoscaler's namespace.
        selector: matches the target's pods.
        rules: how the emulated Kubernetes version reads numbers.
    """
    try:
        return await _query_metric(source, metric, namespace=namespace, selector=selector, rules=rules)
    except StatusError as error:
        return FetchedMetric(observation.Failure(error.message, error.reason, error.code))
    except ValueError as error:
        return FetchedMetric(observation.Failure(f"the metrics API's answer cannot be read: {error}"))


async def _query_metric(
    source: MetricsSource, metric: Metric, *, namespace: str, selector: Selector, rules: Emulation
) -> FetchedMetric:
    """As `fetch`. Raises StatusError if the query fails and ValueError if its response cannot be read."""
    match metric:
        case ResourceMetric():
            usage = await source.query(ResourceMetricsQuery(namespace, selector))
            return FetchedMetric(samples.of_resource(usage, metric.resource, metric.container, rules), usage)
        case PodsMetric():
            values = await source.query(PodsMetricQuery(namespace, metric.identifier.name, selector, metric.selector))
            return FetchedMetric(samples.of_pods(values, rules), values)
        case ObjectMetric():
            name, described = metric.identifier.name, metric.described
            values = await source.query(ObjectMetricQuery(namespace, name, described, metric.selector))
            return FetchedMetric(samples.of_values(values, rules), values)
        case ExternalMetric():
            external = await source.query(ExternalMetricQuery(namespace, metric.identifier.name, metric.selector))
            return FetchedMetric(samples.of_values(external, rules), external)
        case _:
            raise ValueError(f"nobody serves metrics of type {metric.type}")
