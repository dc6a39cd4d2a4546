"""The three metrics APIs of a cluster as one MetricsSource.

The controller makes one; every call is one request. Caching and sharing of equal queries would go around it, behind the
same protocol.
"""

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.metrics import ExternalMetricValueList, PodMetricsList
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import Discovery
from podscaler.metrics import external, resource
from podscaler.metrics.custom import CustomMetrics


class APIMetricsSource:
    """See `podscaler.metrics.source.MetricsSource`.

    Args:
        client: where to ask.
        discovery: what the server serves.
        version_period_s: how long a negotiated version of the custom metrics API is used.
    """

    def __init__(self, client: Client, discovery: Discovery, *, version_period_s: float) -> None:
        self._client = client
        self._custom = CustomMetrics(client, discovery, version_period_s=version_period_s)
        self.pods_metric = self._custom.pods_metric
        self.object_metric = self._custom.object_metric

    async def resource_metrics(self, namespace: str, selector: Selector) -> PodMetricsList:
        """From metrics.k8s.io. Raises StatusError."""
        return await resource.resource_metrics(self._client, namespace, selector)

    async def external_metric(
        self, namespace: str, metric: str, *, metric_selector: Selector
    ) -> ExternalMetricValueList:
        """From external.metrics.k8s.io. Raises StatusError."""
        return await external.external_metric(self._client, namespace, metric, metric_selector=metric_selector)
