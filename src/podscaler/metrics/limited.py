"""At most so many requests to each of the three metrics APIs at a time.

Goes around the MetricsSource that makes the requests. Each API has an Allowance of its own, so that one that is slow or
dead holds up nobody who asks another; who waits for a place waits in order.
"""

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.autoscaling import CrossVersionObjectReference
from podscaler.api.typed.metrics import ExternalMetricValueList, MetricValueList, PodMetricsList
from podscaler.base.clock import Clock
from podscaler.metrics.concurrency_limiter import ConcurrencyLimiter
from podscaler.metrics.source import MetricsSource


class LimitedMetricsSource:
    """See the module.

    Args:
        source: who is asked.
        clock: for how long answers take.
    """

    def __init__(self, source: MetricsSource, clock: Clock) -> None:
        self._source = source
        self._resource = ConcurrencyLimiter(clock)
        self._custom = ConcurrencyLimiter(clock)
        self._external = ConcurrencyLimiter(clock)

    async def resource_metrics(self, namespace: str, selector: Selector) -> PodMetricsList:
        """As the source. Raises StatusError."""
        async with self._resource.place():
            return await self._source.resource_metrics(namespace, selector)

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: Selector, metric_selector: Selector
    ) -> MetricValueList:
        """As the source. Raises StatusError."""
        async with self._custom.place():
            return await self._source.pods_metric(namespace, metric, selector=selector, metric_selector=metric_selector)

    async def object_metric(
        self, namespace: str, metric: str, *, described: CrossVersionObjectReference, metric_selector: Selector
    ) -> MetricValueList:
        """As the source. Raises StatusError."""
        async with self._custom.place():
            return await self._source.object_metric(
                namespace, metric, described=described, metric_selector=metric_selector
            )

    async def external_metric(
        self, namespace: str, metric: str, *, metric_selector: Selector
    ) -> ExternalMetricValueList:
        """As the source. Raises StatusError."""
        async with self._external.place():
            return await self._source.external_metric(namespace, metric, metric_selector=metric_selector)
