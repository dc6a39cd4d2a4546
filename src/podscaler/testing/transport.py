"""A fake transport with scripted responses, for tests of clients.

`ScriptedTransport` implements `podscaler.kube.transport.transport.Transport` and passes its contract tests. After
`transport.on("GET", "/api/v1/pods", json_answer({"items": []}))` a Client of it reads an empty list of pods.
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
    """A scripted failure: the cause as Go words it, and whether an established connection was lost (`broken`)."""

    cause: str
    broken: bool = False

    def error(self, request: Request, server: str) -> TransportError:
        """The error that the transport raises for it."""
        return TransportError(request, server=server, cause=self.cause, broken=self.broken)


class Feed:
    """The body of a watch, to which the test sends lines; lines that are not read yet are queued."""

    def __init__(self, *lines: bytes) -> None:
        self._queue: asyncio.Queue[list[bytes] | TransportFailure | None] = asyncio.Queue()
        self.send(*lines)

    def send(self, *lines: bytes) -> None:
        """Send `lines` in one batch."""
        if lines:
            self._queue.put_nowait(list(lines))

    def end(self) -> None:
        """End the response normally."""
        self._queue.put_nowait(None)

    def cut(self, cause: str = "EOF") -> None:
        """Break the connection."""
        self._queue.put_nowait(TransportFailure(cause, broken=True))

    async def next(self) -> list[bytes] | TransportFailure | None:
        """The next batch of lines, a failure, or None for the end; waits for it."""
        return await self._queue.get()


Reply = Response | TransportFailure | Feed
"""What a request gets: a response, a failure, or (a watch only) a Feed."""
Script = Reply | Callable[[Request], Reply]
"""A reply, or a function that makes it of the request."""


def json_answer(value: Any, status: int = 200) -> Response:
    """A response with `value` as JSON."""
    return Response(status, {"content-type": "application/json"}, msgspec.json.encode(value))


@dataclass
class ScriptedTransport:
    """A transport with scripted responses; a path without a script is 404 in plain text.

    Attributes:
        requests: all requests, in order.
    """

    server: str = "https://10.0.0.1:443"
    requests: list[Request] = field(default_factory=list)
    _scripts: dict[tuple[str, str], list[Script]] = field(default_factory=dict)

    def on(self, method: str, path: str, *scripts: Script) -> None:
        """Reply to requests of `method` to `path` (without query) with `scripts` in turn; the last one is repeated."""
        self._scripts[method, path] = list(scripts)

    def asked(self, method: str = "") -> list[str]:
        """Path and query of the requests (of `method`) so far."""
        return [request.target for request in self.requests if method in ("", request.method)]

    async def request(self, request: Request) -> Response:
        """The scripted response. Raises TransportError."""
        reply = self._reply(request)
        await asyncio.sleep(0)
        if isinstance(reply, Response):
            return reply
        assert isinstance(reply, TransportFailure), "a request that is no watch met a Feed"
        raise reply.error(request, self.server)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        """The scripted stream: a Feed, or the lines of a Response. Raises TransportError."""
        reply = self._reply(request)
        await asyncio.sleep(0)
        if isinstance(reply, TransportFailure):
            raise reply.error(request, self.server)
        yield ScriptedStream(self.server, request, reply)

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _reply(self, request: Request) -> Reply:
        """Record a request, and take its next script, unless that is the last one, which stays."""
        self.requests.append(request)
        scripts = self._scripts.get((request.method, request.path))
        if not scripts:
            return Response(404, {"content-type": "text/plain"}, b"404 page not found\n")
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        return script if isinstance(script, Reply) else script(request)


class ScriptedStream:
    """The response to a watch: the lines of a Feed or of a Response."""

    def __init__(self, server: str, request: Request, reply: Response | Feed) -> None:
        self._server = server
        self._request = request
        self._reply = reply
        self.status = reply.status if isinstance(reply, Response) else 200
        self.headers: Mapping[str, str] = reply.headers if isinstance(reply, Response) else {}

    async def read(self) -> bytes:
        """The body of a Response; empty for a Feed."""
        return self._reply.body if isinstance(self._reply, Response) else b""

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Yield batches of lines as they arrive. Raises TransportError if the Feed is cut."""
        if isinstance(self._reply, Response):
            yield [line for line in self._reply.body.split(b"\n") if line]
            return
        while (batch := await self._reply.next()) is not None:
            if isinstance(batch, TransportFailure):
                raise batch.error(self._request, self._server)
            yield batch
