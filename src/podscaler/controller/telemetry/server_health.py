"""Detects faults of the API server, so that a fault that makes all syncs fail is logged once, not by each sync.

A ServerHealth wraps the transport of the controller's client and, with leader election, of the client of Leases. Rules:

1. The server is unreachable when a request got no response, and no other got one since that one began.
2. Credentials are rejected when a response is 401. Responses of metrics APIs do not count: other servers may send them.
3. A fault ends when a request that began after the last failure gets another response.
4. A log line reports the beginning of a fault, and one its end, with its length and the number of syncs that failed. A
   fault that recurs within FLAP_S is not reported until it has lasted for FLAP_S itself, unless the last line is
   REPEAT_S old. While a fault lasts, its line is repeated every REPEAT_S.
5. Nothing is reported before the first response that accepts the credentials: until then
   `podscaler.controller.server.api_server_wait` reports.

A new kind of fault: an entry of `ServerHealth._faults`, and a method that notes it.
"""

import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry, Gauge

from podscaler.base.clock import Clock
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Request, Response, ResponseStream, Transport, TransportError

log = logging.getLogger(__name__)

FLAP_S = 5.0
"""A fault that recurs within this time is reported only once it has lasted as long."""
REPEAT_S = 300.0
"""How often the line about a fault that lasts is repeated."""
AFTERMATH_S = 1.0
"""How long after a fault a sync may still end with an error because of it."""
METRICS_API_PATHS = ("/apis/metrics.k8s.io/", "/apis/custom.metrics.k8s.io/", "/apis/external.metrics.k8s.io/")


class _Fault:
    """One kind of fault (unreachable, unauthorized); instants are seconds of the monotonic clock.

    Args:
        gauge: set to 1 while the fault lasts.
    """

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._failed_s = -math.inf
        self.is_active = False
        self.is_reported = False
        self.began_s = -math.inf
        self.ended_s = -math.inf
        self.reported_s = -math.inf
        self.failed_syncs = 0
        gauge.set(0)

    def note_failure(self, now_s: float) -> bool:
        """A request failed because of the fault; returns whether to log it, for the first time or again."""
        self._failed_s = now_s
        if not self.is_active:
            self.is_active, self.began_s, self.failed_syncs, self.is_reported = True, now_s, 0, False
            self._gauge.set(1)
        recurs_late, has_lasted = self.began_s - self.ended_s >= FLAP_S, now_s - self.began_s >= FLAP_S
        is_news = not self.is_reported and (recurs_late or has_lasted)  # rule 4
        if is_news or now_s - self.reported_s >= REPEAT_S:
            self.is_reported, self.reported_s = True, now_s
            return True
        return False

    def note_success(self, begun_s: float, now_s: float) -> bool:
        """A request that began at `begun_s` did not fail because of the fault; returns whether to log its end."""
        if not self.is_active or begun_s < self._failed_s:
            return False
        self.is_active, self.ended_s = False, now_s
        self._gauge.set(0)
        return self.is_reported

    def end_text(self) -> str:
        """The fault's length, and the number of syncs that failed: `after 3.2 s in which 7 syncs failed`."""
        syncs = "1 sync" if self.failed_syncs == 1 else f"{self.failed_syncs} syncs"
        return f"after {self.ended_s - self.began_s:.1f} s in which {syncs} failed"


