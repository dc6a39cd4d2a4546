"""Where the values of metrics come from: the protocol between the controller and the metrics APIs.

The controller asks a MetricsSource; `podscaler.metrics.api` answers from the three metrics APIs of a cluster. What
comes back is the API's typed answer, which the decision core turns into samples and which recordings keep as it is. A
failure is a StatusError whose text is the bare `<e>` of docs/spec/decision.md 7 (Metrics client): the prefixes are the
core's.
"""

from typing import Protocol

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.autoscaling import CrossVersionObjectReference
from podscaler.api.typed.metrics import ExternalMetricValueList, MetricValueList, PodMetricsList


class MetricsSource(Protocol):
    """All may raise StatusError; lists may be empty."""

    async def resource_metrics(self, namespace: str, selector: Selector) -> PodMetricsList:
        """Usage of the containers of the namespace's pods that `selector` picks."""
        ...

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: Selector, metric_selector: Selector
    ) -> MetricValueList:
        """One value of `metric` for each pod that `selector` picks and that has one."""
        ...

    async def object_metric(
        self, namespace: str, metric: str, *, described: CrossVersionObjectReference, metric_selector: Selector
    ) -> MetricValueList:
        """The value of `metric` that describes one object of the namespace; should be one item."""
        ...

    async def external_metric(
        self, namespace: str, metric: str, *, metric_selector: Selector
    ) -> ExternalMetricValueList:
        """The values of a metric that belongs to no object; they are summed up."""
        ...
