"""The API server as something that can be started and stopped.

Called by the wiring of `up`. One HTTPS port; every request becomes one call of `dispatch`, and whatever comes out (an
answer, a refusal, a bug of ours) one response.
"""

import asyncio
import errno
import logging
import socket
import ssl
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from podscaler.api.resource.resources import Resource
from podscaler.base import http_server, supervision
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.controlplane.admission import escalation
from podscaler.controlplane.aggregator.layer import Aggregation
from podscaler.controlplane.apiserver import deadlines
from podscaler.controlplane.apiserver.audit import Audit
from podscaler.controlplane.apiserver.auth_filter import HEALTH_PATHS, Doors
from podscaler.controlplane.apiserver.discovery.discovery import DiscoveryDocuments
from podscaler.controlplane.apiserver.discovery.openapi_documents import OpenApiDocuments
from podscaler.controlplane.apiserver.discovery.openapi_pages import OpenApiPages
from podscaler.controlplane.apiserver.dispatch import Dispatcher, Exchange
from podscaler.controlplane.apiserver.handlers import scales, subresources
from podscaler.controlplane.apiserver.handlers.reviews import REVIEWS
from podscaler.controlplane.apiserver.handlers.token_requests import TOKEN_REQUEST
from podscaler.controlplane.apiserver.health import Check
from podscaler.controlplane.apiserver.http import http_errors, negotiation, responses, streaming_response
from podscaler.controlplane.apiserver.http.bodies import BodyKind, Kinds
from podscaler.controlplane.apiserver.http.open_sessions import OpenSessions
from podscaler.controlplane.apiserver.http.resource_request import Plane, kind_of
from podscaler.controlplane.apiserver.http.response_encoder import Shaper
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.routes import Routes
from podscaler.controlplane.apiserver.non_resource_handlers import Pages, Upkeep
from podscaler.controlplane.apiserver.request_metrics import APIServerMetrics
from podscaler.controlplane.apiserver.streaming.streams import Streams
from podscaler.controlplane.auth import policy_index
from podscaler.controlplane.auth.account_tokens import AccountTokens
from podscaler.controlplane.auth.audit_log import AuditLog
from podscaler.controlplane.auth.rules import Authorizer
from podscaler.controlplane.auth.tokens import Authenticator
from podscaler.controlplane.controllers.cluster.custom_resources import CustomKinds
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.pod_connections import PodConnections
from podscaler.controlplane.registry.providers import MetricApis, PodLogs, VirtualObjects

GZIP_MIN_BYTES = 128 * 1024
STOP_TIMEOUT_S = 5.0
BACKLOG = 1024
PORT_MAX = 65_535

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerParts:
    """What the server shows of other parts of the control plane; each may be missing.

    Attributes:
        virtual: providers of objects that are not stored, by `Resource.key`.
        logs: where containers' logs are read.
        connections: where exec, attach and port-forward lead.
        checks: health checks by name; each returns why it fails, or an empty text.
        metrics: custom and external metrics.
        accounts: tokens of service accounts; the authenticator knows them too.
        anonymous_health: whether everyone may ask for /healthz, /livez and /readyz.
        audit_log: where requests are accounted for.
        aggregation: who else serves groups and versions.
    """

    virtual: Mapping[str, VirtualObjects] = field(default_factory=dict)
    logs: PodLogs | None = None
    connections: PodConnections | None = None
    checks: Mapping[str, Check] = field(default_factory=dict)
    metrics: MetricApis | None = None
    accounts: AccountTokens | None = None
    anonymous_health: bool = False
    audit_log: AuditLog | None = None
    aggregation: Aggregation | None = None


NOBODY = ServerParts()


