"""The one seam between podscaler and the network: a request goes in, an answer or a stream of lines comes out.

`client.client` is the only caller. `HttpTransport` is the real one; `podscaler.testing.transport.ScriptedTransport` is
the fake that passes the same contract tests. Rules of every transport:

1. An answer of any status is an answer; only what prevents an answer is a TransportError.
2. Paths and queries are sent exactly as given (they are escaped already).
3. Headers of answers are found by their names in lower case.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from podscaler.base.errors import StatusError


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        method: `GET`, ...
        path: absolute and escaped.
        query: encoded, without the question mark; may be empty.
        body: None without one.
        headers: besides those that every request of the transport carries.
        timeout_s: for the whole request; None: without limit (streams).
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
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ResponseStream(Protocol):
    """An answer that is still arriving."""

    @property
    def status(self) -> int:
        """The HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers; look them up by names in lower case."""
        ...

    async def read(self) -> bytes:
        """All of the body (for failures, which are short)."""
        ...

    def batches(self) -> AsyncIterator[list[bytes]]:
        """The body's lines as they arrive, without line ends and empty lines; ends where the server ends the answer."""
        ...


class Transport(Protocol):
    """See the module's rules."""

    @property
    def server(self) -> str:
        """Where requests go: `https://host:port`, perhaps with a path."""
        ...

    async def request(self, request: Request) -> Response:
        """The answer. Raises TransportError."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """The answer as it arrives; entering and reading may raise TransportError."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class TransportError(StatusError):
    """No answer: `Get "<URL>": <cause>`, with code 0.

    Args:
        request: what was asked.
        server: where.
        cause: Go's words for what happened.
        broken: whether an established connection was lost, so that the same request may succeed on another.
    """

    def __init__(self, request: Request, *, server: str, cause: str, broken: bool = False) -> None:
        super().__init__(f'{request.method.capitalize()} "{server}{request.target}": {cause}', code=0)
        self.cause = cause
        self.broken = broken
