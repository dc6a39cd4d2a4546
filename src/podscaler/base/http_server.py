"""An HTTP server (aiohttp) with the limits of Go's net/http: timeouts, and terse errors for malformed requests.

Used by the embedded API server and by the endpoints of the controller and the adapter. The TLS handshake of a `Site`
may take HEAD_TIMEOUT_S; so may the request line with the headers, from their first byte (for the first request, from
the connection). A connection may be idle for IDLE_TIMEOUT_S between two requests. After a timeout it is closed
without a response. A server that stops waits CLOSE_TIMEOUT_S at most for clients to close TLS connections, and then
resets them. A malformed request gets `400 Bad Request`, one with a line that is too long 431. Neither the
response nor the log repeats any part of it: the malformed line may contain a token.

Source: ReadHeaderTimeout and IdleTimeout of kube-apiserver; Go's net/http, which sends no `Server` header.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from socket import socket
from ssl import SSLContext
from typing import Final

from aiohttp import http_exceptions, web, web_protocol
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import HttpRequestParserPy, RawRequestMessage
from aiohttp.http_writer import HttpVersion11
from aiohttp.streams import StreamReader

HEAD_TIMEOUT_S: Final = 32.0
IDLE_TIMEOUT_S: Final = 90.0
CLOSE_TIMEOUT_S: Final = 0.5
"""The limits that the module's docstring explains."""
LINE_MAX_BYTES: Final = 64 * 1024
"""The longest request line, and the longest header."""
USUAL_METHODS: Final = tuple(f"{name} ".encode() for name in ("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"))
"""The beginnings of the heads that aiohttp's usual parser, which is the faster one, reads."""
_ANY_METHOD: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64} /")
"""The beginning of a head with any method: a token of RFC 9110, and a path."""
LOGGER: Final = logging.getLogger(f"{__name__}.http")
"""The logger that is passed to aiohttp."""

_log = logging.getLogger(__name__)


class _WithoutContents(logging.Filter):
    """Drops records about malformed requests; logs at level INFO only that there was one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, http_exceptions.HttpProcessingError):
            return True
        _log.info("a request could not be read as HTTP (%s)", type(error).__name__)
        return False


LOGGER.addFilter(_WithoutContents())


class Server(web.Server):
    """aiohttp's low-level server with the limits of this module, for `web.ServerRunner` or a `Site`.

    Args:
        handler: returns the response to a request.
    """

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(
            handler,
            handler_cancellation=True,
            auto_decompress=False,  # kube-apiserver does not decompress bodies either
            keepalive_timeout=IDLE_TIMEOUT_S,
            max_line_size=LINE_MAX_BYTES,
            max_field_size=LINE_MAX_BYTES,
            access_log=None,
            logger=LOGGER,
            request_factory=self._make_request,
        )
        self._open_connections: dict[web.RequestHandler, asyncio.Transport] = {}
        """The connections that are not closed, which aiohttp forgets when it begins to close them."""
        self._is_stopping = False
        self._all_closed = asyncio.Event()

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Called by the handler of a new connection."""
        super().connection_made(handler, transport)
        self._open_connections[handler] = transport
        if self._is_stopping:  # accepted before the server stopped listening
            transport.abort()

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Called by the handler of a connection that is closed."""
        super().connection_lost(handler, exc)
        self._open_connections.pop(handler, None)
        if not self._open_connections:
            self._all_closed.set()

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the method of aiohttp
        """Close all connections; called by the runner, which has closed the listening sockets.

        Args:
            timeout: seconds that requests in progress may take.
        """
        self._is_stopping = True
        await asyncio.sleep(0)  # handlers of the newest connections begin to wait for a request, which ends the wait
        self.pre_shutdown()
        await super().shutdown(timeout)
        if self._open_connections:
            self._all_closed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), CLOSE_TIMEOUT_S)
        for transport in list(self._open_connections.values()):
            transport.abort()
        await asyncio.sleep(0)  # the event loop closes aborted connections in its next turn

    def __call__(self) -> web.RequestHandler:
        """The handler of a new connection; called by asyncio."""
        return _Handler(self, loop=self._loop, **self._kwargs)

    def _make_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        """Called by aiohttp for each request; a malformed one gets a response of HTTP/1.1, too."""
        if message is web_protocol.ERROR:  # aiohttp's placeholder for a malformed request
            message = message._replace(version=HttpVersion11)
        return _Request(message, payload, protocol, writer, task, self._loop)


class Site(web.SockSite):
    """Accepts connections for a runner on a bound socket, with a limit for TLS handshakes.

    Args:
        runner: has the `Server`.
        listener: the bound socket.
        tls: the TLS context; None for plain HTTP.
        backlog: the number of connections that wait to be accepted.
    """

    def __init__(self, runner: web.BaseRunner, listener: socket, tls: SSLContext | None, *, backlog: int) -> None:
        super().__init__(runner, listener, ssl_context=tls, backlog=backlog)

    async def start(self) -> None:
        """Begin to accept connections."""
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


class _AnyMethodParser(HttpRequestParserPy):
    """Reads requests with any method, spelled as it was sent; aiohttp's usual parser only reads those that it knows."""

    def parse_message(self, lines: list[bytes]) -> RawRequestMessage:
        """Called by aiohttp with the lines of a head. Raises HttpProcessingError."""
        return super().parse_message(lines)._replace(method=lines[0].partition(b" ")[0].decode())


