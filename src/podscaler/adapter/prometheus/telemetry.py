"""Defines the adapter's own metrics: requests that it serves, queries that it sends, and rules that cannot be used.

`adapter.assembly` makes an AdapterTelemetry and wraps Prometheus' client with `CountedDatabase`; `adapter.server`
counts requests and renders /metrics. A new metric: an attribute of AdapterTelemetry and the method that counts.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from podscaler.adapter.prometheus.client import MetricsDatabase
from podscaler.adapter.prometheus.responses import PrometheusError, QueryResult
from podscaler.base.clock import Clock

T = TypeVar("T")
PREFIX = "podscaler_adapter"
BUCKETS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class AdapterTelemetry:
    """The Prometheus metrics of one adapter, which its /metrics endpoint returns.

    Args:
        clock: for durations.

    Attributes:
        registry: contains the metrics.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.registry = CollectorRegistry()
        requests, queries = f"{PREFIX}_requests", f"{PREFIX}_prometheus_requests"
        self._requests = Counter(
            requests, "Requests by API group and status.", ["group", "code"], registry=self.registry
        )
        self._request_time = Histogram(
            f"{PREFIX}_request_duration_seconds",
            "Duration of requests by API group.",
            ["group"],
            registry=self.registry,
            buckets=BUCKETS_S,
        )
        self._queries = Counter(
            queries, "Requests to Prometheus by endpoint and result.", ["endpoint", "result"], registry=self.registry
        )
        self._query_time = Histogram(
            f"{PREFIX}_prometheus_request_duration_seconds",
            "Duration of requests to Prometheus by endpoint.",
            ["endpoint"],
            registry=self.registry,
            buckets=BUCKETS_S,
        )
        self._errors = Gauge(f"{PREFIX}_rule_errors", "Errors of rules and of their last list.", registry=self.registry)

    def now_s(self) -> float:
        """The time of the monotonic clock, for `began_s` of `count_request`."""
        return self._clock.monotonic_s()

    def count_request(self, group: str, code: int, began_s: float) -> None:
        """Count a response with its status and duration; `group` is a served API group, or empty for other paths."""
        self._requests.labels(group, str(code)).inc()
        self._request_time.labels(group).observe(self._clock.monotonic_s() - began_s)

    def set_errors(self, count_errors: Callable[[], int]) -> None:
        """Read the number of errors of rules with `count_errors` whenever metrics are rendered."""
        self._errors.set_function(count_errors)

    def render(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    async def timed(self, endpoint: str, sending: Awaitable[T]) -> T:
        """Await a request to Prometheus, and count it; returns its result. Raises PrometheusError."""
        began_s, outcome = self._clock.monotonic_s(), "success"
        try:
            return await sending
        except PrometheusError as error:
            outcome = error.kind
            raise
        finally:
            self._queries.labels(endpoint, outcome).inc()
            self._query_time.labels(endpoint).observe(self._clock.monotonic_s() - began_s)


class CountedDatabase:
    """A MetricsDatabase whose requests are counted.

    Args:
        database: executes the requests.
        telemetry: counts the requests.
    """

    def __init__(self, database: MetricsDatabase, telemetry: AdapterTelemetry) -> None:
        self._database = database
        self._telemetry = telemetry

    async def query(self, promql: str) -> QueryResult:
        """As in MetricsDatabase."""
        return await self._telemetry.timed("query", self._database.query(promql))

    async def series(self, selector: str, *, max_age_s: float) -> Sequence[dict[str, str]]:
        """As in MetricsDatabase."""
        return await self._telemetry.timed("series", self._database.series(selector, max_age_s=max_age_s))
