"""aiohttp's HTTP server with the limits of Go's: timeouts of request heads, and responses to malformed ones.

Used by the API server and by the controller's own endpoints. A client has `HEAD_TIMEOUT_S` for its TLS handshake (where
a `Site` listens), as long for each head from its first byte (the first head: from the connection), and `IDLE_TIMEOUT_S`
between two requests; after that the connection is closed without a response. A malformed request gets `400 Bad
Request`, a line that is too long 431, and nothing of the request is repeated in the response or in the log: the
malformed line may hold a token.

Source: upstream's ReadHeaderTimeout and IdleTimeout; Go's net/http, whose server names itself in no header.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from socket import socket
from ssl import SSLContext
from typing import Final

from aiohttp import http_exceptions, web, web_protocol
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.http_writer import HttpVersion11
from aiohttp.streams import StreamReader

HEAD_TIMEOUT_S: Final = 32.0
IDLE_TIMEOUT_S: Final = 90.0
LINE_MAX_BYTES: Final = 64 * 1024
LOGGER: Final = logging.getLogger(f"{__name__}.http")
"""aiohttp's logger."""

_log = logging.getLogger(__name__)


class _WithoutContents(logging.Filter):
    """Drops records about malformed requests; logs at level INFO only that there was one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        fault = record.exc_info[1] if record.exc_info else None
        if not isinstance(fault, http_exceptions.HttpProcessingError):
            return True
        _log.info("a request could not be read as HTTP (%s)", type(fault).__name__)
        return False


LOGGER.addFilter(_WithoutContents())


class Server(web.Server):
    """aiohttp's low-level server.

    Args:
        handler: answers each request.
    """

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(
            handler,
            handler_cancellation=True,
            auto_decompress=False,  # upstream takes no compressed bodies either: what they hold is no JSON
            keepalive_timeout=IDLE_TIMEOUT_S,
            max_line_size=LINE_MAX_BYTES,
            max_field_size=LINE_MAX_BYTES,
            access_log=None,
            logger=LOGGER,
            request_factory=self._request,
        )

    def __call__(self) -> web.RequestHandler:
        """A handler for one more connection."""
        return _Handler(self, loop=self._loop, **self._kwargs)

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        if message is web_protocol.ERROR:  # aiohttp's placeholder for a malformed request
            message = message._replace(version=HttpVersion11)
        return _Request(message, payload, protocol, writer, task, self._loop)


class Site(web.SockSite):
    """A listener of a runner, with a limit for TLS handshakes."""

    def __init__(self, runner: web.BaseRunner, listener: socket, tls: SSLContext | None, *, backlog: int) -> None:
        super().__init__(runner, listener, ssl_context=tls, backlog=backlog)

    async def start(self) -> None:
        """Listen."""
        await web.BaseSite.start(self)
        server = self._runner.server
        assert server is not None
        self._server = await asyncio.get_running_loop().create_server(
            server,
            sock=self._sock,
            ssl=self._ssl_context,
            backlog=self._backlog,
            ssl_handshake_timeout=HEAD_TIMEOUT_S if self._ssl_context is not None else None,
        )


class _Request(web.BaseRequest):
    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """Called by aiohttp when the response has its default headers, and before they are sent."""
        response.headers.popall("Server", None)


class _Handler(web.RequestHandler):
    """One connection."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Serve the connection from now on."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes from the client: parts of heads, of bodies or of an upgraded connection."""
        before = self._request_count
        super().data_received(data)
        if self._request_count != before:
            self._stop_waiting()
        elif self._is_between_requests and self._head_timer is None:
            self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer; the connection is closed after it."""
        if isinstance(exc, http_exceptions.HttpProcessingError):
            is_large = isinstance(exc, http_exceptions.LineTooLong)
            fault = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if is_large else HTTPStatus.BAD_REQUEST
            status, message = fault.value, f"{fault.value} {fault.phrase}"
        return super().handle_error(request, status, exc, message)

    @property
    def _is_between_requests(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    def _await_head(self) -> None:
        self._head_timer = self._loop.call_later(HEAD_TIMEOUT_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self._is_between_requests:
            self.force_close()
