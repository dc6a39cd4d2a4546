"""Forwards DNS queries for names outside the cluster to the machine's resolvers; called by `server`.

Every query takes bounded time; responses are not cached.


Source: resolv.conf(5).
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

RESOLV_CONF: Final = Path("/etc/resolv.conf")
PORT: Final = 53
WITHIN_S: Final = 2.0
RESOLVERS_MAX: Final = 3
MESSAGE_MAX_BYTES: Final = 65_535


def machine_resolvers(path: Path = RESOLV_CONF) -> tuple[str, ...]:
    """The addresses of the machine's resolvers in order, empty without any. Blocks."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    words = [line.split() for line in lines]
    return tuple(word[1] for word in words if len(word) > 1 and word[0] == "nameserver")[:RESOLVERS_MAX]


class _Reply(asyncio.DatagramProtocol):
    """Waits for one datagram."""

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


async def ask(message: bytes, resolvers: Sequence[str], *, port: int = PORT) -> bytes:
    """The first response to `message`, which is sent over UDP to one resolver after the other; empty without any."""
    for resolver in resolvers:
        try:
            async with asyncio.timeout(WITHIN_S):
                answer = await _ask_one(message, resolver, port)
        except (TimeoutError, OSError):
            continue
        if answer[:2] == message[:2]:
            return answer
    return b""


async def _ask_one(message: bytes, resolver: str, port: int) -> bytes:
    loop = asyncio.get_running_loop()
    transport, reply = await loop.create_datagram_endpoint(_Reply, remote_addr=(resolver, port))
    try:
        transport.sendto(message)
        return await reply.received
    finally:
        transport.close()


async def ask_by_stream(message: bytes, resolvers: Sequence[str], *, port: int = PORT) -> bytes:
    """As `ask`, over TCP, for responses that are too long for UDP."""
    for resolver in resolvers:
        try:
            async with asyncio.timeout(WITHIN_S):
                return await _ask_stream(message, resolver, port)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            continue
    return b""


async def _ask_stream(message: bytes, resolver: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(resolver, port, limit=MESSAGE_MAX_BYTES)
    try:
        writer.write(len(message).to_bytes(2, "big") + message)
        length = int.from_bytes(await reader.readexactly(2), "big")
        return await reader.readexactly(length)
    finally:
        writer.transport.abort()
