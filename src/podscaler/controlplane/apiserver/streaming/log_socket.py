"""A container's log over a WebSocket, one message after the other, for clients that cannot read a growing answer.

Called by `pod_logs`.

Source: the API server's readers of streams: `binary.k8s.io`, `base64.binary.k8s.io`, an empty message at the beginning.
"""

import base64
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web

from podscaler.controlplane.apiserver.http import websockets
from podscaler.controlplane.apiserver.http.open_sessions import Activity
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.streaming import port_relay

BASE64: Final = "base64.binary.k8s.io"
PROTOCOLS: Final = ("", "binary.k8s.io", BASE64)
MESSAGE_BYTES: Final = 32 * 1024


async def send(plane: Plane, call: ResourceRequest, first: bytes, chunks: AsyncIterator[bytes]) -> web.StreamResponse:
    """Send `first` and what follows, then close.

    Raises:
        StatusError: 403, 405, 429, before the WebSocket is open.
    """
    protocol = websockets.choose_protocol(call.request, PROTOCOLS)
    plane.sessions.check_room()
    socket = await websockets.open_socket(call.request, protocol)

    async def give(activity: Activity) -> None:
        await _send(socket, protocol, b"")
        await _send_pieces(socket, protocol, first)
        async for chunk in chunks:
            await _send_pieces(socket, protocol, chunk)
            activity.note()

    async def work(activity: Activity) -> None:
        try:
            await port_relay.first_of(give(activity), _until_closed(socket))
        except ConnectionError:
            return  # the client has gone
        finally:
            await socket.close()

    await plane.sessions.hold(work)
    return socket


async def _until_closed(socket: web.WebSocketResponse) -> None:
    """Pass over whatever the client sends, until it leaves."""
    async for _ in socket:
        continue


async def _send_pieces(socket: web.WebSocketResponse, protocol: str, data: bytes) -> None:
    for start in range(0, len(data), MESSAGE_BYTES):
        await _send(socket, protocol, data[start : start + MESSAGE_BYTES])


async def _send(socket: web.WebSocketResponse, protocol: str, data: bytes) -> None:
    if protocol == BASE64:
        await socket.send_str(base64.b64encode(data).decode())
    else:
        await socket.send_bytes(data)
