"""Relays the response of another server to the client of a proxied request, chunk by chunk as fast as the client reads.

`remote_proxy` (other API servers) and `endpoint_proxy` (pods, Services, nodes) call `start`, then `relay_body`. Which
headers are relayed is decided in `aggregator.proxy_headers`.

Source: kube-apiserver's upgrade-aware proxy; RFC 9110 section 7.6.1 (hop-by-hop headers).
"""

import asyncio
import logging
from collections.abc import Mapping

import aiohttp
from aiohttp import web

from podscaler.controlplane.aggregator import proxy_headers
from podscaler.controlplane.apiserver.http import streaming_response

UNESCAPED_IN_PATHS = "/$&+,:;=@-_.~"
"""The characters that Go does not escape in paths."""
_STATUSES_WITHOUT_BODY = frozenset({204, 304})

_log = logging.getLogger(__name__)


async def start(
    request: web.BaseRequest,
    received: aiohttp.ClientResponse,
    *,
    is_stream: bool,
    headers: Mapping[str, str] | None = None,
) -> web.StreamResponse:
    """Send the head of the response to the client; returns the response.

    Args:
        request: the client's request.
        received: the other server's response.
        is_stream: whether the response may last for long: the audit log then has an event for its start, too.
        headers: replace those of the other server.
    """
    sent_headers = proxy_headers.response_headers(received.headers)
    sent_headers.setdefault("Cache-Control", "no-cache, private")
    sent_headers.update(headers or {})
    response = web.StreamResponse(status=received.status, reason=received.reason, headers=sent_headers)
    has_body = request.method != "HEAD" and received.status not in _STATUSES_WITHOUT_BODY
    if has_body and "Content-Length" not in sent_headers:
        response.enable_chunked_encoding()
    await response.prepare(request)
    if is_stream:
        await streaming_response.notify_start(request)
    return response


async def relay_body(
    request: web.BaseRequest,
    received: aiohttp.ClientResponse,
    response: web.StreamResponse,
    *,
    timeout_s: float | None,
) -> None:
    """Relay the body. If the server closes the connection early, the client's connection is closed too.

    It is also closed after `timeout_s` (None if there is no limit), and if the client does not read.
    """
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in received.content.iter_any():
                async with asyncio.timeout(streaming_response.WRITE_TIMEOUT_S):
                    await response.write(chunk)
        await response.write_eof()
    except (aiohttp.ClientError, OSError) as error:
        is_late = isinstance(error, TimeoutError)  # which is an OSError
        cause = "it took too long, or the client did not read" if is_late else repr(error)
        _log.info("%s %s broke off: %s", request.method, request.path, cause)
        if request.transport is not None:
            request.transport.abort()
