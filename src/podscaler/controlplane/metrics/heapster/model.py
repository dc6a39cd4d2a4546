"""Computes the responses of Heapster's API from the latest metrics of the node.

`metrics.heapster.endpoint` calls `HeapsterModel.respond` for each request, and serves /healthz itself. Served are

    /apis/metrics/v1alpha1/nodes[/NODE]
    /apis/metrics/v1alpha1/pods
    /apis/metrics/v1alpha1/namespaces/NAMESPACE/pods[/POD]
    /api/v1/model/namespaces/NAMESPACE/pods/POD/metrics/METRIC
    /api/v1/model/namespaces/NAMESPACE/pod-list/POD,POD/metrics/METRIC

with the parameters `labelSelector` (lists) and `start`, `end` (model). METRIC is `cpu/usage_rate` (thousandths of a
core), `memory/usage` or `memory/working_set` (bytes), or `custom/NAME`, a custom metric of pods. A new path:
a case in `HeapsterModel.respond` or `_respond_with_metrics`; a new metric: an entry in `MODEL_METRICS`.

Source: Heapster 1.5's documentation of its model API and its metrics API; its types MetricResult and MetricResultList.

Differs: the model API has the latest value alone, not those of the minutes before. CPU is that of the latest window
(`--metric-resolution`), not of a minute.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from podscaler.api.machinery import instants, selectors
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.machinery.selectors import SelectorError
from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.providers import MetricApis, MetricsRequest, VirtualObjects
from podscaler.controlplane.registry.registry import Object

CUSTOM_GROUP: Final = "custom.metrics.k8s.io"
CUSTOM_VERSION: Final = "v1beta2"
CUSTOM_PREFIX: Final = "custom/"
_NO_PATH_MESSAGE: Final = "404: Page Not Found"
_NO_TIMESTAMP: Final = "0001-01-01T00:00:00Z"
"""The zero time of Go: `latestTimestamp` of a result without a point."""
_THOUSANDTHS: Final = 1000
"""Thousandths in one: amounts are read exactly as `milli`, and cut to whole units."""
ReadUsage = Callable[[Mapping[str, str]], int]
"""Reads one figure from a container's `usage`, such as {"cpu": "25m", "memory": "90Ki"}."""


def _millicores(usage: Mapping[str, str]) -> int:
    return Quantity.parse(usage["cpu"]).milli_value()


def _memory_bytes(usage: Mapping[str, str]) -> int:
    return Quantity.parse(usage["memory"]).milli_value() // _THOUSANDTHS


MODEL_METRICS: Final[Mapping[str, ReadUsage]] = {
    "cpu/usage_rate": _millicores,
    "memory/usage": _memory_bytes,
    "memory/working_set": _memory_bytes,
}
"""The metrics that are read from the usage of containers; the node measures one amount of memory only."""


class HeapsterError(Exception):
    """A request with an error as its response; str() is the text of the response.

    Attributes:
        status: its HTTP status, 400 or 404.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class HeapsterRequest:
    """A request: the parts of its path, without empty ones, and its parameters."""

    parts: tuple[str, ...]
    parameters: Mapping[str, str]


class HeapsterModel:
    """Computes responses from the metrics of the node at the time of the request.

    Args:
        pods, nodes: the PodMetrics and NodeMetrics of the latest round of readings.
        custom: the custom metrics API of this cluster.
    """

    def __init__(self, pods: VirtualObjects, nodes: VirtualObjects, custom: MetricApis) -> None:
        self._pods = pods
        self._nodes = nodes
        self._custom = custom

    def respond(self, request: HeapsterRequest) -> Any:
        """The response as JSON values. Raises HeapsterError."""
        match request.parts:
            case ["apis", "metrics", "v1alpha1", *rest]:
                return self._respond_with_metrics(rest, request.parameters)
            case ["api", "v1", "model", "namespaces", namespace, collection, names, "metrics", *metric_parts]:
                metric, window = "/".join(metric_parts), _parse_window(request.parameters)
                return self._respond_with_points(namespace, collection, names, metric=metric, window=window)
        raise HeapsterError(404, _NO_PATH_MESSAGE)

    def _respond_with_metrics(self, parts: Sequence[str], parameters: Mapping[str, str]) -> Any:
        """The response for `apis/metrics/v1alpha1/PARTS`, in the form of metrics.k8s.io. Raises HeapsterError."""
        match parts:
            case ["nodes"]:
                return _list_response("NodeMetricsList", self._nodes.list(""), parameters)
            case ["nodes", name]:
                return _require_metrics(self._nodes.get("", name), f"node {name}")
            case ["pods"]:
                return _list_response("PodMetricsList", self._pods.list(""), parameters)
            case ["namespaces", namespace, "pods"]:
                return _list_response("PodMetricsList", self._pods.list(namespace), parameters)
            case ["namespaces", namespace, "pods", name]:
                return _require_metrics(self._pods.get(namespace, name), f"pod {name}")
        raise HeapsterError(404, _NO_PATH_MESSAGE)

    def _respond_with_points(
        self, namespace: str, collection: str, names: str, *, metric: str, window: "_Window"
    ) -> Object:
        """The response for `api/v1/model/namespaces/NAMESPACE/COLLECTION/NAMES/metrics/METRIC`.

        It is a MetricResult for one pod (`pods`), and a MetricResultList for the names in a `pod-list`; a pod without a
        value within the window has an empty result. Raises HeapsterError 404 for another collection.
        """
        find_point = self._point_finder(namespace, metric)
        if collection == "pods":
            return _metric_result(find_point(names), window)
        if collection != "pod-list":
            raise HeapsterError(404, _NO_PATH_MESSAGE)
        return {"items": [_metric_result(find_point(name), window) for name in names.split(",")]}

    def _point_finder(self, namespace: str, metric: str) -> Callable[[str], Object | None]:
        """A function from the name of a pod to its latest point (timestamp and value); None if it has none.

        No pod has a point of an unknown metric: as in Heapster, results are empty then.
        """
        if (read_usage := MODEL_METRICS.get(metric)) is not None:
            return lambda name: _usage_point(self._pods.get(namespace, name), read_usage)
        if not metric.startswith(CUSTOM_PREFIX):
            return lambda _: None
        return self._custom_points(namespace, metric.removeprefix(CUSTOM_PREFIX)).get

    def _custom_points(self, namespace: str, metric: str) -> dict[str, Object]:
        """The latest point of each pod with the metric, by the pod's name."""
        query = MetricsRequest(CUSTOM_GROUP, CUSTOM_VERSION, namespace, "pods", name="*", subresource=metric)
        try:
            metric_values: Iterable[Object] = self._custom.list_values(query)["items"]
        except StatusError:  # 404: no pod has the metric
            return {}
        return {metric_value["describedObject"]["name"]: _custom_point(metric_value) for metric_value in metric_values}


