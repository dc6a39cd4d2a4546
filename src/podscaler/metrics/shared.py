"""Equal queries at the same time are one request.

Goes around another MetricsSource. Autoscalers with the same target, and the cpu and memory metrics of one autoscaler,
ask the same question within a moment; who asks while the answer is on its way gets that answer.

Differs: upstream sends each query by itself. The answers are the same.
"""

from typing import Any

from podscaler.api.autoscaling import CrossVersionObjectReference
from podscaler.api.metrics import ExternalMetricValueList, MetricValueList, PodMetricsList
from podscaler.api.selectors import Selector
from podscaler.kube.sharing import SingleFlight
from podscaler.metrics.source import MetricsSource


class SharedMetricsSource:
    """See the module.

    Args:
        source: who is asked.
    """

    def __init__(self, source: MetricsSource) -> None:
        self._source = source
        self._flights: SingleFlight[tuple[str, ...], Any] = SingleFlight()

    async def resource_metrics(self, namespace: str, selector: Selector) -> PodMetricsList:
        """As the source. Raises StatusError."""
        key = ("resource", namespace, str(selector))
        found: PodMetricsList = await self._flights.run(key, lambda: self._source.resource_metrics(namespace, selector))
        return found

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: Selector, metric_selector: Selector
    ) -> MetricValueList:
        """As the source. Raises StatusError."""
        key = ("pods", namespace, metric, str(selector), str(metric_selector))
        found: MetricValueList = await self._flights.run(
            key,
            lambda: self._source.pods_metric(namespace, metric, selector=selector, metric_selector=metric_selector),
        )
        return found

    async def object_metric(
        self, namespace: str, metric: str, *, described: CrossVersionObjectReference, metric_selector: Selector
    ) -> MetricValueList:
        """As the source. Raises StatusError."""
        named = (described.api_version, described.kind, described.name)
        found: MetricValueList = await self._flights.run(
            ("object", namespace, metric, *named, str(metric_selector)),
            lambda: self._source.object_metric(namespace, metric, described=described, metric_selector=metric_selector),
        )
        return found

    async def external_metric(
        self, namespace: str, metric: str, *, metric_selector: Selector
    ) -> ExternalMetricValueList:
        """As the source. Raises StatusError."""
        found: ExternalMetricValueList = await self._flights.run(
            ("external", namespace, metric, str(metric_selector)),
            lambda: self._source.external_metric(namespace, metric, metric_selector=metric_selector),
        )
        return found
