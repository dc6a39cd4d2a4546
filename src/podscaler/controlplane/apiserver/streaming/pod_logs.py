"""Handles `GET .../pods/NAME/log` (`kubectl logs`): the log of a container as text, followed, or over a WebSocket.

`dispatch` calls `get`; the bytes come from `registry.providers.PodLogs`.

Source: core/v1 PodLogOptions, its default container, its validation. For WebSockets, kube-apiserver's stream readers:
the sub-protocols `binary.k8s.io` and `base64.binary.k8s.io`, an empty message at the beginning.
"""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from aiohttp import web

from podscaler.api.machinery import field, instants
from podscaler.api.machinery.field import FieldError
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors, websockets
from podscaler.controlplane.apiserver.http.open_sessions import Activity
from podscaler.controlplane.apiserver.http.query_options import Query
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.streaming_response import StreamingResponse
from podscaler.controlplane.apiserver.streaming import pod_targets, port_relay
from podscaler.controlplane.registry.providers import LogOptions

_BASE64: Final = "base64.binary.k8s.io"
SOCKET_PROTOCOLS: Final = ("", "binary.k8s.io", _BASE64)
MESSAGE_BYTES: Final = 32 * 1024


async def get(server: ServerContext, request: ResourceRequest) -> EncodedResponse | web.StreamResponse:
    """The response with the log; 204 for a pod without a node.

    Raises StatusError 400, 403, 404, 405, 422, 429, 503, before the response starts.
    """
    options = _options(request.query, request.path.name, server.clock.now_ns())
    pod = pod_targets.get_pod(server, request)
    options = replace(options, container=pod_targets.choose_container(options.container, pod))
    if not pod["spec"].get("nodeName"):
        return web.Response(status=204, headers={"Cache-Control": "no-cache, private"})
    pod_targets.check_node_exists(server, pod)
    if server.parts.logs is None:
        raise StatusError("logs are kept where pods run, and none run here", code=503, reason="ServiceUnavailable")
    chunks = server.parts.logs.stream(pod, options)
    first = await anext(chunks, b"")  # before the head is sent, so that an error still becomes a status
    if websockets.is_websocket(request.http):
        return await _send_over_websocket(server, request, first, chunks)
    if options.follow:
        return await _send_followed(request.http, first, chunks)
    rest = [chunk async for chunk in chunks]
    return EncodedResponse(b"".join((first, *rest)), 200, "text/plain")


async def _send_followed(request: web.BaseRequest, first: bytes, chunks: AsyncIterator[bytes]) -> web.StreamResponse:
    async with StreamingResponse(request, "text/plain") as stream:
        await stream.write(first)
        async for chunk in chunks:
            await stream.write(chunk)
    return stream.response


def _options(query: Query, name: str, now_ns: int) -> LogOptions:
    """The options of the query. Raises StatusError 422 with all errors."""
    tail, limit = query.number("tailLines"), query.number("limitBytes")
    since_s, since_time = query.number("sinceSeconds"), query.text("sinceTime")
    errors = _option_errors(tail=tail, limit=limit, since_s=since_s, since_time=since_time)
    if "stream" in query:  # a choice of streams is behind a feature gate that is off
        errors.append(field.forbidden("stream", "may not be specified"))
    if errors:
        raise field.invalid_object(group="", kind="PodLogOptions", name=name, errors=errors)
    return LogOptions(
        container=query.text("container"),
        follow=bool(query.flag("follow")),
        previous=bool(query.flag("previous")),
        timestamps=bool(query.flag("timestamps")),
        tail_lines=tail,
        since_ns=_since_ns(since_s, since_time, now_ns),
        limit_bytes=limit,
    )


def _option_errors(*, tail: int | None, limit: int | None, since_s: int | None, since_time: str) -> list[FieldError]:
    """Errors of the options, of which two say where to begin."""
    errors = []
    if tail is not None and tail < 0:
        errors.append(field.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        errors.append(field.invalid("limitBytes", limit, "must be greater than 0"))
    if since_s is not None and since_time:
        errors.append(field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since_s is not None and since_s < 1:
        errors.append(field.invalid("sinceSeconds", since_s, "must be greater than 0"))
    return errors


def _since_ns(since_s: int | None, since_time: str, now_ns: int) -> int | None:
    """The instant at which the log begins; None for the whole log. Raises StatusError 400."""
    if since_time:
        try:
            return instants.parse(since_time)
        except ValueError:
            layout = "2006-01-02T15:04:05Z07:00"
            text = f'parsing time "{since_time}" as "{layout}": cannot parse "{since_time}" as "2006"'
            raise http_errors.bad_request(text) from None
    return None if since_s is None else now_ns - since_s * NANOSECONDS


async def _send_over_websocket(
    server: ServerContext, request: ResourceRequest, first: bytes, chunks: AsyncIterator[bytes]
) -> web.StreamResponse:
    """Send the log as messages, then close. Raises StatusError 403, 405, 429 before the handshake."""
    protocol = websockets.choose_protocol(request.http, SOCKET_PROTOCOLS)
    server.sessions.check_limit()
    socket = await websockets.open_socket(request.http, protocol)

    async def send_log(activity: Activity) -> None:
        await _send(socket, protocol, b"")
        await _send_pieces(socket, protocol, first)
        async for chunk in chunks:
            await _send_pieces(socket, protocol, chunk)
            activity.touch()

    async def session(activity: Activity) -> None:
        try:
            await port_relay.run_until_first(send_log(activity), _wait_closed(socket))
        except ConnectionError:
            return  # the client has disconnected
        finally:
            await socket.close()

    await server.sessions.run(session)
    return socket


async def _wait_closed(socket: web.WebSocketResponse) -> None:
    """Discard what the client sends, until it disconnects."""
    async for _ in socket:
        continue


async def _send_pieces(socket: web.WebSocketResponse, protocol: str, data: bytes) -> None:
    for start in range(0, len(data), MESSAGE_BYTES):
        await _send(socket, protocol, data[start : start + MESSAGE_BYTES])


async def _send(socket: web.WebSocketResponse, protocol: str, data: bytes) -> None:
    if protocol == _BASE64:
        await socket.send_str(base64.b64encode(data).decode())
    else:
        await socket.send_bytes(data)
