"""Whether the API server answers, and accepts our credentials: faults that concern all syncs, reported once for all.

The loop puts a ServerHealth between its client and the network, the command between the client of leases and the
network. Without it each of some hundred autoscalers would log the same failure. Rules:

1. The server is away when a request got no answer, and no other was answered since that one was begun.
2. Credentials are refused when an answer is 401. Answers about metrics do not count: other servers may give them.
3. A fault ends when a request is answered otherwise that was begun after the last failure.
4. The log has a line when a fault begins, and one when it ends, with its length and the number of syncs that failed.
   One that comes back within FLAP_S is not news until it has lasted for FLAP_S itself. While a fault lasts its line is
   repeated every REPEAT_S.
5. Nothing is reported before the first answer: `podscaler.controller.server.api_server_wait` waits for that, with words
   of its own.
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
REPEAT_S = 300.0
AFTERMATH_S = 1.0
"""How long after a fault syncs may still report what failed in it."""
METRICS = ("/apis/metrics.k8s.io/", "/apis/custom.metrics.k8s.io/", "/apis/external.metrics.k8s.io/")


class _Fault:
    """One kind of fault, by instants of the monotonic clock.

    Args:
        gauge: 1 while it lasts.
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
        """Record that a request failed by it; whether that is to be reported, for the first time or again."""
        self._failed_s = now_s
        if not self.is_active:
            self.is_active, self.began_s, self.failed_syncs, self.is_reported = True, now_s, 0, False
            self._gauge.set(1)
        is_news = max(self.began_s - self.ended_s, now_s - self.began_s) >= FLAP_S and not self.is_reported
        if is_news or now_s - self.reported_s >= REPEAT_S:
            self.is_reported, self.reported_s = True, now_s
            return True
        return False

    def note_success(self, begun_s: float, now_s: float) -> bool:
        """Record that a request begun at `begun_s` did not fail by it; whether an end is to be reported."""
        if not self.is_active or begun_s < self._failed_s:
            return False
        self.is_active, self.ended_s = False, now_s
        self._gauge.set(0)
        return self.is_reported

    def described(self) -> str:
        """How long it lasted, and what it cost."""
        syncs = "1 sync" if self.failed_syncs == 1 else f"{self.failed_syncs} syncs"
        return f"after {self.ended_s - self.began_s:.1f} s in which {syncs} failed"


class ServerHealth:
    """See the module's rules.

    Args:
        client: the controller's; its requests are observed from now on.
        clock: the instants of requests.
        registry: of the metric.
    """

    def __init__(self, client: Client, clock: Clock, registry: CollectorRegistry) -> None:
        self._server = f"the API server {client.server}"
        self._caller = client.caller
        self._clock = clock
        gauge = Gauge(
            "podscaler_api_server_fault",
            "1 while the API server does not answer (unreachable), or does not accept the credentials (unauthorized).",
            ["fault"],
            registry=registry,
        )
        self._away = _Fault(gauge.labels("unreachable"))
        self._refused = _Fault(gauge.labels("unauthorized"))
        self._answered_s = -math.inf
        self._is_known = False
        self.observe(client)

    def observe(self, client: Client) -> None:
        """Have the requests of one more client observed; call it before the first."""
        client.wrap_transport(lambda transport: _ObservedTransport(transport, self, self._clock))

    @property
    def explains_failures(self) -> bool:
        """Whether syncs fail because of a fault that the log has already, or may still report that they did."""
        oldest_s = self._clock.monotonic_s() - AFTERMATH_S
        return any(fault.is_active or fault.ended_s >= oldest_s for fault in (self._away, self._refused))

    def level(self, level: int) -> int:
        """The log level for a failure of one sync: DEBUG while a fault explains it, else `level`."""
        return logging.DEBUG if self.explains_failures else level

    def count_sync(self) -> None:
        """A sync failed while `explains_failures`."""
        for fault in (self._away, self._refused):
            fault.failed_syncs += fault.is_active

    def unready(self) -> list[str]:
        """Why the controller cannot work with these credentials; empty where they are accepted."""
        return [self._refusal()] if self._refused.is_active else []

    def failed(self, begun_s: float, error: TransportError) -> None:
        """A request got no answer."""
        if not self._is_known or self._answered_s > begun_s:
            return
        if self._away.note_failure(self._clock.monotonic_s()):
            log.warning(
                "%s of %s does not answer: %s; syncs fail until it does", self._server, self._caller, error.cause
            )

    def answered(self, begun_s: float, path: str, status: int) -> None:
        """A request was answered."""
        now_s = self._clock.monotonic_s()
        self._answered_s = now_s
        if self._away.note_success(begun_s, now_s):
            log.info("%s answers again, %s", self._server, self._away.described())
        if path.startswith(METRICS):
            return
        if status == 401:
            self._refuse(now_s)
        elif status < 500:
            self._is_known = True
            if self._refused.note_success(begun_s, now_s):
                log.info(
                    "%s accepts the credentials of %s again, %s",
                    self._server,
                    self._caller,
                    self._refused.described(),
                )

    def _refuse(self, now_s: float) -> None:
        if not self._is_known:
            return
        if self._refused.note_failure(now_s):
            log.error("%s", self._refusal())

    def _refusal(self) -> str:
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
        """As in Transport."""
        return self._transport.server

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises TransportError."""
        begun_s = self._clock.monotonic_s()
        try:
            answer = await self._transport.request(request)
        except TransportError as error:
            self._health.failed(begun_s, error)
            raise
        self._health.answered(begun_s, request.path, answer.status)
        return answer

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        """As in Transport; entering and reading may raise TransportError. One that breaks later tells nothing."""
        begun_s, opened = self._clock.monotonic_s(), False
        try:
            async with self._transport.stream(request) as stream:
                opened = True
                self._health.answered(begun_s, request.path, stream.status)
                yield stream
        except TransportError as error:
            if not opened:
                self._health.failed(begun_s, error)
            raise

    async def close(self) -> None:
        """As in Transport."""
        await self._transport.close()
