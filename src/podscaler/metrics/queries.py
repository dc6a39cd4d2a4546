"""Defines the queries for the values of metrics, and the protocol MetricsSource, whose implementations execute queries.

The controller builds a query for each entry of `spec.metrics` and passes it to a MetricsSource:
`podscaler.metrics.metrics_apis` sends it to the metrics API of its kind, and the wrappers around it
(`concurrency_limiter`, `shared_queries`, `listed_pod_metrics`) limit, share and replace requests. A response is the
API's typed list, which recordings keep as it is; a failure is a StatusError whose text is the bare `<e>` of
docs/spec/decision.md 7 (Metrics client): the core adds the prefixes.

Invariant: queries are immutable and hashable; equal queries mean the same request. `metrics_apis` says what a new kind
of query needs.
"""

from typing import Generic, Protocol, TypeVar

import msgspec

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.autoscaling import CrossVersionObjectReference
from podscaler.api.typed.metrics import ExternalMetricValueList, MetricValueList, PodMetricsList

MetricsResponse = PodMetricsList | MetricValueList | ExternalMetricValueList
R = TypeVar("R", bound=MetricsResponse)


class MetricQuery(msgspec.Struct, Generic[R], frozen=True, gc=False):
    """The base of the four kinds of queries: a query in one namespace, whose response has the type R."""

    namespace: str


class ResourceMetricsQuery(MetricQuery[PodMetricsList], frozen=True, gc=False):
    """Usage of the containers of the pods that `selector` matches (metrics.k8s.io)."""

    selector: Selector


class PodsMetricQuery(MetricQuery[MetricValueList], frozen=True, gc=False):
    """The value of `metric` of each pod that `selector` matches and that has one (custom.metrics.k8s.io)."""

    metric: str
    selector: Selector
    metric_selector: Selector


class ObjectMetricQuery(MetricQuery[MetricValueList], frozen=True, gc=False):
    """The value of `metric` that describes one object; usually one item (custom.metrics.k8s.io)."""

    metric: str
    described: CrossVersionObjectReference
    metric_selector: Selector


class ExternalMetricQuery(MetricQuery[ExternalMetricValueList], frozen=True, gc=False):
    """The values of `metric`, which belongs to no object, that `metric_selector` matches (external.metrics.k8s.io)."""

    metric: str
    metric_selector: Selector


class MetricsSource(Protocol):
    """Executes queries; implemented by clients of the metrics APIs, and by wrappers of another MetricsSource."""

    async def query(self, query: MetricQuery[R]) -> R:
        """The API's list, whose items may be None or empty. Raises StatusError."""
        ...
