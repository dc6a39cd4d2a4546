"""A transport that answers from a script: the fake of `podscaler.kube.transport.transport` for tests of whatever uses a
client.

It passes the contract tests that the real transport passes. Requests are kept in `requests`, in order.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podscaler.kube.transport.transport import Request, Response, ResponseStream, TransportError


@dataclass(frozen=True, slots=True)
class TransportFailure:
    """A reply that never comes: the cause in Go's words."""

    cause: str
    broken: bool = False


class Feed:
    """A stream that the test feeds with lines, and ends or cuts when it likes; lines that nobody read yet wait."""

    def __init__(self, *lines: bytes) -> None:
        self._queue: asyncio.Queue[list[bytes] | TransportFailure | None] = asyncio.Queue()
        self.send(*lines)

    def send(self, *lines: bytes) -> None:
        """Let `lines` arrive, together."""
        if lines:
            self._queue.put_nowait(list(lines))

    def end(self) -> None:
        """End the answer in good order."""
        self._queue.put_nowait(None)

    def cut(self, cause: str = "EOF") -> None:
        """Break the connection."""
        self._queue.put_nowait(TransportFailure(cause, broken=True))

    async def next(self) -> list[bytes] | TransportFailure | None:
        """What the reader gets next."""
        return await self._queue.get()


Reply = Response | TransportFailure | Feed
Script = Reply | Callable[[Request], Reply]


def json_answer(value: Any, status: int = 200) -> Response:
    """An answer with `value` as JSON."""
    return Response(status, {"content-type": "application/json"}, msgspec.json.encode(value))


@dataclass
class ScriptedTransport:
    """See the module; paths that nobody scripted are 404 in plain text."""

    server: str = "https://10.0.0.1:443"
    requests: list[Request] = field(default_factory=list)
    _scripts: dict[tuple[str, str], list[Script]] = field(default_factory=dict)

    def on(self, method: str, path: str, *scripts: Script) -> None:
        """Answer requests of `method` to `path` (without query) by `scripts` in turn; the last one stays."""
        self._scripts[method, path] = list(scripts)

    def asked(self, method: str = "") -> list[str]:
        """Path and query of the requests (of `method`) so far."""
        return [request.target for request in self.requests if method in ("", request.method)]

    async def request(self, request: Request) -> Response:
        """The scripted answer. Raises TransportError."""
        reply = self._reply(request)
        await asyncio.sleep(0)
        if isinstance(reply, Response):
            return reply
        assert isinstance(reply, TransportFailure), "a request that is no watch met a Feed"
        raise TransportError(request, server=self.server, cause=reply.cause, broken=reply.broken)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        """The scripted stream; an Answer is a stream that is over soon."""
        reply = self._reply(request)
        await asyncio.sleep(0)
        if isinstance(reply, TransportFailure):
            raise TransportError(request, server=self.server, cause=reply.cause, broken=reply.broken)
        yield ScriptedStream(self.server, request, reply)

    async def close(self) -> None:
        """Nothing is open."""

    def _reply(self, request: Request) -> Reply:
        self.requests.append(request)
        scripts = self._scripts.get((request.method, request.path))
        if not scripts:
            return Response(404, {"content-type": "text/plain"}, b"404 page not found\n")
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        return script if isinstance(script, Reply) else script(request)


class ScriptedStream:
    """The answer to a watch: what a Feed is fed with, or the lines of an Answer."""

    def __init__(self, server: str, request: Request, reply: Response | Feed) -> None:
        self._server = server
        self._request = request
        self._reply = reply
        self.status = reply.status if isinstance(reply, Response) else 200
        self.headers: Mapping[str, str] = reply.headers if isinstance(reply, Response) else {}

    async def read(self) -> bytes:
        """The body of an Answer."""
        return self._reply.body if isinstance(self._reply, Response) else b""

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Lines as they come. Raises TransportError where the Feed is cut."""
        if isinstance(self._reply, Response):
            yield [line for line in self._reply.body.split(b"\n") if line]
            return
        while (batch := await self._reply.next()) is not None:
            if isinstance(batch, TransportFailure):
                raise TransportError(self._request, server=self._server, cause=batch.cause, broken=batch.broken)
            yield batch
