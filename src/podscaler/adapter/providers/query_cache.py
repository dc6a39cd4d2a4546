"""Shares results of queries for a tick: equal queries are sent once.

`providers.object_values` and `providers.external` send their queries through it. A query that is under way is shared by
all that ask for it; its result is used for a tick after it was sent. A failure is used for FAILURE_S at most, so that
many autoscalers do not all wait for a Prometheus that is down.

Differs: prometheus-adapter sends every query.
"""

from typing import NamedTuple

from podscaler.adapter.prometheus.client import MetricsDatabase
from podscaler.adapter.prometheus.responses import PrometheusError, QueryResult
from podscaler.base.clock import Clock
from podscaler.base.lru import LRU
from podscaler.kube.transport.single_flight import SingleFlight

FAILURE_S = 1.0
QUERIES = 4096
"""The number of results that are kept."""


class _Kept(NamedTuple):
    until_s: float
    result: QueryResult | PrometheusError


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
        self._kept: LRU[str, _Kept] = LRU(QUERIES)
        self._flights: SingleFlight[str, QueryResult] = SingleFlight()

    async def query(self, promql: str) -> QueryResult:
        """The result of an expression, at most a tick old. Raises PrometheusError."""
        kept = self._fresh(promql)
        if kept is None:
            return await self._flights.run(promql, lambda: self._send(promql))
        if isinstance(kept.result, PrometheusError):
            raise kept.result
        return kept.result

    def has(self, promql: str) -> bool:
        """Whether the result of an expression is kept, and is no failure."""
        kept = self._fresh(promql)
        return kept is not None and isinstance(kept.result, QueryResult)

    def _fresh(self, promql: str) -> _Kept | None:
        kept = self._kept.find(promql)
        return kept if kept is not None and self._clock.monotonic_s() < kept.until_s else None

    async def _send(self, promql: str) -> QueryResult:
        sent_s = self._clock.monotonic_s()
        try:
            result = await self._database.query(promql)
        except PrometheusError as error:
            until_s = self._clock.monotonic_s() + min(FAILURE_S, self.tick_s)
            self._kept.put(promql, _Kept(until_s, PrometheusError(error.kind, error.message)))
            raise
        self._kept.put(promql, _Kept(sent_s + self.tick_s, result))
        return result
