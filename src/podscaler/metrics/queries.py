"""What to ask for one entry of `spec.metrics`, and the answer as the decision core wants it.

The controller calls `answer` for each metric of an autoscaler. A failure of any kind becomes a `model.Failure`: it is
the decision's business what that means.

Source: docs/spec/decision.md 7 (Metrics client).
"""

from dataclasses import dataclass

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.metrics import ExternalMetricValueList, MetricValueList, PodMetricsList
from podscaler.base.errors import StatusError
from podscaler.core.calculation import samples
from podscaler.core.model import model
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.metric_spec import ExternalMetric, Metric, ObjectMetric, PodsMetric, ResourceMetric
from podscaler.metrics.source import MetricsSource


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one query: what the decision takes from it, and as it came (None where it failed)."""

    facts: model.Answer
    wire: PodMetricsList | MetricValueList | ExternalMetricValueList | None = None


async def answer(
    source: MetricsSource, metric: Metric, *, namespace: str, selector: Selector, rules: Emulation
) -> Answered:
    """What the metrics APIs say about `metric`, which has no fault.

    Args:
        source: who is asked.
        metric: an entry of the spec.
        namespace: the autoscaler's.
        selector: the target's pods.
        rules: how numbers are read.
    """
    try:
        return await _answer(source, metric, namespace=namespace, selector=selector, rules=rules)
    except StatusError as error:
        return Answered(model.Failure(error.message, error.reason, error.code))
    except ValueError as error:
        return Answered(model.Failure(f"the metrics API's answer cannot be read: {error}"))


async def _answer(
    source: MetricsSource, metric: Metric, *, namespace: str, selector: Selector, rules: Emulation
) -> Answered:
    match metric:
        case ResourceMetric():
            usage = await source.resource_metrics(namespace, selector)
            return Answered(samples.of_resource(usage, metric.resource, metric.container, rules), usage)
        case PodsMetric():
            name, own = metric.identifier.name, metric.selector
            values = await source.pods_metric(namespace, name, selector=selector, metric_selector=own)
            return Answered(samples.of_pods(values, rules), values)
        case ObjectMetric():
            name, own = metric.identifier.name, metric.selector
            values = await source.object_metric(namespace, name, described=metric.described, metric_selector=own)
            return Answered(samples.of_values(values, rules), values)
        case ExternalMetric():
            name, own = metric.identifier.name, metric.selector
            totals = await source.external_metric(namespace, name, metric_selector=own)
            return Answered(samples.of_values(totals, rules), totals)
        case _:
            raise ValueError(f"nobody serves metrics of type {metric.type}")