class ServerHealth:
    """The state of the API server as the requests of one controller show it, by the module's rules.

    Args:
        client: the controller's client; its requests are observed from now on.
    """

    def __init__(self, client: Client, clock: Clock, registry: CollectorRegistry) -> None:
        self._server = f"the API server {client.server}"
        self._caller = client.credentials_text  # the origin and the kind of the credentials
        self._clock = clock
        gauge = Gauge(
            "podscaler_api_server_fault",
            "1 while the API server does not answer (unreachable), or does not accept the credentials (unauthorized).",
            ["fault"],
            registry=registry,
        )
        self._unreachable = _Fault(gauge.labels("unreachable"))
        self._unauthorized = _Fault(gauge.labels("unauthorized"))
        self._faults = (self._unreachable, self._unauthorized)
        self._last_response_s = -math.inf
        self._was_accepted = False
        self.observe(client)

    def observe(self, client: Client) -> None:
        """Observe the requests of one more client; call it before the first."""
        client.wrap_transport(lambda transport: _ObservedTransport(transport, self, self._clock))

    @property
    def explains_failures(self) -> bool:
        """Whether errors of syncs are due to a fault that lasts, or ended less than AFTERMATH_S ago."""
        oldest_s = self._clock.monotonic_s() - AFTERMATH_S
        return any(fault.is_active or fault.ended_s >= oldest_s for fault in self._faults)

    def failure_log_level(self, level: int) -> int:
        """The log level for a failure of one sync: DEBUG while a fault explains it, else `level`."""
        return logging.DEBUG if self.explains_failures else level

    def count_failed_sync(self) -> None:
        """Count a sync that failed, in each fault that lasts; none in the aftermath of one."""
        for fault in self._faults:
            if fault.is_active:
                fault.failed_syncs += 1

    def unready(self) -> list[str]:
        """The reason why the controller is not ready because of its credentials; empty if they are accepted."""
        return [self._unauthorized_text()] if self._unauthorized.is_active else []

    def faults(self) -> list[str]:
        """The faults that last, a sentence each; empty: the server responds and accepts the credentials."""
        unreachable = [f"{self._server} does not respond"] if self._unreachable.is_active else []
        return [*unreachable, *self.unready()]

    def note_no_response(self, begun_s: float, error: TransportError) -> None:
        """A request got no response."""
        if not self._was_accepted or self._last_response_s > begun_s:
            return
        if self._unreachable.note_failure(self._clock.monotonic_s()):
            log.warning(
                "%s of %s does not answer: %s; syncs fail until it does", self._server, self._caller, error.cause
            )

    def note_response(self, begun_s: float, path: str, status: int) -> None:
        """A request got a response."""
        now_s = self._clock.monotonic_s()
        self._last_response_s = now_s
        if self._unreachable.note_success(begun_s, now_s):
            log.info("%s answers again, %s", self._server, self._unreachable.end_text())
        if path.startswith(METRICS_API_PATHS):
            return
        if status == 401:
            self._note_unauthorized(now_s)
        elif status < 500:  # a server that fails has not checked the credentials
            self._was_accepted = True
            if self._unauthorized.note_success(begun_s, now_s):
                log.info(
                    "%s accepts the credentials of %s again, %s",
                    self._server,
                    self._caller,
                    self._unauthorized.end_text(),
                )

    def _note_unauthorized(self, now_s: float) -> None:
        """A response was 401: log it, unless no request was accepted before, or it was logged already (rule 4)."""
        if not self._was_accepted:
            return
        if self._unauthorized.note_failure(now_s):
            log.error("%s", self._unauthorized_text())

    def _unauthorized_text(self) -> str:
        """The log line for credentials that the API server rejects."""
        return (
            f"{self._server} does not accept the credentials of {self._caller} any more (401 Unauthorized): nothing is "
            "scaled until it does; renew them"
        )


class _ObservedTransport:
    """A transport that reports to a ServerHealth how each request ended."""

    def __init__(self, transport: Transport, health: ServerHealth, clock: Clock) -> None:
        self._transport = transport
        self._health = health
        self._clock = clock

    @property
    def server(self) -> str:
        return self._transport.server

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises TransportError."""
        begun_s = self._clock.monotonic_s()
        try:
            response = await self._transport.request(request)
        except TransportError as error:
            self._health.note_no_response(begun_s, error)
            raise
        self._health.note_response(begun_s, request.path, response.status)
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        """As in Transport; entering and reading may raise TransportError. A later failure does not count."""
        begun_s, opened = self._clock.monotonic_s(), False
        try:
            async with self._transport.stream(request) as stream:
                opened = True
                self._health.note_response(begun_s, request.path, stream.status)
                yield stream
        except TransportError as error:
            if not opened:
                self._health.note_no_response(begun_s, error)
            raise

    async def close(self) -> None:
        await self._transport.close()
