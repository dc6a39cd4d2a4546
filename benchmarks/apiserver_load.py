"""The load of the API server's benchmark: requests made of bytes beforehand, over TLS, each connection one at a time.

`benchmarks.apiserver_cases` sends the same bytes to every server. Nothing of the answers is decoded: a client that
thinks about them would take the processor from the server beside it.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

ANSWER_WITHIN_S = 60.0
_HEAD_END = b"\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True)
class Address:
    """Where a server is, and how to come in."""

    host: str
    port: int
    token: str
    tls: ssl.SSLContext

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        """A request as it goes over the wire."""
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            f"Authorization: Bearer {self.token}",
            "Accept: application/json",
            "User-Agent: podscaler-benchmark",
        ]
        if body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join((*lines, "", "")).encode() + body


class Connection(asyncio.Protocol):
    """One connection, kept alive. Made by `connect`, which sets `transport`."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._answered: asyncio.Future[int] | None = None
        self._head = b""
        self._left_bytes = 0
        self._tail = b""
        self.received_bytes = 0

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionResetError("the server closed the connection"))

    async def exchange(self, request: bytes) -> int:
        """Send a request; returns the status once the whole answer is there. Raises OSError."""
        self._head, self._tail = b"", b""
        self._answered = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answered

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self.received_bytes += len(data)
        if self._head.endswith(_HEAD_END):
            self._take(data)
            return
        head, end, rest = (self._head + data).partition(_HEAD_END)
        self._head = head + end
        if end:
            self._left_bytes = _content_length(head)
            self._take(rest)

    def close(self) -> None:
        """Close it."""
        self.transport.abort()

    def _take(self, data: bytes) -> None:
        if self._left_bytes < 0:
            self._tail = (self._tail + data)[-len(_LAST_CHUNK) :]
            is_complete = self._tail == _LAST_CHUNK
        else:
            self._left_bytes -= len(data)
            is_complete = self._left_bytes == 0
        if is_complete and self._answered is not None and not self._answered.done():
            self._answered.set_result(int(self._head[9:12]))


class Watch(asyncio.Protocol):
    """One watch, which counts the events that come and forgets them. Made by `watch`, which sets `transport`.

    Args:
        tell: called with the number of events whenever some have come.
    """

    transport: asyncio.Transport

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._last = b""
        self.began: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio. Frames end with a line feed alone, lines of HTTP with a carriage return before it."""
        if not self.began.done():
            self.began.set_result(int(data[9:12]))
        joined = self._last + data
        self._last = data[-1:]
        if count := joined.count(b"}\n"):
            self._tell(count)

    def close(self) -> None:
        """Close it."""
        self.transport.abort()


def _content_length(head: bytes) -> int:
    """The length of a body, -1 for one in chunks."""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return -1


async def connect(address: Address) -> Connection:
    """A new connection. Raises OSError."""
    loop = asyncio.get_running_loop()
    transport, made = await loop.create_connection(Connection, address.host, address.port, ssl=address.tls)
    made.transport = transport
    return made


async def watch(address: Address, path: str, tell: Callable[[int], None]) -> Watch:
    """A watch that has begun. Raises OSError."""
    loop = asyncio.get_running_loop()
    transport, made = await loop.create_connection(lambda: Watch(tell), address.host, address.port, ssl=address.tls)
    made.transport = transport
    transport.write(address.request("GET", path))
    assert await made.began == 200, path
    return made


@dataclass
class Measured:
    """What a load saw: how long each request took, and the whole."""

    spans_s: list[float] = field(default_factory=list)
    wall_s: float = 0.0

    @property
    def count(self) -> int:
        """How many requests were answered."""
        return len(self.spans_s)

    def quantile_ms(self, which: float) -> float:
        """Of the spans."""
        return sorted(self.spans_s)[min(self.count - 1, int(which * self.count))] * 1000


async def run(address: Address, streams: Sequence[Iterator[bytes]], *, limit_s: float, expected: int) -> Measured:
    """Send every stream of requests over a connection of its own until they end or the time is up.

    Raises:
        OSError: the server closed a connection.
        SystemExit: an answer is not the expected one.
    """
    connections = [await connect(address) for _ in streams]
    measured = Measured()
    begun_s = time.perf_counter()
    until_s = begun_s + limit_s
    await asyncio.gather(
        *(
            _send(each, stream, until_s=until_s, expected=expected, spans_s=measured.spans_s)
            for each, stream in zip(connections, streams, strict=True)
        )
    )
    measured.wall_s = time.perf_counter() - begun_s
    for each in connections:
        each.close()
    return measured


async def _send(
    connection: Connection, stream: Iterator[bytes], *, until_s: float, expected: int, spans_s: list[float]
) -> None:
    for request in stream:
        begun_s = time.perf_counter()
        if begun_s >= until_s:
            return
        async with asyncio.timeout(ANSWER_WITHIN_S):
            status = await connection.exchange(request)
        if status != expected:
            raise SystemExit(f"{status} instead of {expected} for {request.partition(b' HTTP')[0].decode()}")
        spans_s.append(time.perf_counter() - begun_s)
