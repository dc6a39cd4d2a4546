"""At most so many requests to each of the three metrics APIs at a time.

Goes around the MetricsSource that makes the requests. Each API has its own limit, so that one that is slow or dead
holds up nobody who asks another; who waits for a place waits in order.
"""

import asyncio

from podscaler.api.autoscaling import CrossVersionObjectReference
from podscaler.api.metrics import ExternalMetricValueList, MetricValueList, PodMetricsList
from podscaler.api.selectors import Selector
from podscaler.metrics.source import MetricsSource

IN_FLIGHT = 72
"""5,000 autoscalers with a query of their own each, answered in 200 ms, need 67 for a period of 15 s.

With three APIs it leaves some of the pool's 256 connections for everything else, however slow all three are.
"""


class LimitedMetricsSource:
    """See the module.

    Args:
        source: who is asked.
        in_flight: how many requests each API may have to answer at once.
    """

    def __init__(self, source: MetricsSource, in_flight: int = IN_FLIGHT) -> None:
        self._source = source
        self._resource = asyncio.Semaphore(in_flight)
        self._custom = asyncio.Semaphore(in_flight)
        self._external = asyncio.Semaphore(in_flight)

    async def resource_metrics(self, namespace: str, selector: Selector) -> PodMetricsList:
        """As the source. Raises StatusError."""
        async with self._resource:
            return await self._source.resource_metrics(namespace, selector)

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: Selector, metric_selector: Selector
    ) -> MetricValueList:
        """As the source. Raises StatusError."""
        async with self._custom:
            return await self._source.pods_metric(namespace, metric, selector=selector, metric_selector=metric_selector)

    async def object_metric(
        self, namespace: str, metric: str, *, described: CrossVersionObjectReference, metric_selector: Selector
    ) -> MetricValueList:
        """As the source. Raises StatusError."""
        async with self._custom:
            return await self._source.object_metric(
                namespace, metric, described=described, metric_selector=metric_selector
            )

    async def external_metric(
        self, namespace: str, metric: str, *, metric_selector: Selector
    ) -> ExternalMetricValueList:
        """As the source. Raises StatusError."""
        async with self._external:
            return await self._source.external_metric(namespace, metric, metric_selector=metric_selector)
