"""One proxied TCP connection: copies bytes between a client and an endpoint.

`port_listener.listen` creates a `ClientSide` for each accepted connection. `service_proxy` makes the one
`ProxiedConnections`, which also counts the UDP flows of `datagram_listener`. Rules:

1. The client's bytes stay unread until an endpoint has accepted the connection. If an endpoint refuses, the next one
   that the balancer chooses is tried; as nothing was sent, nothing can be sent twice.
2. If all candidates refuse, the client waits up to `ENDPOINT_WAIT_S` for other endpoints (during a rolling update the
   slices are slightly late), then it is reset. Without candidates it is reset at once.
3. Back-pressure: while one side cannot be written to, the other is not read; a connection buffers a few 100 KiB.
4. A half-close (FIN) is forwarded: a side that has ended still receives. A reset of one side resets the other.
5. Connections to removed endpoints stay open until one side closes.
6. What a side sends before both are joined is kept and forwarded then, its end too: servers may speak first, and uvloop
   delivers their bytes before it wakes the task that connects.
"""

import asyncio
import contextlib
import logging
import socket
import struct
from typing import Protocol, cast

from podscaler.controlplane.network.balancer import Address, Balancer

CONNECT_TIMEOUT_S = 2.0
"""For one endpoint."""
ENDPOINT_WAIT_S = 1.0
"""For another endpoint, where all candidates have refused (rule 2)."""
BUFFER_BYTES = 64 * 1024
"""From so many bytes that wait to be sent on, the other side is not read (rule 3)."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with a timeout of 0: closing sends a RST."""

_log = logging.getLogger(__name__)


class Abortable(Protocol):
    """A TCP connection or a UDP flow that can be ended at once."""

    def abort(self) -> None:
        """End the connection or flow at once."""


class ProxiedConnections:
    """All proxied TCP connections and UDP flows of this process; those beyond `limit` are refused.

    Attributes:
        refused: how many were refused because of the limit.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: set[Abortable] = set()
        self.refused = 0

    def __len__(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def admit(self, connection: Abortable) -> bool:
        """Count a connection; returns False if the limit is reached."""
        if len(self._open) >= self._limit:
            self.refused += 1
            is_power_of_two = self.refused & (self.refused - 1) == 0
            if is_power_of_two:  # a flood of connections is not a flood of log lines
                _log.warning("%d connections to Services refused: %d are open", self.refused, self._limit)
            return False
        self._open.add(connection)
        return True

    def dismiss(self, connection: Abortable) -> None:
        """Count a connection no longer."""
        self._open.discard(connection)

    def abort_all(self) -> None:
        """Reset every TCP connection and end every flow."""
        for connection in list(self._open):
            connection.abort()


class _Side(asyncio.Protocol):
    """One of the two TCP connections that a proxied connection joins.

    Attributes:
        peer: the other one, None while only one is open.
        has_ended: whether this side has sent its end (FIN).
    """

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.peer: _Side | None = None
        self.has_ended = False
        self._early_bytes: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the transport."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        """Forward bytes to the other side, or keep them until both are joined."""
        if self.peer is None:
            self._early_bytes.append(data)
        else:
            self.peer.transport.write(data)

    def join(self, peer: "_Side") -> None:
        """Join both sides, beginning with what each has received already (rule 6)."""
        self.peer, peer.peer = peer, self
        self._forward_early_bytes()
        peer._forward_early_bytes()
        if self.has_ended and peer.has_ended:
            self.transport.close()
            peer.transport.close()
        elif self.has_ended:
            peer.transport.write_eof()
        elif peer.has_ended:
            self.transport.write_eof()

    def _forward_early_bytes(self) -> None:
        """Forward the bytes that were received before the sides were joined."""
        assert self.peer is not None
        for early_bytes in self._early_bytes:
            self.peer.transport.write(early_bytes)
        self._early_bytes.clear()

    def eof_received(self) -> bool:
        """Forward the end of this side; the connection stays open until both sides have ended."""
        self.has_ended = True
        if self.peer is None:
            return True
        if self.peer.has_ended:
            self.peer.transport.close()
            return False
        with contextlib.suppress(OSError):  # the other side is closed, and its connection_lost follows
            self.peer.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        """Stop reading the other side: this side's write buffer is full."""
        if self.peer is not None:
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read the other side again."""
        if self.peer is not None:
            self.peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other side; reset it if this side was lost by an error."""
        peer, self.peer = self.peer, None
        if peer is None:
            return
        peer.peer = None
        if exc is None:
            peer.transport.close()
        else:
            reset(peer.transport)


