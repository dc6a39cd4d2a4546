"""One proxied TCP connection: a client's side and an endpoint's side that carry each other's bytes.

`listener.Listener` makes a `ClientSide` for each connection that it accepts. Rules:

1. Bytes of the client wait unread until an endpoint has accepted; an endpoint that refuses is passed over for the next.
   Nothing has been sent then, so nothing can be sent twice.
2. All candidates refuse: the client waits up to `LONGEST_WAIT_S` for other endpoints (a rolling update is ahead of the
   slices by moments), then it is reset. No candidates at all: reset at once.
3. Back-pressure: what one side cannot take yet stops the reading of the other; a connection buffers a few 100 KiB.
4. Half-close is passed on: a side that has ended still receives. A side that is reset resets the other.
5. Endpoints that leave keep their connections until one side closes.
"""

import asyncio
import contextlib
import logging
import socket
import struct
from typing import Protocol, cast

from podscaler.controlplane.network.balancer import Address, Balancer

CONNECT_TIMEOUT_S = 2.0
LONGEST_WAIT_S = 1.0
BUFFER_BYTES = 64 * 1024
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

_log = logging.getLogger(__name__)


class ConnectionCounter(Protocol):
    """Who counts connections, and may refuse one more."""

    def admit(self, side: "ClientSide") -> bool:
        """Whether this connection may be served."""
        ...

    def dismiss(self, side: "ClientSide") -> None:
        """An admitted connection is over."""
        ...


class _Side(asyncio.Protocol):
    """One of the two connections; `peer` is the other one, from when both are there until one is gone."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.peer: _Side | None = None
        self.has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        """Bytes for the other side."""
        if self.peer is not None:
            self.peer.transport.write(data)

    def eof_received(self) -> bool:
        """This side sends no more; the connection stays open until the other side has ended too."""
        self.has_ended = True
        if self.peer is None:
            return True
        if self.peer.has_ended:
            self.peer.transport.close()
            return False
        with contextlib.suppress(OSError):  # the other side is gone already, its connection_lost is to come
            self.peer.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        """This side takes no more for now."""
        if self.peer is not None:
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        """This side takes bytes again."""
        if self.peer is not None:
            self.peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """This side is gone."""
        peer, self.peer = self.peer, None
        if peer is None:
            return
        peer.peer = None
        if exc is None:
            peer.transport.close()
        else:
            reset(peer.transport)


class EndpointSide(_Side):
    """The connection to the endpoint; counts as one of its connections from the attempt until it is gone."""

    def __init__(self, balancer: Balancer, address: Address) -> None:
        super().__init__()
        self._balancer = balancer
        self._address: Address | None = address

    def connection_lost(self, exc: Exception | None) -> None:
        """This side is gone."""
        super().connection_lost(exc)
        self.let_go()

    def let_go(self) -> None:
        """Count no longer; also where there never was a connection."""
        address, self._address = self._address, None
        if address is not None:
            self._balancer.release(address)


class ClientSide(_Side):
    """The accepted connection.

    Args:
        balancer: where endpoints come from.
        accounts: who is told that it came and went.
    """

    def __init__(self, balancer: Balancer, accounts: ConnectionCounter) -> None:
        super().__init__()
        self._balancer = balancer
        self._accounts = accounts
        self._early: list[bytes] = []
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Look for an endpoint, reading nothing meanwhile."""
        super().connection_made(transport)
        self.transport.pause_reading()
        if self._accounts.admit(self):
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
        else:
            reset(self.transport)

    def data_received(self, data: bytes) -> None:
        """Bytes for the endpoint; those that a loop reads in spite of the pause wait for it."""
        if self.peer is None:
            self._early.append(data)
        else:
            self.peer.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, perhaps before there was an endpoint."""
        if self._connecting is not None:
            self._connecting.cancel()
        super().connection_lost(exc)
        self._accounts.dismiss(self)

    def abort(self) -> None:
        """Reset both sides."""
        if self.peer is not None:
            reset(self.peer.transport)
        reset(self.transport)

    async def _connect(self) -> None:
        peername = self.transport.get_extra_info("peername")
        try:
            peer = await self._find_peer(peername[0] if peername else "")
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
            self._join(peer)

    async def _find_peer(self, client: str) -> EndpointSide | None:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + LONGEST_WAIT_S
        while self._balancer.candidates:
            peer = await self._try_all(client)
            if peer is not None:
                return peer
            try:
                async with asyncio.timeout_at(give_up_at):
                    await self._balancer.changed()
            except TimeoutError:
                break
        return None

    async def _try_all(self, client: str) -> EndpointSide | None:
        tried: set[Address] = set()
        while (address := self._balancer.acquire(client, tried)) is not None:
            tried.add(address)
            side = EndpointSide(self._balancer, address)
            if await _reach(side, address):
                return side
        return None

    def _join(self, peer: EndpointSide) -> None:
        self.peer, peer.peer = peer, self
        for data in self._early:
            peer.transport.write(data)
        self._early.clear()
        if self.has_ended:
            peer.transport.write_eof()
        self.transport.resume_reading()


async def _reach(side: EndpointSide, address: Address) -> bool:
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await asyncio.get_running_loop().create_connection(lambda: side, *address)
    except OSError:  # TimeoutError is one
        side.let_go()
        return False
    except asyncio.CancelledError:
        side.let_go()
        raise
    return True


def reset(transport: asyncio.Transport) -> None:
    """Close at once with a RST, so that the other end cannot take it for a complete answer."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):  # closed already
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    transport.abort()
