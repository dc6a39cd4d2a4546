"""A transport that makes spans of the requests of a sync, and counts them.

Goes around the client's transport where traces are wanted (`podscaler.cli.options.tracing`), and is not imported
elsewhere. A request is traced if the code that makes it runs within a span that is recorded: what the controller does
beside its syncs (watches, events, histories, leases) is not. The server is told the trace, as W3C Trace Context says.

Source: OpenTelemetry's semantic conventions for HTTP clients.
"""

import re
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from podscaler.kube.transport.transport import Request, Response, ResponseStream, Transport

METRICS_GROUP = re.compile(r"/apis/((?:custom\.|external\.)?metrics\.k8s\.io)/[^/]+/")
OTHER = "API request"
_NAMES = {
    ("GET", "scale"): "scale read",
    ("PUT", "scale"): "scale write",
    ("PUT", "status"): "status write",
}
_PROPAGATOR = TraceContextTextMapPropagator()


@dataclass(slots=True)
class Count:
    """How many requests were sent so far."""

    requests: int = 0


COUNT: ContextVar[Count | None] = ContextVar("requests", default=None)
"""Where the requests of the running sync are counted; None: nowhere."""


def name_of(request: Request) -> str:
    """What a request is for: `metrics query`, `scale read`, `scale write`, `status write`, or OTHER."""
    if METRICS_GROUP.match(request.path):
        return "metrics query"
    return _NAMES.get((request.method, request.path.rpartition("/")[2]), OTHER)


class TracedTransport:
    """See the module.

    Args:
        transport: where requests go; closed with this one.
        tracer: makes the spans.
    """

    def __init__(self, transport: Transport, tracer: Tracer) -> None:
        self._transport = transport
        self._tracer = tracer

    @property
    def server(self) -> str:
        """As in Transport."""
        return self._transport.server

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises TransportError."""
        if not trace.get_current_span().is_recording():
            return await self._transport.request(request)
        count = COUNT.get()
        if count is not None:
            count.requests += 1
        with self._tracer.start_as_current_span(
            name_of(request),
            kind=SpanKind.CLIENT,
            attributes=_attributes(request, self.server),
            record_exception=False,
        ) as span:
            answer = await self._transport.request(_with_trace(request))
            _tell(span, answer)
            return answer

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """As in Transport: without a span, as it may last for hours."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """As in Transport."""
        await self._transport.close()


def _attributes(request: Request, server: str) -> dict[str, str]:
    """No query and no body: selectors and objects are not for the traces' readers."""
    found = {"http.request.method": request.method, "url.path": request.path, "server.address": server}
    group = METRICS_GROUP.match(request.path)
    return found | ({"podscaler.metrics.api": group.group(1)} if group else {})


def _with_trace(request: Request) -> Request:
    headers = dict(request.headers)
    _PROPAGATOR.inject(headers)
    return replace(request, headers=headers)


def _tell(span: Span, answer: Response) -> None:
    span.set_attribute("http.response.status_code", answer.status)
    if answer.status >= 400:
        span.set_status(StatusCode.ERROR, f"status {answer.status}")
