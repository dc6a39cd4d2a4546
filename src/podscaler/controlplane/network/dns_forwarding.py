"""Forwards DNS queries for names outside the cluster to the machine's resolvers; called by `dns_server`.

A query takes at most `TIMEOUT_S` for each of at most `RESOLVERS_MAX` resolvers; responses are not cached.

Source: resolv.conf(5).
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

RESOLV_CONF: Final = Path("/etc/resolv.conf")
PORT: Final = 53
TIMEOUT_S: Final = 2.0
RESOLVERS_MAX: Final = 3
MESSAGE_MAX_BYTES: Final = 65_535
ID_BYTES: Final = 2
"""A message begins with its id, which the response repeats."""
LENGTH_BYTES: Final = 2
"""Over TCP a message is preceded by its length."""


def machine_resolvers(path: Path = RESOLV_CONF) -> tuple[str, ...]:
    """The first `RESOLVERS_MAX` addresses of `nameserver` lines; empty if the file cannot be read. Blocks."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    addresses = []
    for line in lines:
        keyword, *values = line.split() or [""]
        if keyword == "nameserver" and values:
            addresses.append(values[0])
    return tuple(addresses[:RESOLVERS_MAX])


class _ReplyReceiver(asyncio.DatagramProtocol):
    """The attribute `received` becomes the first datagram, or empty bytes if the resolver is not reachable."""

    def __init__(self) -> None:
        self.received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Set the response."""
        if not self.received.done():
            self.received.set_result(data)

    def error_received(self, exc: Exception) -> None:
        """Set an empty response: the resolver is not reachable."""
        if not self.received.done():
            self.received.set_result(b"")


async def query_by_udp(message: bytes, resolvers: Sequence[str], *, port: int = PORT) -> bytes:
    """The first response to `message`, sent over UDP to one resolver after the other; empty if none responds.

    Args:
        message: an encoded query.
        resolvers: their IP addresses.
        port: their port.
    """
    for resolver in resolvers:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                response = await _query_udp(message, resolver, port)
        except (TimeoutError, OSError):
            continue
        if response[:ID_BYTES] == message[:ID_BYTES]:
            return response
    return b""


async def _query_udp(message: bytes, resolver: str, port: int) -> bytes:
    """The response of a resolver over UDP, empty if it is not reachable. Raises OSError."""
    loop = asyncio.get_running_loop()
    transport, reply = await loop.create_datagram_endpoint(_ReplyReceiver, remote_addr=(resolver, port))
    try:
        transport.sendto(message)
        return await reply.received
    finally:
        transport.close()


async def query_by_tcp(message: bytes, resolvers: Sequence[str], *, port: int = PORT) -> bytes:
    """As `query_by_udp`, over TCP, for responses that are too long for a datagram; their ids are not compared."""
    for resolver in resolvers:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await _query_tcp(message, resolver, port)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            continue
    return b""


async def _query_tcp(message: bytes, resolver: str, port: int) -> bytes:
    """The response of a resolver over TCP. Raises OSError, asyncio.IncompleteReadError."""
    reader, writer = await asyncio.open_connection(resolver, port, limit=MESSAGE_MAX_BYTES)
    try:
        writer.write(len(message).to_bytes(LENGTH_BYTES, "big") + message)
        length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        return await reader.readexactly(length)
    finally:
        writer.transport.abort()
