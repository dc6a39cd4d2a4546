"""Requests for what another API server serves: sent there in the caller's name, and its answers back as they come.

Called by `dispatch`, once the caller is known and may do what it wants. Bodies of answers are passed on piece by piece,
as fast as the client reads, so that watches work and large lists need no memory.

Source: upstream's kube-aggregator (proxy handler) and its upgrade-aware proxy: headers, refusals and their texts; the
deadline of requests that are not meant to last. Differs: a connection cannot be upgraded (exec, WebSocket).
"""

import asyncio
import io
import logging
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from podscaler.base.errors import StatusError
from podscaler.controlplane.aggregator import identity, network_errors
from podscaler.controlplane.aggregator.connections import UnusableBundle
from podscaler.controlplane.aggregator.layer import Aggregation
from podscaler.controlplane.aggregator.service_resolver import Address, Unreachable
from podscaler.controlplane.aggregator.versions import Remote
from podscaler.controlplane.apiserver.http import bodies, responses, streaming_response
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.streaming.streams import Streams
from podscaler.controlplane.auth.rules import Attributes
from podscaler.controlplane.registry.users import User

Response = EncodedResponse | web.StreamResponse

REQUEST_TIMEOUT_S = 60.0
_LASTING_VERBS = frozenset({"watch", "proxy"})
_LASTING_PARTS = frozenset({"attach", "exec", "log", "portforward", "proxy"})
_PATH_SAFE = "/$&+,:;=@-_.~"
"""What Go leaves as it is in paths."""
_BODILESS = frozenset({204, 304})

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A request to be handed on.

    Attributes:
        path, query: decoded path, raw query.
        user: for whom it is carried out.
        wanted: what it wants to do.
    """

    request: web.BaseRequest
    path: str
    query: str
    user: User
    wanted: Attributes

    @property
    def lasts(self) -> bool:
        """Whether it may take as long as it likes."""
        return self.wanted.verb in _LASTING_VERBS or self.wanted.subresource in _LASTING_PARTS

    @property
    def target(self) -> str:
        """Path and query as they are sent: the path that was authorized, and no other way to write it."""
        path = quote(self.path, safe=_PATH_SAFE)
        pairs = sorted(parse_qsl(self.query, keep_blank_values=True), key=lambda pair: pair[0])
        return f"{path}?{urlencode(pairs, errors='surrogateescape')}" if pairs else path


async def forward(aggregation: Aggregation, remote: Remote, asked: Forwarded, streams: Streams) -> Response:
    """What the server answers; a text that says why not where it cannot be asked.

    Raises:
        StatusError: 408, 413 for the body, 504 where the server takes too long.
    """
    if not remote.is_available:
        return _failure("service unavailable")
    try:
        address = aggregation.address_of(remote)
    except Unreachable:
        return _failure("service unavailable")
    try:
        answer = await _ask(aggregation, remote, address, asked)
    except UnusableBundle as error:
        return _failure(str(error), 500)
    except (aiohttp.ClientError, OSError) as error:
        return _failure(f"error trying to reach service: {network_errors.of(error, *address, remote.server_name)}")
    try:
        if 300 <= answer.status < 400 and "Location" in answer.headers:
            text = "the backend attempted to redirect this request, which is not permitted"
            return EncodedResponse(text.encode(), 502, responses.TEXT)
        response = await _begun(asked, answer)
        await streams.until_stopped(_relay(asked, answer, response))
        return response
    finally:
        answer.close()


async def _ask(aggregation: Aggregation, remote: Remote, address: Address, asked: Forwarded) -> aiohttp.ClientResponse:
    """The head of the server's answer. Raises StatusError 408, 413, 504."""
    body = await bodies.read(asked.request)
    try:
        async with asyncio.timeout(None if asked.lasts else REQUEST_TIMEOUT_S):
            return await aggregation.connections.send(
                remote,
                address,
                method=asked.request.method,
                path=asked.target,
                headers=_headers(asked, address),
                body=io.BytesIO(body) if body else None,
            )
    except aiohttp.ServerTimeoutError:  # while connecting
        raise
    except TimeoutError:
        text = "Timeout: request did not complete within the allotted timeout"
        raise StatusError(text, code=504, reason="Timeout", details={}) from None


def _failure(text: str, status: int = 503) -> EncodedResponse:
    return EncodedResponse(f"{text}\n".encode(), status, responses.TEXT, headers={"X-Content-Type-Options": "nosniff"})


def _headers(asked: Forwarded, address: Address) -> CIMultiDict[str]:
    request = asked.request
    headers = identity.passed_on(request.headers)
    headers.extend(identity.headers_of(asked.user))
    before = request.headers.get("X-Forwarded-For")
    peer = request.remote or ""
    headers["X-Forwarded-For"] = f"{before}, {peer}" if before else peer
    headers["X-Forwarded-Host"] = f"{address[0]}:{address[1]}"
    headers["X-Forwarded-Proto"] = "https"
    headers["X-Forwarded-Uri"] = asked.target.partition("?")[0]
    return headers


async def _begun(asked: Forwarded, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """The response, with its head sent."""
    headers = identity.passed_back(answer.headers)
    headers.setdefault("Cache-Control", "no-cache, private")
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    if "Content-Length" not in headers and asked.request.method != "HEAD" and answer.status not in _BODILESS:
        response.enable_chunked_encoding()
    await response.prepare(asked.request)
    if asked.lasts and (beginning := asked.request.get(streaming_response.BEGINNING)) is not None:
        await beginning.tell()
    return response


async def _relay(asked: Forwarded, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    """Pass the body on; one that breaks off in the middle does so for the client, too."""
    try:
        async with asyncio.timeout(None if asked.lasts else REQUEST_TIMEOUT_S):
            async for chunk in answer.content.iter_any():
                await _write(response, chunk)
        await response.write_eof()
    except (aiohttp.ClientError, OSError) as error:
        _log.info("%s %s broke off: %r", asked.request.method, asked.path, error)
        if asked.request.transport is not None:
            asked.request.transport.abort()


async def _write(response: web.StreamResponse, chunk: bytes) -> None:
    async with asyncio.timeout(streaming_response.WRITE_TIMEOUT_S):
        await response.write(chunk)
