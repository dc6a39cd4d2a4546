"""Sends queries to Heapster, the metrics server of Kubernetes 1.2 to 1.10, which had no metrics APIs.

The controller (`podscaler.controller.assembly`, `podscaler.cli.options.heapster`) uses a HeapsterMetricsSource with
`--horizontal-pod-autoscaler-use-rest-clients=false`. Rules:

1. The usage of pods is `/apis/metrics/v1alpha1/namespaces/NAMESPACE/pods?labelSelector=SELECTOR`.
2. A metric of pods is `/api/v1/model/namespaces/NAMESPACE/pod-list/NAMES/metrics/custom/METRIC` since five minutes ago,
   for the pods of the API server; a value is the mean of the points of the minute before the newest one, in
   thousandths. Results are in the order of the names; pods without points have no value.
3. Requests go through the API server's proxy of the Service `SCHEME:NAME:PORT`, or to a URL.

Source: the Heapster client of kube-controller-manager 1.9 (its paths, computation and error texts); the model API of
Heapster 1.5.

Differs: 1.6 to 1.10 requested METRIC without `custom`, which had no metrics of applications; here it is requested as
1.2 to 1.5 did. Metrics of more than PODS_MAX pods take several requests. Metric selectors are an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from podscaler.api.machinery import instants, numbers
from podscaler.api.machinery.selectors import EVERYTHING, Selector
from podscaler.api.typed.metrics import DescribedObject, MetricValue, MetricValueList, PodMetricsList
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client, Query
from podscaler.metrics.queries import (
    ExternalMetricQuery,
    MetricQuery,
    ObjectMetricQuery,
    PodsMetricQuery,
    R,
    ResourceMetricsQuery,
)

HISTORY_NS: Final = 300 * NANOSECONDS
"""The age of the oldest points that are requested."""
AVERAGED_NS: Final = 60 * NANOSECONDS
"""The span before the newest point whose points are averaged."""
PODS_MAX: Final = 200
"""The number of names in one path."""
CUSTOM_PREFIX: Final = "custom"
"""The first part of the name of a metric of applications."""
WINDOW_S: Final = 60
"""The `windowSeconds` of all values."""

_POD_METRICS: Final = msgspec.json.Decoder(PodMetricsList)


@dataclass(frozen=True, slots=True)
class HeapsterService:
    """How Heapster is reached.

    Attributes:
        namespace, name: identify the Service.
        scheme: `http`, `https` or empty, as in the path of the API server's proxy.
        port: the name or number of the Service's port; empty for the first one.
        url: Heapster's own URL, to which requests go instead of the API server's proxy; empty if they go to the proxy.
    """

    namespace: str = "kube-system"
    name: str = "heapster"
    scheme: str = "http"
    port: str = ""
    url: str = ""

    @property
    def proxy_name(self) -> str:
        """The Service's name in the path of the proxy: `http:heapster:`."""
        if self.scheme:
            return f"{self.scheme}:{self.name}:{self.port}"
        return f"{self.name}:{self.port}" if self.port else self.name


class HeapsterPoint(msgspec.Struct, frozen=True, rename="camel"):
    """A value at an instant (RFC 3339); `float_value` counts if it is set."""

    timestamp: str
    value: int = 0
    float_value: float | None = None


class HeapsterResult(msgspec.Struct, frozen=True):
    """The points of one pod."""

    metrics: tuple[HeapsterPoint, ...] | None = None


class HeapsterResultList(msgspec.Struct, frozen=True):
    """The points of several pods, in the order of the request."""

    items: tuple[HeapsterResult, ...] | None = None


class _PodMeta(msgspec.Struct):
    """The field of a pod's metadata that is read."""

    name: str = ""


class _Pod(msgspec.Struct):
    """A pod of the API server."""

    metadata: _PodMeta


class _Pods(msgspec.Struct):
    """The API server's list of pods."""

    items: tuple[_Pod, ...] | None = None


_RESULTS: Final = msgspec.json.Decoder(HeapsterResultList)
_PODS: Final = msgspec.json.Decoder(_Pods)