class EndpointSide(_Side):
    """The connection to the endpoint; it counts in the balancer from the attempt until it is closed."""

    def __init__(self, balancer: Balancer, address: Address) -> None:
        super().__init__()
        self._balancer = balancer
        self._address: Address | None = address

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the client's side and release the endpoint."""
        super().connection_lost(exc)
        self.release()

    def release(self) -> None:
        """Release the endpoint in the balancer, also if the connection could not be opened."""
        address, self._address = self._address, None
        if address is not None:
            self._balancer.release(address)


class ClientSide(_Side):
    """The connection accepted from the client.

    Args:
        balancer: chooses the endpoint.
        connections: counts and limits the connections of this process.
    """

    def __init__(self, balancer: Balancer, connections: ProxiedConnections) -> None:
        super().__init__()
        self._balancer = balancer
        self._connections = connections
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to an endpoint, without reading meanwhile."""
        super().connection_made(transport)
        self.transport.pause_reading()
        if self._connections.admit(self):
            self._connecting = asyncio.get_running_loop().create_task(self._connect_and_join())
        else:
            reset(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the endpoint's side, or stop connecting to one."""
        if self._connecting is not None:
            self._connecting.cancel()
        super().connection_lost(exc)
        self._connections.dismiss(self)

    def abort(self) -> None:
        """Reset both sides."""
        if self.peer is not None:
            reset(self.peer.transport)
        reset(self.transport)

    async def _connect_and_join(self) -> None:
        """Connect to an endpoint and join both sides; the client is reset if that fails."""
        client_address = self.transport.get_extra_info("peername")
        try:
            client_ip = client_address[0] if client_address else ""  # a client that is gone has no address
            peer = await self._connect_to_endpoint(client_ip)
        except Exception:
            _log.exception("a proxied connection failed")
            peer = None
        self._connecting = None
        if peer is None:
            reset(self.transport)
        elif self.transport.is_closing() or peer.transport.is_closing():
            reset(peer.transport)
            reset(self.transport)
        else:
            self.join(peer)
            self.transport.resume_reading()

    async def _connect_to_endpoint(self, client_ip: str) -> EndpointSide | None:
        """Connect to an endpoint and return its side; None (rule 2) if none accepts in time."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + ENDPOINT_WAIT_S
        while self._balancer.candidates:
            peer = await self._connect_to_first(client_ip)
            if peer is not None:
                return peer
            try:
                async with asyncio.timeout_at(deadline_s):
                    await self._balancer.wait_for_change()
            except TimeoutError:
                break
        return None

    async def _connect_to_first(self, client_ip: str) -> EndpointSide | None:
        """Connect to the first endpoint that accepts and return its side, None if all refuse."""
        tried: set[Address] = set()
        while (address := self._balancer.acquire(client_ip, tried)) is not None:
            tried.add(address)
            side = EndpointSide(self._balancer, address)
            if await _open_connection(side, address):
                return side
        return None


async def _open_connection(side: EndpointSide, address: Address) -> bool:
    """Connect `side` to an endpoint; returns False, and releases the endpoint, if it does not accept."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await asyncio.get_running_loop().create_connection(lambda: side, *address)
    except OSError:  # TimeoutError is one
        side.release()
        return False
    except asyncio.CancelledError:
        side.release()
        raise
    return True


def reset(transport: asyncio.Transport) -> None:
    """Close at once with a RST, so that the other end does not take it for the end of a complete response."""
    tcp_socket = transport.get_extra_info("socket")
    if tcp_socket is not None:
        with contextlib.suppress(OSError):  # closed already
            tcp_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    transport.abort()
