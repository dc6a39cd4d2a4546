"""`pods/NAME/portforward`: TCP connections to ports of a pod over a WebSocket.

Called by `dispatch`. With `v4.channel.k8s.io` the ports are named in the query, and each has one connection and two
channels: data, and an error text. With the tunnelling protocol the WebSocket carries SPDY (`spdy_ports`).

Source: core/v1 PodPortForwardOptions; the kubelet's port forwarding server.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence

from aiohttp import WSMsgType, web

from podscaler.api.machinery import numbers
from podscaler.api.text import quoting
from podscaler.controlplane.apiserver.http import websockets
from podscaler.controlplane.apiserver.http.open_sessions import Activity
from podscaler.controlplane.apiserver.http.queries import Query
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.streaming import channels, pod_targets, port_relay, spdy_ports
from podscaler.controlplane.apiserver.streaming.channels import Framing
from podscaler.controlplane.registry.pod_connections import PodConnections
from podscaler.controlplane.registry.registry import Object

PORTS_MAX = 100
INPUT_MESSAGES_MAX = 4
"""Of each connection; a client that sends more to one that does not read waits, with all its connections."""


async def forward(plane: Plane, call: ResourceRequest) -> EncodedResponse | web.StreamResponse:
    """Forward ports of a pod.

    Raises:
        StatusError: 400, 403, 404, 429, 503, before the WebSocket is open.
    """
    pod = pod_targets.pod_of(plane, call)
    pod_targets.check_host(plane, pod)
    pod_targets.check_upgrade(call)
    if plane.connections is None:
        raise pod_targets.no_pods_run()
    request = call.request
    if not websockets.is_websocket(request):
        raise pod_targets.not_spoken()
    tunnels = spdy_ports.PROTOCOL in websockets.offered_protocols(request)
    try:
        ports = [] if tunnels else _ports(call.query)
    except ValueError as error:
        return pod_targets.said_by_node(str(error), 400)
    if not plane.connections.is_running(pod):
        meta = pod["metadata"]
        return pod_targets.said_by_node(f'pod not found ("{meta["name"]}_{meta["namespace"]}")', 500)
    plane.sessions.check_room()
    if tunnels:
        return await _tunnel(plane, call, plane.connections, pod)
    framing = channels.PORT_PROTOCOLS[websockets.choose_protocol(request, channels.PORT_PROTOCOLS)]
    connections = plane.connections
    socket = await websockets.open_socket(request, framing.name)
    await plane.sessions.hold(lambda activity: _Forwarding(socket, framing, activity).run(connections, pod, ports))
    return socket


async def _tunnel(plane: Plane, call: ResourceRequest, connections: PodConnections, pod: Object) -> web.StreamResponse:
    socket = await websockets.open_socket(call.request, spdy_ports.PROTOCOL)

    async def work(activity: Activity) -> None:
        await spdy_ports.PortForwardTunnel(socket, connections, pod, clock=plane.clock, activity=activity).run()

    await plane.sessions.hold(work)
    return socket


def _ports(query: Query) -> list[int]:
    """The ports asked for, also several in one parameter. Raises ValueError in the kubelet's words."""
    texts = [part for text in query.texts("ports") for part in text.split(",")]
    if not texts:
        raise ValueError('query parameter "port" is required')
    return [_parse_port(text) for text in texts[:PORTS_MAX]]


def _parse_port(text: str) -> int:
    """The port that a client writes. Raises ValueError in the kubelet's words."""
    try:
        number = numbers.parse_uint(text, 16)
    except ValueError as error:
        raise ValueError(f"unable to parse {quoting.quoted(text)} as a port: {error}") from None
    if not number:
        raise ValueError(f'port "{text}" must be > 0')
    return number


class _Forwarding:
    """The connections of one WebSocket, one for each port of the query."""

    def __init__(self, socket: web.WebSocketResponse, framing: Framing, activity: Activity) -> None:
        self._socket = socket
        self._framing = framing
        self._activity = activity

    async def run(self, connections: PodConnections, pod: Object, ports: Sequence[int]) -> None:
        """Until every connection has ended, or the client has."""
        inputs: list[asyncio.Queue[bytes]] = [asyncio.Queue(INPUT_MESSAGES_MAX) for _ in ports]
        try:
            for index, port in enumerate(ports):
                await self._send(2 * index, struct.pack("<H", port))
                await self._send(2 * index + 1, struct.pack("<H", port))
            forwards = [self._forward(connections, pod, port, index, inputs[index]) for index, port in enumerate(ports)]
            await port_relay.first_of(self._take_input(inputs), port_relay.all_of(forwards))
        except ConnectionError:
            return  # the client has gone
        finally:
            await self._socket.close()

    async def _forward(
        self, connections: PodConnections, pod: Object, port: int, index: int, given: "asyncio.Queue[bytes]"
    ) -> None:
        async def send(data: bytes) -> None:
            await self._send(2 * index, data)

        fault = await port_relay.relay(connections, pod, port, _queued(given), send)
        if fault:
            await self._send(2 * index + 1, fault.encode())

    async def _take_input(self, inputs: "Sequence[asyncio.Queue[bytes]]") -> None:
        """Pass on what the client sends; returns when it has closed the connection."""
        async for message in self._socket:
            self._activity.note()
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                continue
            received = self._framing.decode(message.data)
            if received is not None and received.channel in range(0, 2 * len(inputs), 2):
                await inputs[received.channel // 2].put(received.data)

    async def _send(self, channel: int, data: bytes) -> None:
        message = self._framing.encode(channel, data)
        if isinstance(message, str):
            await self._socket.send_str(message)
        else:
            await self._socket.send_bytes(message)
        self._activity.note()


async def _queued(given: "asyncio.Queue[bytes]") -> AsyncIterator[bytes]:
    while True:
        yield await given.get()
