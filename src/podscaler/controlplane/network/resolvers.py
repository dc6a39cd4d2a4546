"""The resolvers of this machine, which are asked for names outside the cluster.

`server` uses it. Every question takes bounded time; nothing is kept.

Source: resolv.conf(5).
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

RESOLV_CONF: Final = Path("/etc/resolv.conf")
PORT: Final = 53
WITHIN_S: Final = 2.0
ASKED_MAX: Final = 3
MESSAGE_MAX_BYTES: Final = 65_535


def machine_resolvers(path: Path = RESOLV_CONF) -> tuple[str, ...]:
    """The addresses of the machine's resolvers, in order. Blocks."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    words = [line.split() for line in lines]
    return tuple(word[1] for word in words if len(word) > 1 and word[0] == "nameserver")[:ASKED_MAX]


class _Reply(asyncio.DatagramProtocol):
    """Waits for one datagram."""

    def __init__(self) -> None:
        self.received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: object) -> None:
        """The answer."""
        if not self.received.done():
            self.received.set_result(data)

    def error_received(self, exc: Exception) -> None:
        """Nobody listens there."""
        if not self.received.done():
            self.received.set_result(b"")


async def ask(message: bytes, resolvers: Sequence[str], *, port: int = PORT) -> bytes:
    """The first answer to `message`, sent over UDP to one after the other; empty where none answers."""
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
    """As `ask`, over TCP, for answers that are too long for UDP."""
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
