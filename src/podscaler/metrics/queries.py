"""What to ask for one entry of `spec.metrics`, and the answer as the decision core wants it.

The controller calls `answer` for each metric of an autoscaler. A failure of any kind becomes a `model.Failure`: it is
the decision's business what that means.

Source: decision.md 7.
"""

from podscaler.api import selectors
from podscaler.api.autoscaling import MetricIdentifier
from podscaler.api.selectors import Selector
from podscaler.core import model, samples
from podscaler.core.emulation import Emulation
from podscaler.core.metric_spec import ExternalMetric, Metric, ObjectMetric, PodsMetric, ResourceMetric
from podscaler.errors import StatusError
from podscaler.metrics.source import MetricsSource


async def answer(
    source: MetricsSource, metric: Metric, *, namespace: str, selector: Selector, rules: Emulation
) -> model.Answer:
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
        return model.Failure(error.message, error.reason, error.code)
    except ValueError as error:
        return model.Failure(f"the metrics API's answer cannot be read: {error}")


async def _answer(
    source: MetricsSource, metric: Metric, *, namespace: str, selector: Selector, rules: Emulation
) -> model.Answer:
    match metric:
        case ResourceMetric():
            usage = await source.resource_metrics(namespace, selector)
            return samples.of_resource(usage, metric.resource, metric.container, rules)
        case PodsMetric():
            name, own = metric.identifier.name, _selector(metric.identifier)
            values = await source.pods_metric(namespace, name, selector=selector, metric_selector=own)
            return samples.of_pods(values, rules)
        case ObjectMetric():
            name, own = metric.identifier.name, _selector(metric.identifier)
            described = metric.described
            return samples.of_values(
                await source.object_metric(namespace, name, described=described, metric_selector=own), rules
            )
        case ExternalMetric():
            name, own = metric.identifier.name, _selector(metric.identifier)
            return samples.of_values(await source.external_metric(namespace, name, metric_selector=own), rules)
        case _:
            raise ValueError(f"nobody serves metrics of type {metric.type}")


def _selector(identifier: MetricIdentifier) -> Selector:
    return selectors.from_label_selector(identifier.selector or {})
