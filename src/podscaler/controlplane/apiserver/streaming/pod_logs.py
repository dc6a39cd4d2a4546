"""Handles `GET .../pods/NAME/log` (`kubectl logs`): the log of a container as text, followed, or over a WebSocket.

`dispatch` calls `get`; a `registry.providers.PodLogs` reads the bytes. A new option: in `_parse_options`, and a field
of `registry.providers.LogOptions`.

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
_SOCKET_PROTOCOLS: Final = ("", "binary.k8s.io", _BASE64)
"""The sub-protocols of logs; empty for clients that offer none."""
MESSAGE_MAX_BYTES: Final = 32 * 1024
"""The most bytes of the log in one WebSocket message."""


async def get(server: ServerContext, request: ResourceRequest) -> EncodedResponse | web.StreamResponse:
    """The response with the log; 204 for a pod without a node.

    Raises StatusError 400, 403, 404, 405, 422, 429, 503, before the response starts.
    """
    options = _parse_options(request.query, request.path.name, server.clock.now_ns())
    pod = pod_targets.get_pod(server, request)
    options = replace(options, container=pod_targets.choose_container(options.container, pod))
    if not pod["spec"].get("nodeName"):
        return web.Response(status=204, headers={"Cache-Control": "no-cache, private"})
    pod_targets.check_node_exists(server, pod)
    if server.parts.logs is None:
        raise StatusError("logs are kept where pods run, and none run here", code=503, reason="ServiceUnavailable")
    chunks = server.parts.logs.stream(pod, options)
    first_chunk = await anext(chunks, b"")  # before the head is sent, so that an error still becomes a status
    if websockets.is_websocket(request.http):
        return await _send_over_websocket(server, request, first_chunk, chunks)
    if options.follow:
        return await _send_followed(request.http, first_chunk, chunks)
    later_chunks = [chunk async for chunk in chunks]
    return EncodedResponse(b"".join((first_chunk, *later_chunks)), 200, "text/plain")


async def _send_followed(
    request: web.BaseRequest, first_chunk: bytes, chunks: AsyncIterator[bytes]
) -> web.StreamResponse:
    """Stream the log until it ends or the client disconnects; `chunks` follow `first_chunk`."""
    async with StreamingResponse(request, "text/plain") as stream:
        await stream.write(first_chunk)
        async for chunk in chunks:
            await stream.write(chunk)
    return stream.response


def _parse_options(query: Query, pod_name: str, now_ns: int) -> LogOptions:
    """The options of the query. Raises StatusError 422 with all errors, 400 for an invalid `sinceTime`."""
    tail_lines, limit_bytes = query.number("tailLines"), query.number("limitBytes")
    since_s, since_time = query.number("sinceSeconds"), query.text("sinceTime")
    errors = _validate_options(tail_lines=tail_lines, limit_bytes=limit_bytes, since_s=since_s, since_time=since_time)
    if "stream" in query:  # a choice of streams is behind a feature gate that is off
        errors.append(field.forbidden("stream", "may not be specified"))
    if errors:
        raise field.invalid_object(group="", kind="PodLogOptions", name=pod_name, errors=errors)
    return LogOptions(
        container=query.text("container"),
        follow=bool(query.flag("follow")),
        previous=bool(query.flag("previous")),
        timestamps=bool(query.flag("timestamps")),
        tail_lines=tail_lines,
        since_ns=_since_ns(since_s, since_time, now_ns),
        limit_bytes=limit_bytes,
    )


def _validate_options(
    *, tail_lines: int | None, limit_bytes: int | None, since_s: int | None, since_time: str
) -> list[FieldError]:
    """Errors of the options; at most one of `since_s` and `since_time` may be given."""
    errors = []
    if tail_lines is not None and tail_lines < 0:
        errors.append(field.invalid("tailLines", tail_lines, "must be greater than or equal to 0"))
    if limit_bytes is not None and limit_bytes < 1:
        errors.append(field.invalid("limitBytes", limit_bytes, "must be greater than 0"))
    if since_s is not None and since_time:
        errors.append(field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since_s is not None and since_s < 1:
        errors.append(field.invalid("sinceSeconds", since_s, "must be greater than 0"))
    return errors


def _since_ns(since_s: int | None, since_time: str, now_ns: int) -> int | None:
    """When the log begins, in nanoseconds since the epoch; None for the whole log.

    Raises StatusError 400 for a `since_time` that is not RFC 3339.
    """
    if since_time:
        try:
            return instants.parse(since_time)
        except ValueError:
            layout = "2006-01-02T15:04:05Z07:00"
            message = f'parsing time "{since_time}" as "{layout}": cannot parse "{since_time}" as "2006"'
            raise http_errors.bad_request(message) from None
    return None if since_s is None else now_ns - since_s * NANOSECONDS


async def _send_over_websocket(
    server: ServerContext, request: ResourceRequest, first_chunk: bytes, chunks: AsyncIterator[bytes]
) -> web.StreamResponse:
    """Send the log as messages, then close. Raises StatusError 403, 405, 429 before the handshake."""
    protocol = websockets.choose_protocol(request.http, _SOCKET_PROTOCOLS)
    server.sessions.check_limit()
    socket = await websockets.open_socket(request.http, protocol)

    async def send_log(activity: Activity) -> None:
        await _send_message(socket, protocol, b"")
        await _send_in_messages(socket, protocol, first_chunk)
        async for chunk in chunks:
            await _send_in_messages(socket, protocol, chunk)
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


async def _send_in_messages(socket: web.WebSocketResponse, protocol: str, chunk: bytes) -> None:
    """Send a part of the log as messages of at most `MESSAGE_MAX_BYTES`."""
    for start in range(0, len(chunk), MESSAGE_MAX_BYTES):
        await _send_message(socket, protocol, chunk[start : start + MESSAGE_MAX_BYTES])


async def _send_message(socket: web.WebSocketResponse, protocol: str, content: bytes) -> None:
    """Send one message, as the sub-protocol encodes it."""
    if protocol == _BASE64:
        await socket.send_str(base64.b64encode(content).decode())
    else:
        await socket.send_bytes(content)
