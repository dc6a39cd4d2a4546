"""Defines the Transport protocol: sends requests to a server, returns a response whole or as a stream of lines.

`client.client` sends requests to API servers through it; `podscaler.adapter` and `podscaler.sources` use it for other
HTTP servers, too. `HttpTransport` is the real one; `podscaler.testing.transport.ScriptedTransport` is the fake that
passes the same contract tests; wrappers, such as a limit or a trace, derive from WrappedTransport. Rules of every
transport:

1. A response of any status is returned; only the lack of a response is a TransportError.
2. Paths and queries are sent exactly as given (they are escaped already).
3. Headers of responses are found by their names in lower case.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from podscaler.base.errors import StatusError


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request to the server of a transport.

    Attributes:
        method: `GET`, ...
        path: absolute and escaped.
        query: encoded, without the question mark; may be empty.
        body: the encoded body; None if the request has none.
        headers: headers besides those that every request of the transport has.
        timeout_s: the limit for the whole request; None for no limit (streams).
    """

    method: str
    path: str
    query: str = ""
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None = None

    @property
    def target(self) -> str:
        """Path and query, as they stand in the request line."""
        return f"{self.path}?{self.query}" if self.query else self.path


@dataclass(frozen=True, slots=True)
class Response:
    """One response, read to its end; `headers` by names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ResponseStream(Protocol):
    """A response that is still arriving."""

    @property
    def status(self) -> int:
        """The HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by names in lower case."""
        ...

    async def read(self) -> bytes:
        """All of the body (for failures, which are short). Raises TransportError."""
        ...

    def batches(self) -> AsyncIterator[list[bytes]]:
        """The body's lines, without line ends and empty lines; a batch are those that arrived together.

        Raises TransportError.
        """
        ...


class Transport(Protocol):
    """Sends requests to one server; implementations obey the module's rules."""

    @property
    def server(self) -> str:
        """Where requests go: `https://host:port`, perhaps with a path."""
        ...

    async def request(self, request: Request) -> Response:
        """The response. Raises TransportError."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """The response as it arrives; entering and reading may raise TransportError."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class WrappedTransport:
    """Passes everything to another transport: the base of wrappers, which override what they change.

    Args:
        transport: sends the requests; closed with this one.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def server(self) -> str:
        """The URL of the wrapped transport's server."""
        return self._transport.server

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises TransportError."""
        return await self._transport.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """As in Transport."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """As in Transport."""
        await self._transport.close()


class TransportError(StatusError):
    """A request without a response: `Get "<URL>": <cause>`, with code 0.

    Args:
        request: the request.
        server: the transport's server, the beginning of the URL.
        cause: what happened, in the words of Go's net/http.
        broken: whether an established connection was lost, so that the same request may succeed on another.
    """

    def __init__(self, request: Request, *, server: str, cause: str, broken: bool = False) -> None:
        super().__init__(f'{request.method.capitalize()} "{server}{request.target}": {cause}', code=0)
        self.cause = cause
        self.broken = broken
