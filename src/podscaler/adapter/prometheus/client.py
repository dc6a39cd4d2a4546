"""Sends queries to Prometheus: instant queries, range queries, and lists of series.

`providers.query_cache` and `providers.metric_relisting` use it, and `podscaler.cli.simulate.range_queries` for range
queries. At most CONCURRENT_REQUESTS requests run at the same time; each has a time limit from the moment that it is
sent. Failures are PrometheusErrors; nothing is retried here, because the next request of an autoscaler does so.

Source: documentation of Prometheus' HTTP API; prometheus-adapter v0.12.0.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import urlencode

import msgspec

from podscaler.adapter.prometheus import responses
from podscaler.adapter.prometheus.responses import DOWN, PrometheusError, PromSeries, QueryResult
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.kube.transport.transport import Request, Transport, TransportError

CONCURRENT_REQUESTS = 16
QUERY, RANGE, SERIES = "/api/v1/query", "/api/v1/query_range", "/api/v1/series"


class MetricsDatabase(Protocol):
    """The requests to Prometheus that the adapter makes; `podscaler.testing.prometheus` has a fake."""

    async def query(self, promql: str) -> QueryResult:
        """The result of an expression now. Raises PrometheusError."""
        ...

    async def series(self, selector: str, *, max_age_s: float) -> Sequence[dict[str, str]]:
        """The labels of the series that had a sample in the last `max_age_s`. Raises PrometheusError."""
        ...


class PrometheusClient:
    """The HTTP client of one Prometheus; a MetricsDatabase.

    Args:
        transport: to Prometheus; closed by its owner.
        clock: for the instants of queries.
        timeout_s: of a request.
        uses_post: whether parameters are sent in the body of a POST.
    """

    def __init__(self, transport: Transport, clock: Clock, *, timeout_s: float, uses_post: bool = False) -> None:
        self._transport = transport
        self._clock = clock
        self._timeout_s = timeout_s
        self._uses_post = uses_post
        self._request_slots = asyncio.Semaphore(CONCURRENT_REQUESTS)

    async def query(self, promql: str) -> QueryResult:
        """As in MetricsDatabase."""
        parameters = [("query", promql), ("time", self._instant(0.0)), ("timeout", f"{self._timeout_s * 1000:.0f}ms")]
        return responses.query_result(await self._request_data(QUERY, parameters))

    async def query_range(self, promql: str, *, start_s: float, end_s: float, step_s: float) -> Sequence[PromSeries]:
        """The series of an expression at `start_s` and every `step_s` after it, up to `end_s` (since the epoch).

        Prometheus rejects more than 11,000 points. Raises PrometheusError.
        """
        span = [("start", f"{start_s:.3f}"), ("end", f"{end_s:.3f}"), ("step", f"{step_s:g}")]
        parameters = [("query", promql), *span, ("timeout", f"{self._timeout_s * 1000:.0f}ms")]
        return responses.range_result(await self._request_data(RANGE, parameters))

    async def series(self, selector: str, *, max_age_s: float) -> Sequence[dict[str, str]]:
        """As in MetricsDatabase."""
        parameters = [("match[]", selector), ("start", self._instant(max_age_s))]
        return responses.series(await self._request_data(SERIES, parameters))

    def _instant(self, ago_s: float) -> str:
        """The instant `ago_s` seconds ago, as a parameter."""
        return f"{self._clock.now_ns() / NANOSECONDS - ago_s:.3f}"

    async def _request_data(self, path: str, parameters: list[tuple[str, str]]) -> msgspec.Raw:
        """The data of a response to a request with these parameters. Raises PrometheusError."""
        encoded = urlencode(parameters)
        request = Request("GET", path, encoded, timeout_s=self._timeout_s)
        if self._uses_post:
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            request = Request("POST", path, body=encoded.encode(), headers=headers, timeout_s=self._timeout_s)
        async with self._request_slots:
            try:
                response = await self._transport.request(request)
            except TransportError as error:
                raise PrometheusError(DOWN, f"{self._transport.server}: {error.cause}") from error
        return responses.data_of(response.status, response.body)