def _list_response(list_kind: str, objects: Sequence[Object], parameters: Mapping[str, str]) -> Object:
    """The objects that `labelSelector` matches, as a list. Raises HeapsterError for a selector that cannot be read."""
    try:
        selector = selectors.parse(parameters.get("labelSelector", ""))
    except SelectorError as error:
        raise HeapsterError(400, str(error)) from error
    items = [measured for measured in objects if selector.matches(measured["metadata"].get("labels") or {})]
    return {"kind": list_kind, "apiVersion": "metrics/v1alpha1", "metadata": {}, "items": items}


def _require_metrics(measured: Object | None, subject: str) -> Object:
    """The metrics of a subject (`pod web-1`). Raises HeapsterError 404 if there are none."""
    if measured is None:
        raise HeapsterError(404, f"No metrics for {subject}")
    return measured


def _usage_point(pod_metrics: Object | None, read_usage: ReadUsage) -> Object | None:
    """The point of a PodMetrics object: the sum over its containers; None without the object."""
    if pod_metrics is None:
        return None
    usages = [container["usage"] for container in pod_metrics["containers"]]
    return {"timestamp": pod_metrics["timestamp"], "value": sum(map(read_usage, usages))}


def _custom_point(metric_value: Object) -> Object:
    """The point of a MetricValue: `value` is a whole number of at least 0, `floatValue` the exact one if it differs."""
    milli = Quantity.parse(metric_value["value"]).milli_value()
    point: Object = {"timestamp": metric_value["timestamp"], "value": max(milli // _THOUSANDTHS, 0)}
    is_exact = milli >= 0 and milli % _THOUSANDTHS == 0
    return point if is_exact else point | {"floatValue": milli / _THOUSANDTHS}


class _Window(NamedTuple):
    """The requested span of time, in nanoseconds since the epoch, both ends included; `end_ns` is None without one."""

    start_ns: int
    end_ns: int | None

    def contains(self, at_ns: int) -> bool:
        """Whether an instant (nanoseconds since the epoch) is within the span."""
        return self.start_ns <= at_ns and (self.end_ns is None or at_ns <= self.end_ns)


def _metric_result(point: Object | None, window: _Window) -> Object:
    """A MetricResult with the point if there is one within the window."""
    if point is None:
        return {"metrics": [], "latestTimestamp": _NO_TIMESTAMP}
    is_within = window.contains(instants.parse(point["timestamp"]))
    return {"metrics": [point] if is_within else [], "latestTimestamp": point["timestamp"]}


def _parse_window(parameters: Mapping[str, str]) -> _Window:
    """The window of the parameters `start` (absent: 1970) and `end`. Raises HeapsterError 400."""
    try:
        end = parameters.get("end", "")
        return _Window(instants.parse_optional(parameters.get("start")), instants.parse(end) if end else None)
    except ValueError as error:
        raise HeapsterError(400, str(error)) from error
