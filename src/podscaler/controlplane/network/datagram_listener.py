"""Opens the UDP sockets of the Service proxy: one for each UDP port of a clusterIP or of the node.

`service_proxy.ServiceProxy` opens and closes listeners. The datagrams of one client (address and port) are a flow: all
go to the endpoint that the balancer chose for the first one, and the endpoint's replies go back to the client. A flow
ends after `FLOW_IDLE_S` without a datagram, when its endpoint is no candidate any more, or when the endpoint refuses
datagrams; the next datagram of the client begins another one. Without endpoints, and beyond the limit of
`ProxiedConnections`, datagrams are dropped.

Source: documentation of Service ("Virtual IPs"); the idle time is the kernel's `nf_conntrack_udp_timeout_stream`.
Differs from kube-proxy: ports below 1024 that this user may not bind are not served.
"""

import asyncio
import contextlib
import socket
from typing import cast

from podscaler.base.clock import Clock
from podscaler.controlplane.network.balancer import Address, Balancer
from podscaler.controlplane.network.proxied_connection import ProxiedConnections

FLOW_IDLE_S = 120.0
MAX_DATAGRAM_BYTES = 65_535
DATAGRAMS_AT_ONCE = 64
"""The replies of a flow that are forwarded before the event loop does something else."""


class DatagramListener(asyncio.DatagramProtocol):
    """One UDP port, with the flows of its clients.

    Args:
        port: its number, which `service_proxy` reads as of a `PortListener`.
        connections: counts and limits the flows, with the TCP connections of this process.
        clock: for session affinity.

    Attributes:
        balancer: chooses the endpoint of each flow.
    """

    _transport: asyncio.DatagramTransport

    def __init__(self, port: int, connections: ProxiedConnections, clock: Clock) -> None:
        self.port = port
        self.balancer = Balancer(clock)
        self._connections = connections
        self._flows: dict[Address, _Flow] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the transport."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        """Forward a client's datagram to the endpoint of its flow."""
        host, port, *_ = addr
        client = host, port
        flow = self._flows.get(client)
        if flow is not None and flow.endpoint not in self.balancer.candidates:
            flow.abort()
            flow = None
        flow = flow or self._begin_flow(client)
        if flow is not None:
            flow.send(data)

    def send_to_client(self, datagram: bytes, client: Address) -> None:
        """Forward an endpoint's datagram to a client."""
        self._transport.sendto(datagram, client)

    def dismiss(self, flow: "_Flow") -> None:
        """Remove a flow that has ended, and release its endpoint; called by the flow."""
        self._connections.dismiss(flow)
        if self._flows.get(flow.client) is flow:
            del self._flows[flow.client]
        self.balancer.release(flow.endpoint)

    def close(self) -> None:
        """Receive no more datagrams, and end all flows."""
        for flow in list(self._flows.values()):
            flow.abort()
        self._transport.close()

    def _begin_flow(self, client: Address) -> "_Flow | None":
        """Begin a flow of a client and return it; None without an endpoint and beyond the limit."""
        client_ip, _ = client
        endpoint = self.balancer.acquire(client_ip)
        if endpoint is None:
            return None
        try:
            flow = _Flow(self, client, endpoint)
        except OSError:  # no route to the endpoint, or no more open files
            self.balancer.release(endpoint)
            return None
        if not self._connections.admit(flow):
            flow.abort()
            return None
        self._flows[client] = flow
        return flow


class _Flow:
    """The socket that is connected to the endpoint of one client. Raises OSError if it cannot be created.

    Attributes:
        client: address and port of the client.
        endpoint: address and port of the endpoint.
    """

    def __init__(self, listener: DatagramListener, client: Address, endpoint: Address) -> None:
        self.client = client
        self.endpoint = endpoint
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.connect(endpoint)
        except OSError:
            self._socket.close()
            raise
        self._loop.add_reader(self._socket, self._forward_replies)
        self._used_at_s = self._loop.time()
        self._timer = self._loop.call_later(FLOW_IDLE_S, self._end_if_idle)

    def send(self, data: bytes) -> None:
        """Send a datagram to the endpoint; one that its socket has no room for is dropped, as UDP may."""
        self._used_at_s = self._loop.time()
        try:
            with contextlib.suppress(BlockingIOError):
                self._socket.send(data)
        except OSError:  # the endpoint refused an earlier datagram
            self.abort()

    def abort(self) -> None:
        """End the flow."""
        if self._socket.fileno() < 0:
            return
        self._timer.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._listener.dismiss(self)

    def _forward_replies(self) -> None:
        """Send datagrams of the endpoint to the client; end the flow if the endpoint refuses."""
        self._used_at_s = self._loop.time()
        try:
            for _ in range(DATAGRAMS_AT_ONCE):
                self._listener.send_to_client(self._socket.recv(MAX_DATAGRAM_BYTES), self.client)
        except BlockingIOError:
            return
        except OSError:  # the endpoint refused a datagram
            self.abort()

    def _end_if_idle(self) -> None:
        """End the flow if it had no datagram for FLOW_IDLE_S, else check again when that can be so."""
        remaining_s = self._used_at_s + FLOW_IDLE_S - self._loop.time()
        if remaining_s <= 0:
            self.abort()
        else:
            self._timer = self._loop.call_later(remaining_s, self._end_if_idle)


async def listen(address: Address, connections: ProxiedConnections, clock: Clock) -> DatagramListener:
    """Listen for datagrams on `address`. Raises OSError if the port is in use or not allowed."""
    _, port = address
    listener = DatagramListener(port, connections, clock)
    await asyncio.get_running_loop().create_datagram_endpoint(lambda: listener, local_addr=address)
    return listener
