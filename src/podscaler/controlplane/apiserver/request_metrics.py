"""Counts the API server's requests as Prometheus metrics: requests, their durations, stored objects, the process.

`app` calls `observe` for every request; for `/metrics`, `non_resource_handlers` calls `count_objects`, then `text`.
Names and labels are kube-apiserver's, so that dashboards for it work. Label values are those of served resources only,
so that clients cannot create an unbounded number of series.

A new metric: a collector in `APIServerMetrics.__init__`, which `observe` updates.

Source: the metrics that kube-apiserver documents as stable. Differs: only the few that matter on one machine; exec and
other connections count with the verb of their method, GET or POST, not as CONNECT.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from podscaler.controlplane.auth.authorizer import Attributes

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FINE_BUCKETS_S: Final = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5)
_BUCKETS_S: Final = (*_FINE_BUCKETS_S, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_LABEL_NAMES: Final = ("verb", "group", "version", "resource", "subresource")
_LABEL_BY_VERB: Final[Mapping[str, str]] = {"create": "POST", "update": "PUT"}
"""The label of verbs of RBAC; that of others is the verb in capitals."""
_LONG_RUNNING_VERBS: Final = frozenset({"WATCH", "CONNECT"})
"""Labels of verbs whose durations are not observed."""
_KNOWN_VERBS: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "LIST", "WATCH", "DELETECOLLECTION", "OPTIONS"}
)
"""Labels of verbs that requests for unserved resources may have; other verbs, which clients choose, are OTHER."""

LabelValues = tuple[str, str, str, str, str]
"""The values of `_LABEL_NAMES`, in that order."""


class APIServerMetrics:
    """The metrics of one API server.

    Args:
        is_served: whether the resource of a request is served in that version.
        get_counts: the number of stored objects of each kind, by `Resource.key`.
    """

    def __init__(
        self, is_served: Callable[[Attributes, str], bool], get_counts: Callable[[], Mapping[str, int]]
    ) -> None:
        self._is_served = is_served
        self._get_counts = get_counts
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._object_counts: Mapping[str, int] = {}
        self._registry.register(_StoredObjectsGauge(lambda: self._object_counts))
        self._requests = Counter(
            "apiserver_request_total", "Requests answered.", (*_LABEL_NAMES, "code"), registry=self._registry
        )
        self._durations = Histogram(
            "apiserver_request_duration_seconds",
            "How long requests took that are not meant to last.",
            _LABEL_NAMES,
            buckets=_BUCKETS_S,
            registry=self._registry,
        )
        self._counters: dict[tuple[LabelValues, int], Counter] = {}
        self._histograms: dict[LabelValues, Histogram] = {}

    def observe(self, attributes: Attributes | None, version: str, code: int, duration_s: float) -> None:
        """Count a request with the HTTP status `code`, and observe its duration unless it is long-running.

        `attributes` is None if the request failed before they were known.
        """
        label_values = self._label_values(attributes, version)
        counter = self._counters.get((label_values, code))  # `labels` takes longer
        if counter is None:
            counter = self._counters[label_values, code] = self._requests.labels(*label_values, str(code))
        counter.inc()
        verb, *_ = label_values
        if verb in _LONG_RUNNING_VERBS:
            return
        histogram = self._histograms.get(label_values)
        if histogram is None:
            histogram = self._histograms[label_values] = self._durations.labels(*label_values)
        histogram.observe(duration_s)

    def count_objects(self) -> None:
        """Count the stored objects for the next `text`; to be called on the event loop."""
        self._object_counts = dict(self._get_counts())

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus. Takes milliseconds: call it in a thread."""
        return prometheus_client.generate_latest(self._registry)

    def _label_values(self, attributes: Attributes | None, version: str) -> LabelValues:
        """The label values of a request; empty except for the verb if its resource is not served."""
        if attributes is None:
            return ("", "", "", "", "")
        verb = _LABEL_BY_VERB.get(attributes.verb, attributes.verb.upper())
        if not attributes.resource or not self._is_served(attributes, version):
            return (verb if verb in _KNOWN_VERBS else "OTHER", "", "", "", "")
        return (verb, attributes.group, version, attributes.resource, attributes.subresource)


class _StoredObjectsGauge(Collector):
    """The gauge of stored objects, with the counts of the last `APIServerMetrics.count_objects`."""

    def __init__(self, get_counts: Callable[[], Mapping[str, int]]) -> None:
        self._get_counts = get_counts

    def collect(self) -> Iterator[Metric]:
        """One gauge, a series for each kind."""
        family = GaugeMetricFamily("apiserver_storage_objects", "Objects kept.", labels=("resource",))
        for resource, count in sorted(self._get_counts().items()):
            family.add_metric([resource], count)
        yield family