class ApiServer:
    """Serves `objects` over HTTP.

    Args:
        objects: what is served.
        resources: the records of all kinds, stored or not; `objects` knows the stored ones.
        authenticator: knows users by their tokens.
        tls: TLS settings; None serves plain HTTP, for tests.
        clock: for ages in Tables and times in options.
        neighbours: what else there is to show.
    """

    def __init__(
        self,
        objects: Objects,
        resources: Iterable[Resource],
        *,
        authenticator: Authenticator,
        tls: ssl.SSLContext | None,
        clock: Clock,
        neighbours: ServerParts = NOBODY,
    ) -> None:
        records = tuple(resources)
        routes = Routes(records)
        discovery = DiscoveryDocuments(routes, REVIEWS, neighbours.metrics, neighbours.aggregation)
        authorizer = Authorizer(policy_index.watch_policy(objects, [each.key for each in records if each.stored]))
        plane = Plane(
            objects,
            clock,
            _kinds(routes),
            neighbours.virtual,
            neighbours.logs,
            Shaper(),
            OpenSessions(clock),
            connections=neighbours.connections,
            metrics=neighbours.metrics,
            accounts=neighbours.accounts,
            authorizer=authorizer,
            aggregation=neighbours.aggregation,
        )
        documents = OpenApiDocuments(records, [review.offer for review in REVIEWS], routes, neighbours.metrics)
        openapi_pages = OpenApiPages(documents, lambda: routes.generation, neighbours.aggregation)
        self._metrics = APIServerMetrics(routes.serves, objects.counts)
        pages = Pages(
            routes,
            discovery,
            openapi=openapi_pages,
            checks=neighbours.checks,
            upkeep=Upkeep(objects.compact, self._metrics),
            accounts=neighbours.accounts,
        )
        self._streams = Streams()
        self._sessions = plane.sessions
        escalation.guard(objects, authorizer)
        self._dispatcher = Dispatcher(
            plane,
            routes,
            pages=pages,
            streams=self._streams,
            doors=Doors(authenticator, authorizer, HEALTH_PATHS if neighbours.anonymous_health else frozenset()),
        )
        self._custom_kinds = CustomKinds(objects, routes, clock)
        self._custom_kinds.listen_for_ends(self._streams.end)
        self._has_custom_kinds = any(record.key == CustomKinds.RESOURCE_KEY for record in records)
        self._background: asyncio.Task[None] | None = None
        self._clock = clock
        self._discovery = discovery
        self._audit_log = neighbours.audit_log
        self._tls = tls
        self._runner: web.ServerRunner | None = None

    @property
    def group_versions(self) -> tuple[tuple[str, str], ...]:
        """Group and version of all that is served now."""
        return self._discovery.group_versions

    @property
    def custom_kinds(self) -> CustomKinds:
        """The kinds that CustomResourceDefinitions make."""
        return self._custom_kinds

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port (which is chosen by the system where `port` is 0).

        Raises:
            UsageError: the address cannot be listened on.
        """
        if self._has_custom_kinds:
            self._custom_kinds.load()
        listener = _listener(host, port)
        self._runner = web.ServerRunner(http_server.Server(self._respond), shutdown_timeout=STOP_TIMEOUT_S)
        await self._runner.setup()
        await http_server.Site(self._runner, listener, self._tls, backlog=BACKLOG).start()
        if self._has_custom_kinds:
            work = supervision.keep_running(CustomKinds.name, self._custom_kinds.run, self._clock)
            self._background = asyncio.create_task(work, name=CustomKinds.name)
        bound: int = listener.getsockname()[1]
        return bound

    async def stop(self) -> None:
        """End watches, let running requests finish, close. Does nothing if it was not started."""
        if self._background is not None:
            self._background.cancel()
            await asyncio.gather(self._background, return_exceptions=True)
            self._background = None
        await self._streams.stop()
        await self._sessions.stop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        exchange = Exchange(request, [])
        began_s = time.perf_counter()
        response = await self._audited(exchange)
        self._metrics.observe(exchange.wanted, exchange.version, response.status, time.perf_counter() - began_s)
        return response

    async def _audited(self, exchange: Exchange) -> web.StreamResponse:
        request = exchange.request
        if self._audit_log is None:
            return (await self._answer(exchange))[0]
        audit = Audit(self._audit_log, exchange, self._clock)
        request[streaming_response.BEGINNING] = streaming_response.Beginning(audit.started)
        try:
            response, error = await self._answer(exchange)
        except asyncio.CancelledError:
            await audit.broke_off()
            raise
        await audit.complete(response.status, error)
        return response

    async def _answer(self, exchange: Exchange) -> tuple[web.StreamResponse, StatusError | None]:
        """The response (where it is a stream, at its end), and the refusal that it is, if it is one."""
        request, refused = exchange.request, None
        try:
            deadlines.check(request.raw_path)
            outcome = await self._dispatcher.respond(exchange)
        except StatusError as error:
            refused = error
            outcome = await _refusal(request, error)
        except ConnectionError:  # the client has gone: nobody reads this
            return web.Response(status=400), None
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            text = "This request caused the API server to fail. Look in its log for details."
            refused = http_errors.internal(text)
            outcome = await _refusal(request, refused)
        response = await _finished(exchange, outcome) if isinstance(outcome, EncodedResponse) else outcome
        return response, refused


async def _refusal(request: web.BaseRequest, error: StatusError) -> EncodedResponse:
    return await responses.refusal(error, negotiation.refusal_form(request.headers.get("Accept", "")))


async def _finished(exchange: Exchange, answer: EncodedResponse) -> web.Response:
    request = exchange.request
    headers = {"Content-Type": answer.content_type, "Cache-Control": "no-cache, private", **answer.headers}
    body = answer.body
    is_packed = "Content-Encoding" in headers
    if body and not is_packed and answer.content_type == "application/json" and _wants_indented(exchange):
        body = responses.indented(body)
    if not is_packed and len(body) > GZIP_MIN_BYTES and negotiation.takes_gzip(request.headers):
        body = await asyncio.to_thread(_gzipped, body)
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    response = web.Response(body=body, status=answer.status, headers=headers)
    responses.add_warnings(response, exchange.warnings)
    return response


def _wants_indented(exchange: Exchange) -> bool:
    """Whether a person reads the answer: they say so, or use a browser or curl."""
    asked = exchange.query.flag("pretty")
    if asked is not None:
        return asked
    return exchange.request.headers.get("User-Agent", "").startswith(("curl", "Wget", "Mozilla/5.0"))


def _gzipped(body: bytes) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(body) + packer.flush()


def _kinds(routes: Routes) -> Kinds:
    """Every kind that a body may be."""
    kinds: list[BodyKind] = [kind_of(served) for served in routes.all_resources()]
    kinds += [scales.SCALE, *scales.OLD_SCALES, subresources.BINDING, subresources.EVICTION, TOKEN_REQUEST]
    return {(kind.api_version, kind.kind): kind for kind in kinds}


def _listener(host: str, port: int) -> socket.socket:
    if not 0 <= port <= PORT_MAX:
        raise UsageError(f"{port} is no port: it must be between 0 and {PORT_MAX}")
    try:
        return socket.create_server((host, port), backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"port {port} of {host} is in use: stop what uses it or choose another") from error
        raise UsageError(f"cannot listen on port {port} of {host}: {error.strerror or error}") from error
