"""Handles `pods/NAME/portforward` (`kubectl port-forward`): TCP connections to ports of a pod over a WebSocket.

`dispatch` calls `forward`. With `v4.channel.k8s.io` the query names the ports, each with one connection and two
channels: data and errors. With the tunnelling protocol the WebSocket carries SPDY (`spdy_ports`). Another protocol: a
branch in `forward`; `port_relay` has what all of them do.

Source: core/v1 PodPortForwardOptions; the kubelet's port forwarding server.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence

from aiohttp import web

from podscaler.api.machinery import numbers
from podscaler.api.text import quoting
from podscaler.controlplane.apiserver.http import responses, websockets
from podscaler.controlplane.apiserver.http.query_options import Query
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.streaming import channels, pod_targets, port_relay, spdy_ports
from podscaler.controlplane.apiserver.streaming.channels import ChannelSocket
from podscaler.controlplane.registry.pod_connections import PodConnections
from podscaler.controlplane.registry.registry import Object

PORTS_MAX = 100
"""The most ports of one request; further ones are ignored."""
_PORT_BITS = 16
QUEUED_MESSAGES_MAX = 4
"""The most messages that wait for a connection that does not read; then the client waits, with all its connections."""


async def forward(server: ServerContext, request: ResourceRequest) -> EncodedResponse | web.StreamResponse:
    """Forward ports of a pod until the client disconnects or all connections have ended.

    Returns a plain-text error of the node where the ports are invalid or the pod does not run.

    Raises StatusError 400, 403, 404, 405, 429, 503, before the handshake.
    """
    pod = pod_targets.get_pod(server, request)
    pod_targets.check_has_node(server, pod)
    pod_targets.check_upgrade(request)
    connections = pod_targets.get_connections(server)
    if not websockets.is_websocket(request.http):
        raise pod_targets.spdy_not_served()
    is_tunnel = spdy_ports.PROTOCOL in websockets.offered_protocols(request.http)
    try:
        ports = [] if is_tunnel else _parse_ports(request.query)
    except ValueError as error:
        return responses.text(str(error), 400)
    if not connections.is_running(pod):
        metadata = pod["metadata"]
        return responses.text(f'pod not found ("{metadata["name"]}_{metadata["namespace"]}")', 500)
    server.sessions.check_limit()
    if is_tunnel:
        socket = await websockets.open_socket(request.http, spdy_ports.PROTOCOL)
        await server.sessions.run(
            lambda activity: spdy_ports.PortForwardTunnel(
                socket, connections, pod, clock=server.clock, activity=activity
            ).run()
        )
        return socket
    framing = channels.PORT_PROTOCOLS[websockets.choose_protocol(request.http, channels.PORT_PROTOCOLS)]
    socket = await websockets.open_socket(request.http, framing.name)
    await server.sessions.run(
        lambda activity: _forward_over_channels(ChannelSocket(socket, framing, activity), connections, pod, ports)
    )
    return socket


def _parse_ports(query: Query) -> list[int]:
    """The ports of the query, also several in one parameter (`80,443`). Raises ValueError for the kubelet's errors."""
    port_texts = [port_text for parameter in query.texts("ports") for port_text in parameter.split(",")]
    if not port_texts:
        raise ValueError('query parameter "port" is required')
    return [_parse_port(port_text) for port_text in port_texts[:PORTS_MAX]]


def _parse_port(port_text: str) -> int:
    """A port number. Raises ValueError with the kubelet's message."""
    try:
        port = numbers.parse_uint(port_text, _PORT_BITS)
    except ValueError as error:
        raise ValueError(f"unable to parse {quoting.quoted(port_text)} as a port: {error}") from None
    if not port:
        raise ValueError(f'port "{port_text}" must be > 0')
    return port


async def _forward_over_channels(
    socket: ChannelSocket, connections: PodConnections, pod: Object, ports: Sequence[int]
) -> None:
    """Forward each port on its two channels until all have ended or the client disconnects.

    The data of the port at `index` is on channel 2 * index, its error message on the next channel. Both channels begin
    with a message that contains the port number.
    """
    input_queues: list[asyncio.Queue[bytes]] = [asyncio.Queue(QUEUED_MESSAGES_MAX) for _ in ports]

    async def forward_port(index: int, port: int) -> None:
        async def send(data: bytes) -> None:
            await socket.send(2 * index, data)

        error_message = await port_relay.relay(connections, pod, port, _queued_messages(input_queues[index]), send)
        if error_message:
            await socket.send(2 * index + 1, error_message.encode())

    async def queue_input() -> None:
        data_channels = range(0, 2 * len(input_queues), 2)
        async for message in socket.received_messages():
            if message.channel in data_channels:
                await input_queues[message.channel // 2].put(message.data)

    try:
        for index, port in enumerate(ports):
            await socket.send(2 * index, struct.pack("<H", port))
            await socket.send(2 * index + 1, struct.pack("<H", port))
        forwards = [forward_port(index, port) for index, port in enumerate(ports)]
        await port_relay.run_until_first(queue_input(), port_relay.run_all(forwards))
    except ConnectionError:
        return  # the client has disconnected
    finally:
        await socket.close()


async def _queued_messages(queue: "asyncio.Queue[bytes]") -> AsyncIterator[bytes]:
    """The messages of a queue as they come, without end."""
    while True:
        yield await queue.get()
