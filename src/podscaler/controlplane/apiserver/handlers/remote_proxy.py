"""Proxies requests to other API servers on behalf of the user, and streams their responses back.

`dispatch` calls `forward` for authorized requests to groups and versions that an APIService assigns to another server.
Response bodies are relayed chunk by chunk, as fast as the client reads, so that watches work and large lists need no
memory.

Source: kube-aggregator (proxy handler) and its upgrade-aware proxy: headers, error texts; the deadline of requests that
are not long-running. Differs: a connection cannot be upgraded (exec, WebSocket).
"""

import asyncio
import io
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from podscaler.base.errors import StatusError
from podscaler.controlplane.aggregator import connection_messages, proxy_headers
from podscaler.controlplane.aggregator.aggregation_layer import Aggregation
from podscaler.controlplane.aggregator.remote_versions import Remote
from podscaler.controlplane.aggregator.server_connections import UnusableBundle
from podscaler.controlplane.aggregator.service_resolver import Address, Unreachable
from podscaler.controlplane.apiserver.handlers import proxied_response
from podscaler.controlplane.apiserver.http import request_bodies, responses
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.streaming.watch_streams import OpenStreams
from podscaler.controlplane.auth.authorizer import Attributes
from podscaler.controlplane.registry.users import User

Response = EncodedResponse | web.StreamResponse

REQUEST_TIMEOUT_S = 60.0
"""The deadline of requests that are not long-running."""
_LONG_RUNNING_VERBS = frozenset({"watch", "proxy"})
_LONG_RUNNING_SUBRESOURCES = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Requests with these verbs or subresources have no deadline; `dispatch.check_timeout` has its own list, by paths."""


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """A client's request that is sent on to another API server.

    Attributes:
        http: the client's request.
        path, query: its decoded path and raw query.
        user: the user on whose behalf it is sent.
        attributes: the authorized attributes.
    """

    http: web.BaseRequest
    path: str
    query: str
    user: User
    attributes: Attributes

    @property
    def is_long_running(self) -> bool:
        """Whether the request has no deadline."""
        verb, subresource = self.attributes.verb, self.attributes.subresource
        return verb in _LONG_RUNNING_VERBS or subresource in _LONG_RUNNING_SUBRESOURCES

    @property
    def target(self) -> str:
        """Path and query as they are sent: escaped from the decoded path that was authorized."""
        path = quote(self.path, safe=proxied_response.UNESCAPED_IN_PATHS)
        parameters = sorted(parse_qsl(self.query, keep_blank_values=True), key=_parameter_name)
        return f"{path}?{urlencode(parameters, errors='surrogateescape')}" if parameters else path


def _parameter_name(parameter: tuple[str, str]) -> str:
    """The key by which parameters are sorted, as Go encodes queries; equal names keep their order."""
    name, _ = parameter
    return name


async def forward(aggregation: Aggregation, remote: Remote, proxied: ProxiedRequest, streams: OpenStreams) -> Response:
    """The response of the other server; a plain-text error where it cannot be reached.

    Raises StatusError 408, 413 for the request body, 504 where the server exceeds `REQUEST_TIMEOUT_S`.
    """
    if not remote.is_available:
        return _failure_response("service unavailable")
    try:
        address = aggregation.address_of(remote)
    except Unreachable:
        return _failure_response("service unavailable")
    try:
        received = await _send_request(aggregation, remote, address, proxied)
    except UnusableBundle as error:
        return _failure_response(str(error), 500)
    except (aiohttp.ClientError, OSError) as error:
        message = connection_messages.go_message(error, *address, remote.server_name)
        return _failure_response(f"error trying to reach service: {message}")
    try:
        is_redirect = 300 <= received.status < 400 and "Location" in received.headers
        if is_redirect:
            message = "the backend attempted to redirect this request, which is not permitted"
            return EncodedResponse(message.encode(), 502, responses.TEXT_TYPE)
        response = await proxied_response.start(proxied.http, received, is_stream=proxied.is_long_running)
        timeout_s = None if proxied.is_long_running else REQUEST_TIMEOUT_S
        await streams.until_stopped(proxied_response.relay_body(proxied.http, received, response, timeout_s=timeout_s))
        return response
    finally:
        received.close()


async def _send_request(
    aggregation: Aggregation, remote: Remote, address: Address, proxied: ProxiedRequest
) -> aiohttp.ClientResponse:
    """Send the request; returns the head of the response.

    Raises StatusError 408, 413, 504, UnusableBundle, and aiohttp.ClientError or OSError if the server is not reached.
    """
    body = await request_bodies.read(proxied.http)
    try:
        async with asyncio.timeout(None if proxied.is_long_running else REQUEST_TIMEOUT_S):
            return await aggregation.connections.send(
                remote,
                address,
                method=proxied.http.method,
                path=proxied.target,
                headers=_headers(proxied, address),
                body=io.BytesIO(body) if body else None,
            )
    except aiohttp.ServerTimeoutError:  # the connection was not accepted in time, which `forward` reports
        raise
    except TimeoutError:
        message = "Timeout: request did not complete within the allotted timeout"
        raise StatusError(message, code=504, reason="Timeout", details={}) from None


def _failure_response(message: str, status: int = 503) -> EncodedResponse:
    """The plain-text response for a server that cannot be reached."""
    headers = {"X-Content-Type-Options": "nosniff"}
    return EncodedResponse(f"{message}\n".encode(), status, responses.TEXT_TYPE, headers)


def _headers(proxied: ProxiedRequest, address: Address) -> CIMultiDict[str]:
    """The headers of the proxied request: the client's without its credentials, those of the user, X-Forwarded."""
    request = proxied.http
    headers = proxy_headers.request_headers(request.headers)
    headers.extend(proxy_headers.user_headers(proxied.user))
    earlier_clients, client = request.headers.get("X-Forwarded-For"), request.remote or ""
    host, port = address
    path, _, _ = proxied.target.partition("?")
    headers["X-Forwarded-For"] = f"{earlier_clients}, {client}" if earlier_clients else client
    headers["X-Forwarded-Host"] = f"{host}:{port}"
    headers["X-Forwarded-Proto"] = "https"
    headers["X-Forwarded-Uri"] = path
    return headers
