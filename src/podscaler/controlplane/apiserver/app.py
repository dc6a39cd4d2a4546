"""Starts and stops the API server: wires its parts, listens on one HTTPS port, responds to every request.

`podscaler.cli.up.control_plane` creates an `ApiServer`. A request goes from `ApiServer._respond` (metrics, audit event)
to `dispatch.Dispatcher.respond` (authentication, routing, handler); API errors and unexpected exceptions become
responses here. To add a part of the control plane that the server exposes: add a field to `ServerParts`.
"""

import asyncio
import errno
import logging
import socket
import ssl
import time
import zlib
from collections.abc import Iterable
from dataclasses import replace

from aiohttp import web

from podscaler.api.openapi.openapi import CreateOnly
from podscaler.api.resource.resources import Resource
from podscaler.base import http_server, supervision
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.controlplane.admission import rbac_escalation
from podscaler.controlplane.apiserver.audit import Audit
from podscaler.controlplane.apiserver.auth_filter import HEALTH_PATHS, AuthFilter
from podscaler.controlplane.apiserver.discovery.discovery import DiscoveryDocuments
from podscaler.controlplane.apiserver.discovery.openapi_v3 import OpenApiV3
from podscaler.controlplane.apiserver.dispatch import Dispatcher, RequestContext
from podscaler.controlplane.apiserver.handlers import scales, subresources
from podscaler.controlplane.apiserver.handlers.reviews import REVIEWS
from podscaler.controlplane.apiserver.handlers.token_requests import TOKEN_REQUEST
from podscaler.controlplane.apiserver.http import http_errors, negotiation, responses, streaming_response
from podscaler.controlplane.apiserver.http.open_sessions import OpenSessions
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind, Kinds
from podscaler.controlplane.apiserver.http.resource_request import NO_PARTS, ServerContext, ServerParts, kind_of
from podscaler.controlplane.apiserver.http.response_encoder import ResponseEncoder
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.routes import Routes
from podscaler.controlplane.apiserver.non_resource_handlers import NonResourceHandlers
from podscaler.controlplane.apiserver.request_metrics import APIServerMetrics
from podscaler.controlplane.apiserver.streaming.watch_streams import OpenStreams
from podscaler.controlplane.auth import policy_index
from podscaler.controlplane.auth.authenticator import Authenticator
from podscaler.controlplane.auth.authorizer import Authorizer
from podscaler.controlplane.controllers.cluster.custom_resources import CustomKinds
from podscaler.controlplane.registry.objects import Objects

GZIP_MIN_BYTES = 128 * 1024
"""Larger responses are compressed if the client accepts gzip."""
STOP_TIMEOUT_S = 5.0
"""How long open requests may take at shutdown."""
ACCEPT_BACKLOG = 1024
"""How many connections may wait to be accepted."""
_FASTEST_COMPRESSION = 1
_GZIP_WINDOW_BITS = 31
"""zlib's largest window (15 bits), and 16 for a gzip header."""
PORT_MAX = 65_535

BINDINGS = CreateOnly("", "v1", "bindings", "Binding", subresources.BINDING.message, namespaced=True)
"""The deprecated collection of bindings, as OpenAPI documents describe it."""

_log = logging.getLogger(__name__)


