"""Wraps a transport so that each request of a sync is an OpenTelemetry span, and counts them.

Only `podscaler.cli.options.tracing` imports it, if traces are enabled. Another name of a span: `name_of`. A request is
traced if it is made within a span that is recorded: what the controller does besides its syncs (watches, events,
histories, leases) is not. The request carries the W3C Trace Context.

Source: OpenTelemetry's semantic conventions for HTTP clients.
"""

import re
from contextvars import ContextVar
from dataclasses import dataclass, replace

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from podscaler.kube.transport.transport import Request, Response, Transport, WrappedTransport

METRICS_GROUP = re.compile(r"/apis/((?:custom\.|external\.)?metrics\.k8s\.io)/[^/]+/")
OTHER = "API request"
_NAME_BY_METHOD_AND_SUBRESOURCE = {
    ("GET", "scale"): "scale read",
    ("PUT", "scale"): "scale write",
    ("PUT", "status"): "status write",
}
_PROPAGATOR = TraceContextTextMapPropagator()


@dataclass(slots=True)
class RequestCount:
    """The number of requests sent so far."""

    requests: int = 0


REQUEST_COUNT: ContextVar[RequestCount | None] = ContextVar("requests", default=None)
"""The counter of the running sync's requests; None if requests are not counted."""


def name_of(request: Request) -> str:
    """What a request is for: `metrics query`, `scale read`, `scale write`, `status write`, or OTHER."""
    if METRICS_GROUP.match(request.path):
        return "metrics query"
    return _NAME_BY_METHOD_AND_SUBRESOURCE.get((request.method, request.path.rpartition("/")[2]), OTHER)


class TracedTransport(WrappedTransport):
    """Wraps a transport with spans; streams have none, as they may last for hours.

    Args:
        transport: sends the requests; closed with this one.
        tracer: makes the spans.
    """

    def __init__(self, transport: Transport, tracer: Tracer) -> None:
        super().__init__(transport)
        self._tracer = tracer

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises TransportError."""
        if not trace.get_current_span().is_recording():
            return await self._transport.request(request)
        count = REQUEST_COUNT.get()
        if count is not None:
            count.requests += 1
        with self._tracer.start_as_current_span(
            name_of(request),
            kind=SpanKind.CLIENT,
            attributes=_attributes(request, self.server),
            record_exception=False,
        ) as span:
            response = await self._transport.request(_with_trace(request))
            _set_status(span, response)
            return response


def _attributes(request: Request, server: str) -> dict[str, str]:
    """The span's attributes, without query and body: users read traces who may not read selectors and objects."""
    attributes = {"http.request.method": request.method, "url.path": request.path, "server.address": server}
    group = METRICS_GROUP.match(request.path)
    return attributes | ({"podscaler.metrics.api": group.group(1)} if group else {})


def _with_trace(request: Request) -> Request:
    """The request with the headers that pass on the current trace."""
    headers = dict(request.headers)
    _PROPAGATOR.inject(headers)
    return replace(request, headers=headers)


def _set_status(span: Span, response: Response) -> None:
    """Note the status code of the response in the span; 400 and above count as an error."""
    span.set_attribute("http.response.status_code", response.status)
    if response.status >= 400:
        span.set_status(StatusCode.ERROR, f"status {response.status}")
