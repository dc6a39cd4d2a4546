"""Reads a series of Prometheus over a span, in as many range queries as Prometheus' limit of points needs.

`podscaler.cli.simulate.simulate` and `podscaler.cli.backtest.source_flags` pass `read` to code without a network.

Source: documentation of Prometheus' HTTP API (range queries; at most 11,000 points of a series).
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from podscaler.adapter.prometheus import connection
from podscaler.adapter.prometheus.client import PrometheusClient
from podscaler.adapter.prometheus.connection import PrometheusSettings
from podscaler.adapter.prometheus.responses import PrometheusError, PromSeries
from podscaler.base.clock import SystemClock
from podscaler.base.errors import UsageError
from podscaler.base.version import __version__
from podscaler.kube.transport import http_transport
from podscaler.simulation.files.loads import RangeRequest

POINTS_MAX = 11_000
"""The most points of one response."""
_TIMEOUT_S = 120.0
_USER_AGENT = f"podscaler-simulate/{__version__}"
_FIELD_BY_FLAG = {
    "--prometheus-url": "`url`",
    "--prometheus-ca-file": "`caFile`",
    "--prometheus-token-file": "`tokenFile`",
}
"""The fields of a scenario, by the adapter's flags that errors of a connection name."""


def read(request: RangeRequest) -> Sequence[tuple[float, str]]:
    """The instants (seconds since the epoch) and values of the one series of a query. The call blocks.

    Raises:
        UsageError: Prometheus cannot be reached, rejects the query, or has no series or several.
    """
    return asyncio.run(_read_spans(request))


async def _read_spans(request: RangeRequest) -> Sequence[tuple[float, str]]:
    """The points of all range queries, one after the other. Raises UsageError."""
    async with _connected(request) as client:
        points: list[tuple[float, str]] = []
        for start_s, end_s in spans(request):
            try:
                series = await client.query_range(request.query, start_s=start_s, end_s=end_s, step_s=request.step_s)
            except PrometheusError as error:
                raise UsageError(f"the query {request.query} failed: {error}") from None
            points += _points_of(series, request)
    if not points:
        raise UsageError(f"the query {request.query} has no series {_span_text(request)}")
    return points


@asynccontextmanager
async def _connected(request: RangeRequest) -> AsyncIterator[PrometheusClient]:
    """A client of Prometheus. Raises UsageError with the name of the field that is wrong."""
    clock = SystemClock()
    settings = PrometheusSettings(request.url, ca_file=request.ca_file, token_file=request.token_file)
    try:
        config = await asyncio.to_thread(connection.to_config, settings, clock)
    except UsageError as error:
        raise UsageError(_by_field(str(error))) from None
    transport = await http_transport.connect(config, user_agent=_USER_AGENT)
    try:
        yield PrometheusClient(transport, clock, timeout_s=_TIMEOUT_S, uses_post=True)
    finally:
        await transport.close()


def _by_field(message: str) -> str:
    """The message with the field of a scenario in place of the adapter's flag."""
    for flag, field in _FIELD_BY_FLAG.items():
        message = message.replace(flag, field)
    return message


def spans(request: RangeRequest) -> list[tuple[float, float]]:
    """The spans (start and end, seconds since the epoch) of queries with at most POINTS_MAX points each."""
    point_count = int((request.end_s - request.start_s) / request.step_s) + 1
    query_spans = []
    for first_index in range(0, point_count, POINTS_MAX):
        last_index = min(first_index + POINTS_MAX, point_count) - 1
        start_s = request.start_s + first_index * request.step_s
        query_spans.append((start_s, request.start_s + last_index * request.step_s))
    return query_spans


def _points_of(series: Sequence[PromSeries], request: RangeRequest) -> Sequence[tuple[float, str]]:
    """The points (instant in seconds, value as text) of the only series; empty if there is none. Raises UsageError."""
    if len(series) > 1:
        raise UsageError(f"the query {request.query} has {len(series)} series; aggregate them to one, as with sum()")
    return series[0].points if series else []


def _span_text(request: RangeRequest) -> str:
    start, end = (datetime.fromtimestamp(at_s, UTC).isoformat() for at_s in (request.start_s, request.end_s))
    return f"between {start} and {end}"