class HeapsterMetricsSource:
    """Requests metrics from one Heapster; a `podscaler.metrics.queries.MetricsSource`.

    Args:
        api: the API server, which lists pods and proxies to the Service.
        service: how Heapster is reached.
        clock: for the age of points.
        direct: a client of `service.url`; None if requests go through the API server's proxy.
    """

    def __init__(self, api: Client, service: HeapsterService, clock: Clock, *, direct: Client | None = None) -> None:
        self._api = api
        self._service = service
        self._clock = clock
        self._direct = direct

    async def query(self, query: MetricQuery[R]) -> R:
        """Heapster's response in the form of the metrics API's. Raises StatusError."""
        response: Any = await self._respond(query)  # of the type that the query's class names
        return response  # type: ignore[no-any-return]  # mypy does not narrow R by isinstance

    async def _respond(self, query: MetricQuery[Any]) -> PodMetricsList | MetricValueList:
        """The response for the class of the query. Raises StatusError, also for metrics that Heapster does not have."""
        match query:
            case ResourceMetricsQuery():
                return await self._resource_metrics(query)
            case PodsMetricQuery():
                return await self._pods_metric(query)
            case ObjectMetricQuery():
                raise StatusError("object metrics are not yet supported", code=0)
            case ExternalMetricQuery():
                raise StatusError("external metrics aren't supported", code=0)
        raise TypeError(f"{query!r} is a query of no known type")

    async def _resource_metrics(self, query: ResourceMetricsQuery) -> PodMetricsList:
        """The usage of pods (rule 1). Raises StatusError, also for a list without items."""
        path = "/apis/metrics/v1alpha1" + urls.path("namespaces", urls.object_name(query.namespace), "pods")
        body = await self._get(path, [("labelSelector", str(query.selector))], "failed to get pod resource metrics")
        usage: PodMetricsList = _decode(body, _POD_METRICS)
        if not usage.items:
            raise StatusError("no metrics returned from heapster", code=0)
        return usage

    async def _pods_metric(self, query: PodsMetricQuery) -> MetricValueList:
        """The values of a metric of pods (rule 2). Raises StatusError."""
        if query.metric_selector != EVERYTHING:
            raise StatusError("metric selectors aren't supported by heapster", code=0)
        metric = urls.subresource(query.metric)
        pod_names = await self._pod_names(query.namespace, query.selector)
        values: list[MetricValue] = []
        for first in range(0, len(pod_names), PODS_MAX):
            batch = pod_names[first : first + PODS_MAX]
            results = await self._request_results(query.namespace, batch, metric)
            values += _pod_values(query.namespace, metric, batch, results)
        return MetricValueList(items=tuple(values))

    async def _pod_names(self, namespace: str, selector: Selector) -> list[str]:
        """The names of the pods that the selector matches; at least one. Raises StatusError."""
        path = "/api/v1" + urls.path("namespaces", urls.object_name(namespace), "pods")
        try:
            body = await self._api.get(path, subject="pods", query=[("labelSelector", str(selector))])
        except StatusError as error:
            raise _prefixed(error, "failed to get pod list while fetching metrics") from error
        names = [urls.object_name(pod.metadata.name) for pod in _decode(body, _PODS).items or ()]
        if not names:
            raise StatusError("no pods matched the provided selector", code=0)
        return names

    async def _request_results(self, namespace: str, names: Sequence[str], metric: str) -> Sequence[HeapsterResult]:
        """The results of the pods of these names, in their order. Raises StatusError."""
        name_list = ",".join(names)
        metric_path = urls.path("namespaces", namespace, "pod-list", name_list, "metrics", CUSTOM_PREFIX, metric)
        path = "/api/v1/model" + metric_path
        start = instants.text(self._clock.now_ns() - HISTORY_NS)
        body = await self._get(path, [("start", start)], "failed to get pod metrics")
        results: Sequence[HeapsterResult] = _decode(body, _RESULTS).items or ()
        if len(results) != len(names):
            raise StatusError(f"requested metrics for {len(names)} pods, got metrics for {len(results)}", code=0)
        return results

    async def _get(self, path: str, query: Query, failure: str) -> bytes:
        """The body of a request to Heapster. Raises StatusError, whose text begins with `failure`."""
        name = self._service.proxy_name
        try:
            if self._direct is not None:
                return await self._direct.get(path, subject=f"services {name}", query=query)
            proxy = "/api/v1" + urls.path("namespaces", self._service.namespace, "services", name, "proxy")
            return await self._api.get(proxy + path, subject=f"services {name}", query=query)
        except StatusError as error:
            raise _prefixed(error, failure) from error


def _prefixed(error: StatusError, failure: str) -> StatusError:
    """The error with `failure` before its message, as kube-controller-manager's Heapster client has it."""
    return StatusError(f"{failure}: {error.message}", code=error.code, reason=error.reason)


def _decode(body: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    """The typed response. Raises StatusError with the text of kube-controller-manager's Heapster client."""
    try:
        return decoder.decode(body)
    except JSON_DECODE_ERRORS as error:
        raise StatusError(f"failed to unmarshal heapster response: {error}", code=0) from error


def _pod_values(
    namespace: str, metric: str, names: Sequence[str], results: Sequence[HeapsterResult]
) -> list[MetricValue]:
    """The values of the pods that have points. Raises StatusError for a time or a number that cannot be read."""
    values = []
    for name, result in zip(names, results, strict=True):
        try:
            mean = last_minute_mean(result.metrics or ())
        except (ValueError, OverflowError) as error:
            raise StatusError(f"failed to unmarshal heapster response: {error}", code=0) from error
        if mean is not None:
            milli, timestamp = mean
            described = DescribedObject(kind="Pod", namespace=namespace, name=name, api_version="v1")
            values.append(
                MetricValue(
                    described_object=described,
                    metric_name=metric,
                    timestamp=timestamp,
                    window_seconds=WINDOW_S,
                    value=f"{milli}m",
                )
            )
    return values


def last_minute_mean(points: Sequence[HeapsterPoint]) -> tuple[int, str] | None:
    """The mean of the minute before the newest point in thousandths, and that point's time; None without points.

    Only points of the newest one's type (integer, float) count. Fractions of a thousandth are cut off.

    Args:
        points: in any order.

    Raises:
        ValueError: a time cannot be read.
        OverflowError: a number is beyond 64 bits.
    """
    if not points:
        return None
    times_ns = [instants.parse(point.timestamp) for point in points]
    newest_at_ns = max(times_ns)
    newest_point = points[times_ns.index(newest_at_ns)]  # of equal times the first point
    recent = [point for point, at_ns in zip(points, times_ns, strict=True) if at_ns + AVERAGED_NS > newest_at_ns]
    if newest_point.float_value is not None:
        floats = [point.float_value for point in recent if point.float_value is not None]
        mean = sum(floats) / len(floats)
        milli = int(mean * 1000)
    else:
        integers = [point.value for point in recent if point.float_value is None]
        mean = sum(integers) / len(integers)
        milli = sum(integers) * 1000 // len(integers)
    if not numbers.INT64_MIN <= milli <= numbers.INT64_MAX:
        raise OverflowError(f"the value {mean:g} is beyond 64 bits")
    return milli, newest_point.timestamp
