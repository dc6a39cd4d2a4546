"""Counts the requests that the controller sends, with their results and durations, as Prometheus metrics.

`podscaler controller` and the autoscaler of `podscaler up` call `install` for their client. A watch is counted when its
response begins, and has no duration, as in client-go. A further metric: in ClientRequestMetrics, counted by
CountedTransport.

Source: k8s.io/component-base/metrics/prometheus/restclient (names, labels, buckets).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram

from podscaler.base.clock import Clock
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Request, Response, ResponseStream, Transport, TransportError

BUCKETS_S = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
NO_RESPONSE = "<error>"
"""The label `code` of a request without a response, as client-go sets it."""


class ClientRequestMetrics:
    """The metrics `rest_client_requests_total` and `rest_client_request_duration_seconds`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        requests = Counter(
            "rest_client_requests",
            "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
            ["code", "method", "host"],
            registry=registry,
        )
        durations_s = Histogram(
            "rest_client_request_duration_seconds",
            "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
            ["verb", "host"],
            buckets=BUCKETS_S,
            registry=registry,
        )
        # cached: looking up the labels costs more than counting
        self._counter = cache(requests.labels)
        self._histogram = cache(durations_s.labels)

    def count(self, code: str, method: str, host: str) -> None:
        """Count a request by the status code of its response, or NO_RESPONSE."""
        self._counter(code, method, host).inc()

    def observe(self, verb: str, host: str, duration_s: float) -> None:
        """Record the duration of a request."""
        self._histogram(verb, host).observe(duration_s)


class CountedTransport:
    """A transport that counts and measures the requests that it passes on.

    Args:
        transport: sends the requests; closed with this one.
        metrics: counts the requests.
        clock: for their durations.
    """

    def __init__(self, transport: Transport, metrics: ClientRequestMetrics, clock: Clock) -> None:
        self._transport = transport
        self._metrics = metrics
        self._clock = clock
        self._host = transport.server.partition("://")[2].partition("/")[0]

    @property
    def server(self) -> str:
        return self._transport.server

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises TransportError."""
        began_s, code = self._clock.monotonic_s(), NO_RESPONSE
        try:
            response = await self._transport.request(request)
            code = str(response.status)
            return response
        finally:  # a cancelled request has no response either
            self._metrics.observe(request.method, self._host, self._clock.monotonic_s() - began_s)
            self._metrics.count(code, request.method, self._host)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        """As in Transport; entering and reading may raise TransportError."""
        opened = False
        try:
            async with self._transport.stream(request) as stream:
                opened = True
                self._metrics.count(str(stream.status), request.method, self._host)
                yield stream
        except TransportError:
            if not opened:
                self._metrics.count(NO_RESPONSE, request.method, self._host)
            raise

    async def close(self) -> None:
        await self._transport.close()


def install(client: Client, registry: CollectorRegistry, clock: Clock) -> None:
    """Make a client count all its requests from now on; called once for a registry, before the first request."""
    metrics = ClientRequestMetrics(registry)
    client.wrap_transport(lambda transport: CountedTransport(transport, metrics, clock))