class ApiServer:
    """The API server of one control plane.

    Creating it adds to `objects` the checks of RBAC escalation and, unless `parts` has an authorizer, a policy index.

    Args:
        objects: the stored objects.
        resources: all served kinds; those that are stored must be kinds of `objects`.
        authenticator: maps bearer tokens to users.
        tls: TLS settings; None serves plain HTTP, for tests.
        clock: for ages, times in objects and audit events, and delays.
        parts: the other parts of the control plane that the server exposes.
    """

    def __init__(
        self,
        objects: Objects,
        resources: Iterable[Resource],
        *,
        authenticator: Authenticator,
        tls: ssl.SSLContext | None,
        clock: Clock,
        parts: ServerParts = NO_PARTS,
    ) -> None:
        built_in = tuple(resources)
        routes = Routes(built_in)
        stored_keys = [resource.key for resource in built_in if resource.stored]
        authorizer = parts.authorizer or Authorizer(policy_index.watch_policy(objects, stored_keys))
        rbac_escalation.register(objects, authorizer)
        self._discovery = DiscoveryDocuments(routes, REVIEWS, parts.metrics, parts.aggregation)
        self._sessions = OpenSessions(clock)
        self._metrics = APIServerMetrics(routes.is_served, objects.counts)
        self._streams = OpenStreams()
        self._dispatcher = Dispatcher(
            ServerContext(objects, clock, _body_kinds(routes), parts, ResponseEncoder(), self._sessions, authorizer),
            routes,
            non_resource=NonResourceHandlers(
                routes,
                self._discovery,
                openapi=OpenApiV3(built_in, [BINDINGS, *(review.endpoint for review in REVIEWS)], routes, parts),
                parts=replace(parts, checks={"etcd": objects.why_unavailable, **parts.checks}),
                compact=objects.compact,
                metrics=self._metrics,
            ),
            streams=self._streams,
            auth_filter=AuthFilter(authenticator, authorizer, HEALTH_PATHS if parts.anonymous_health else frozenset()),
        )
        self._custom_kinds = CustomKinds(objects, routes, clock)
        self._custom_kinds.listen_for_ends(self._streams.end)  # a changed definition ends the watches of its kind
        self._has_custom_kinds = any(resource.key == CustomKinds.RESOURCE_KEY for resource in built_in)
        self._custom_kinds_task: asyncio.Task[None] | None = None
        self._clock = clock
        self._audit_log = parts.audit_log
        self._tls = tls
        self._runner: web.ServerRunner | None = None

    @property
    def group_versions(self) -> tuple[tuple[str, str], ...]:
        """Group and version of all built-in and custom resources that are served now, the core group first."""
        return self._discovery.group_versions

    @property
    def custom_kinds(self) -> CustomKinds:
        """Serves the kinds of CustomResourceDefinitions."""
        return self._custom_kinds

    async def start(self, host: str, port: int) -> int:
        """Listen on `host` and `port` (0: a free port); returns the port.

        Raises UsageError if the port is invalid or in use, or `host` is no address of this machine.
        """
        if self._has_custom_kinds:
            self._custom_kinds.load()
        listener = _listen(host, port)
        self._runner = web.ServerRunner(http_server.Server(self._respond), shutdown_timeout=STOP_TIMEOUT_S)
        await self._runner.setup()
        await http_server.Site(self._runner, listener, self._tls, backlog=ACCEPT_BACKLOG).start()
        if self._has_custom_kinds:
            running = supervision.keep_running(CustomKinds.name, self._custom_kinds.run, self._clock)
            self._custom_kinds_task = asyncio.create_task(running, name=CustomKinds.name)
        bound_port: int = listener.getsockname()[1]
        return bound_port

    async def stop(self) -> None:
        """End streams and sessions, let other requests finish within `STOP_TIMEOUT_S`, close; may precede `start`."""
        if self._custom_kinds_task is not None:
            self._custom_kinds_task.cancel()
            await asyncio.gather(self._custom_kinds_task, return_exceptions=True)
            self._custom_kinds_task = None
        await self._streams.stop()
        await self._sessions.stop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """The response to a request, which is measured; the HTTP server calls this for every request."""
        context = RequestContext(request)
        started_s = time.perf_counter()
        response = await self._respond_audited(context)
        duration_s = time.perf_counter() - started_s
        self._metrics.observe(context.attributes, context.version, response.status, duration_s)
        return response

    async def _respond_audited(self, context: RequestContext) -> web.StreamResponse:
        """The response to a request, which is written to the audit log if there is one."""
        if self._audit_log is None:
            response, _ = await self._dispatch(context)
            return response
        audit = Audit(self._audit_log, context, self._clock)
        context.http[streaming_response.STREAM_START] = streaming_response.StreamStart(audit.log_stream_start)
        try:
            response, error = await self._dispatch(context)
        except asyncio.CancelledError:
            await audit.log_disconnection()
            raise
        await audit.log_completion(response.status, error)
        return response

    async def _dispatch(self, context: RequestContext) -> tuple[web.StreamResponse, StatusError | None]:
        """The response (for a stream when it has ended), and the API error in it, None if it has none.

        Every exception but a cancellation becomes a response.
        """
        request, api_error = context.http, None
        try:
            outcome = await self._dispatcher.respond(context)
        except StatusError as error:
            api_error = error
        except ConnectionError:  # the client has disconnected: nobody reads this response
            return web.Response(status=400), None
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            api_error = http_errors.internal("This request caused the API server to fail. Look in its log for details.")
        if api_error is not None:
            outcome = await responses.from_error(api_error, negotiation.error_form(request.headers.get("Accept", "")))
        if isinstance(outcome, EncodedResponse):
            return await _to_http_response(context, outcome), api_error
        return outcome, api_error


async def _to_http_response(context: RequestContext, encoded: EncodedResponse) -> web.Response:
    """The HTTP response: indented for browsers and curl, compressed if it is large, with the `Warning` headers."""
    headers = {"Content-Type": encoded.content_type, "Cache-Control": "no-cache, private", **encoded.headers}
    body = encoded.body
    is_compressed = "Content-Encoding" in headers
    if body and not is_compressed and encoded.content_type == "application/json" and _wants_indented(context):
        body = responses.indented(body)
    if not is_compressed and len(body) > GZIP_MIN_BYTES and negotiation.takes_gzip(context.http.headers):
        body = await asyncio.to_thread(_gzip, body)
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    response = web.Response(body=body, status=encoded.status, headers=headers)
    responses.add_warnings(response, context.warnings)
    return response


def _wants_indented(context: RequestContext) -> bool:
    """Whether to indent JSON: by the parameter `pretty`, by default for browsers, curl and Wget."""
    pretty = context.query.flag("pretty")
    if pretty is not None:
        return pretty
    return context.http.headers.get("User-Agent", "").startswith(("curl", "Wget", "Mozilla/5.0"))


def _gzip(body: bytes) -> bytes:
    """The body compressed with gzip. Slow for large bodies: to be called in a thread."""
    compressor = zlib.compressobj(_FASTEST_COMPRESSION, wbits=_GZIP_WINDOW_BITS)
    return compressor.compress(body) + compressor.flush()


def _body_kinds(routes: Routes) -> Kinds:
    """Every kind that a request body may have, by apiVersion and kind. A new kind of body: add it here."""
    kinds: list[BodyKind] = [kind_of(served) for served in routes.all_resources()]
    kinds += [scales.SCALE, *scales.OLD_SCALES, subresources.BINDING, subresources.EVICTION, TOKEN_REQUEST]
    return {(kind.api_version, kind.kind): kind for kind in kinds}


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises UsageError, whose message says how to proceed."""
    if not 0 <= port <= PORT_MAX:
        raise UsageError(f"{port} is no port: it must be between 0 and {PORT_MAX}")
    try:
        return socket.create_server((host, port), backlog=ACCEPT_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"port {port} of {host} is in use: stop what uses it or choose another") from error
        raise UsageError(f"cannot listen on port {port} of {host}: {error.strerror or error}") from error
