"""Shares results of queries for a tick: equal queries are sent once.

`providers.object_values` and `providers.external_metrics` send their queries through it. A query that is under way is
shared by all its callers; its result is used for a tick after it was sent. A failure is used for FAILURE_S at most,
so that many autoscalers do not all wait for a Prometheus that is down. Results are dropped when they are not used any
more, and the oldest ones before that where all together have more than SAMPLES_MAX samples.

Differs: prometheus-adapter sends every query.
"""

from podscaler.adapter.prometheus.client import MetricsDatabase
from podscaler.adapter.prometheus.responses import PrometheusError, QueryResult
from podscaler.adapter.providers.expiring_values import ExpiringValues
from podscaler.base.clock import Clock
from podscaler.kube.transport.single_flight import SingleFlight

FAILURE_S = 1.0
"""How long a failure is returned for equal queries, at most."""
SAMPLES_MAX = 200_000
"""Of all results that are kept: some 150 MiB with four labels each. A result itself counts as one."""


class QueryCache:
    """Sends queries to Prometheus, and returns the result of an equal query of the same tick.

    Args:
        database: executes the queries.
        clock: for the tick.
        tick_s: how long a result is used; 0: as long as the query is under way.
    """

    def __init__(self, database: MetricsDatabase, clock: Clock, *, tick_s: float) -> None:
        self._database = database
        self._clock = clock
        self.tick_s = tick_s
        self._results: ExpiringValues[str, QueryResult | PrometheusError] = ExpiringValues(SAMPLES_MAX)
        self._flights: SingleFlight[str, QueryResult] = SingleFlight()

    async def query(self, promql: str) -> QueryResult:
        """The result of an expression, at most a tick old. Raises PrometheusError."""
        cached_result = self._results.find(promql, self._clock.monotonic_s())
        if cached_result is None:
            return await self._flights.run(promql, lambda: self._send_query(promql))
        if isinstance(cached_result, PrometheusError):
            raise cached_result
        return cached_result

    def has(self, promql: str) -> bool:
        """Whether the result of an expression is kept, and is no failure."""
        return isinstance(self._results.find(promql, self._clock.monotonic_s()), QueryResult)

    async def _send_query(self, promql: str) -> QueryResult:
        """Send a query; its result, or its failure, is used for equal queries of the tick. Raises PrometheusError."""
        sent_s = self._clock.monotonic_s()
        try:
            query_result = await self._database.query(promql)
        except PrometheusError as error:
            # a copy: the traceback of an exception that is raised again and again grows
            now_s, failure = self._clock.monotonic_s(), PrometheusError(error.kind, error.message)
            self._results.put(promql, failure, size=1, now_s=now_s, until_s=now_s + min(FAILURE_S, self.tick_s))
            raise
        now_s, size = self._clock.monotonic_s(), len(query_result.samples) + 1
        self._results.put(promql, query_result, size=size, now_s=now_s, until_s=sent_s + self.tick_s)
        return query_result