class _Request(web.BaseRequest):
    """A request whose response has no `Server` header."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """Called by aiohttp when the response has its default headers, and before they are sent."""
        response.headers.popall("Server", None)


class _Handler(web.RequestHandler):
    """Serves one connection; closes it if the head of a request takes longer than HEAD_TIMEOUT_S.

    `_parser`, `_request_count`, `_waiter` and `_read_bufsize` are attributes of aiohttp's handler.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _is_at_head = True
    """Whether the next bytes are surely the first of a head: all before them were heads of requests without body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the client has connected."""
        super().connection_made(transport)
        self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio with bytes of heads, of bodies or of an upgraded connection."""
        count_before = self._request_count
        is_head = self._is_at_head and (count_before == 0 or self._is_between_requests)
        if is_head and not data.startswith(USUAL_METHODS) and _ANY_METHOD.match(data):
            # kept for the rest of the connection
            self._parser = self._any_method_parser()
        super().data_received(data)
        self._is_at_head = is_head and self._request_count == count_before + 1 and data.endswith(b"\r\n\r\n")
        if self._request_count != count_before:
            self._stop_head_timer()
        elif self._is_between_requests and self._head_timer is None:
            self._start_head_timer()

    def _any_method_parser(self) -> "_AnyMethodParser":
        """A parser with the limits of aiohttp's usual one."""
        return _AnyMethodParser(
            self,
            self._loop,
            self._read_bufsize,
            max_line_size=LINE_MAX_BYTES,
            max_field_size=LINE_MAX_BYTES,
            payload_exception=web.RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=self._max_msg_queue_size,
        )

    def connection_lost(self, exc: BaseException | None) -> None:
        """Called by asyncio: the connection is closed."""
        self._stop_head_timer()
        super().connection_lost(exc)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The response to a failed request, after which the connection is closed."""
        if isinstance(exc, http_exceptions.HttpProcessingError):
            is_large = isinstance(exc, http_exceptions.LineTooLong)
            code = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if is_large else HTTPStatus.BAD_REQUEST
            status, message = code.value, f"{code.value} {code.phrase}"
        return super().handle_error(request, status, exc, message)

    @property
    def _is_between_requests(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    def _start_head_timer(self) -> None:
        self._head_timer = self._loop.call_later(HEAD_TIMEOUT_S, self._close_if_no_request)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_if_no_request(self) -> None:
        self._head_timer = None
        if self._is_between_requests:
            self.force_close()
