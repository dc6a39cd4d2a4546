"""Responds to queries for external metrics by reading the MetricSource with the metric's name.

`podscaler.controller.assembly` puts a DirectMetricsSource before the external metrics API; `podscaler adapter`, a
server of external.metrics.k8s.io, calls `DirectSources.find_values`. Rules:

1. An external metric is read from the MetricSource of its name in the autoscaler's namespace, with hyphens for
   underscores, which names of objects cannot have: `jobs_waiting` from `jobs-waiting`. If there is none, the external
   metrics API is requested.
2. The labels of the MetricSource must match the selector of the metric.
3. Queries of one source within `fresh_s`, or while a read runs, share one read; a failed read is shared, too.
4. A MetricSource that cannot be read is a StatusError with code 0: a failure of the metric.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from podscaler.api.kinds.autoscaling.metric_source import QUERY_LABEL
from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.metrics import ExternalMetricValue, ExternalMetricValueList
from podscaler.base.clock import Clock, rfc3339
from podscaler.base.errors import StatusError
from podscaler.kube.informers.cache import Key, key_of
from podscaler.kube.transport.single_flight import SingleFlight
from podscaler.metrics.metrics_apis import EXTERNAL_GROUP, VERSION
from podscaler.metrics.queries import ExternalMetricQuery, MetricQuery, MetricsSource, R
from podscaler.sources import metric_numbers
from podscaler.sources.metric_source import MetricSource
from podscaler.sources.open_sources import ReadResult


class SourceFinder(Protocol):
    """Finds MetricSources."""

    async def find(self, key: Key) -> MetricSource | None:
        """The MetricSource of that namespace and name; None if there is none. Raises StatusError."""
        ...


class SourceReader(Protocol):
    """Reads MetricSources."""

    async def read(self, metric_source: MetricSource) -> ReadResult:
        """The value of the MetricSource, or the error; reads of one object do not overlap."""
        ...


class _KeptRead(NamedTuple):
    """A read: when it ended (monotonic clock), what was read, and the result."""

    read_at_s: float
    metric_source: MetricSource
    result: ReadResult


class DirectSources:
    """Reads the MetricSources of a cluster for queries of external metrics, by the module's rules.

    Args:
        finder: finds the MetricSource of a metric.
        reader: reads MetricSources (`podscaler.sources.open_sources.OpenSources`); the caller closes it.
        clock: for the age of reads.
        fresh_s: how long a read is shared, in seconds from its end; 0 if it is shared only while it runs.
        on_read: called once with the result of each read; None if no function is to be called.
    """

    def __init__(
        self,
        finder: SourceFinder,
        reader: SourceReader,
        clock: Clock,
        *,
        fresh_s: float = 0.0,
        on_read: Callable[[MetricSource, ReadResult], None] | None = None,
    ) -> None:
        self._finder = finder
        self._reader = reader
        self._clock = clock
        self._fresh_s = fresh_s
        self._on_read = on_read
        self._flights: SingleFlight[Key, ReadResult] = SingleFlight()
        self._kept_reads: dict[Key, _KeptRead] = {}  # the oldest one first

    async def find_values(self, namespace: str, name: str, selector: Selector) -> ExternalMetricValueList | None:
        """The value of the external metric as the external metrics API has it; None if no MetricSource has that name.

        Raises StatusError if the labels do not match, or the MetricSource cannot be looked up or read.
        """
        metric_source = await self._finder.find((namespace, name.replace("_", "-")))
        if metric_source is None:
            return None
        labels = metric_source.metadata.labels or {}
        if not selector.matches(labels):
            raise StatusError(
                f"the labels of the MetricSource {namespace}/{name} do not match the selector {selector} of the metric",
                code=0,
            )
        read_result = await self.read(metric_source)
        if read_result.value_milli is None:
            raise StatusError(_failure_text(metric_source, read_result), code=0)
        metric_value = ExternalMetricValue(
            metric_name=name,
            metric_labels={**labels, QUERY_LABEL: read_result.query},
            timestamp=rfc3339(read_result.read_at_ns),
            value=metric_numbers.quantity(read_result.value_milli),
        )
        return ExternalMetricValueList(f"{EXTERNAL_GROUP}/{VERSION}", {}, (metric_value,))

    async def read(self, metric_source: MetricSource) -> ReadResult:
        """The result of a read of the MetricSource, shared within `fresh_s`."""
        key = key_of(metric_source)
        kept, now_s = self._kept_reads.get(key), self._clock.monotonic_s()
        if kept is not None and now_s - kept.read_at_s < self._fresh_s and _is_same(kept.metric_source, metric_source):
            return kept.result
        return await self._flights.run(key, lambda: self._read_and_keep(metric_source))

    async def _read_and_keep(self, metric_source: MetricSource) -> ReadResult:
        """Read the MetricSource; the result is kept for `fresh_s`, and `on_read` is called with it."""
        read_result = await self._reader.read(metric_source)
        if self._fresh_s > 0:
            self._drop_stale()
            key = key_of(metric_source)
            self._kept_reads.pop(key, None)  # so that the oldest read is the first entry
            self._kept_reads[key] = _KeptRead(self._clock.monotonic_s(), metric_source, read_result)
        if self._on_read is not None:
            self._on_read(metric_source, read_result)
        return read_result

    def _drop_stale(self) -> None:
        """Drop the reads that are no longer fresh; reads are in the order of their instants."""
        oldest_s = self._clock.monotonic_s() - self._fresh_s
        for key, kept in list(self._kept_reads.items()):
            if kept.read_at_s > oldest_s:
                return
            del self._kept_reads[key]


class DirectMetricsSource:
    """A MetricsSource that reads external metrics of MetricSources, and passes other queries on.

    Args:
        direct_sources: the MetricSources of the cluster.
        wrapped: executes the other queries.
    """

    def __init__(self, direct_sources: DirectSources, wrapped: MetricsSource) -> None:
        self._direct_sources = direct_sources
        self._wrapped = wrapped

    async def query(self, query: MetricQuery[R]) -> R:
        """The list of the MetricSource, or of the wrapped source. Raises StatusError."""
        if isinstance(query, ExternalMetricQuery):
            values: Any = await self._direct_sources.find_values(query.namespace, query.metric, query.metric_selector)
            if values is not None:
                return values  # type: ignore[no-any-return]  # R is ExternalMetricValueList; mypy does not narrow it
        return await self._wrapped.query(query)


def _is_same(first: MetricSource, second: MetricSource) -> bool:
    """Whether both are the same object with the same spec; the status may differ."""
    return first is second or (first.metadata.uid == second.metadata.uid and first.spec == second.spec)


def _failure_text(metric_source: MetricSource, read_result: ReadResult) -> str:
    """The message for a MetricSource that cannot be read."""
    subject = f"the MetricSource {metric_source.metadata.namespace}/{metric_source.metadata.name}"
    query = f" ({read_result.query})" if read_result.query else ""
    return f"{subject}{query} cannot be read: {read_result.error}"
