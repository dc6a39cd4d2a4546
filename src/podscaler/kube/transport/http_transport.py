"""Sends HTTP/1.1 requests on a pool of kept-alive connections: the Transport over real connections.

`client.connect`, the adapter and the command line make one. It uses plain asyncio connections: what an API server's
client needs of HTTP is little, and a general library spends four fifths of its time on the rest. Rules:

1. A request goes out in one write, and the head that all requests share is encoded once.
2. Credentials that cannot be read are a TransportError, not a UsageError: they may be readable later.
3. After a 401 the credentials are renewed if possible, and `request` sends the request once more. `stream` does not:
   its caller sees the 401, and the next request has the new credentials.
4. A GET of `request` on a kept connection that the server had just closed is sent again on another; nothing else is.

Source: docs/spec/controller.md 10 (REST requests); docs/decisions/http-client.md.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podscaler.base.errors import UsageError
from podscaler.kube.transport import dialing, network_errors, tls
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.connection import Connection
from podscaler.kube.transport.connection_pool import Pool
from podscaler.kube.transport.http_response import HTTPResponse
from podscaler.kube.transport.network_errors import NoResponse
from podscaler.kube.transport.transport import Request, Response, ResponseStream, TransportError

GZIP = b"Accept-Encoding: gzip\r\n"
"""For whole responses only: compressing watch events one by one costs the server more than it saves."""
HEADERS_TIMEOUT_S = 60.0
"""The limit for the head of a stream; its body has none."""


async def connect(config: Config, *, user_agent: str) -> "HttpTransport":
    """A transport to the server of `config`; no connection is made yet. Raises UsageError for unusable certificates."""
    pem = None
    if config.client_certificate_pem and config.client_key_pem:
        pem = config.client_certificate_pem + b"\n" + config.client_key_pem
    context = await asyncio.to_thread(tls.server_context, config, pem) if config.server.startswith("https:") else None
    return HttpTransport(config, context, user_agent=user_agent, pem=pem)


class HttpTransport:
    """Sends requests over a pool of connections, by the module's rules; a Transport (`podscaler.kube.transport`).

    Args:
        config: the server, and the credentials, which are read before each request.
        context: None for plain HTTP.
        user_agent: sent with every request.
        pem: the client certificate and key in `context`; None if there is no client certificate.
    """

    def __init__(
        self, config: Config, context: ssl.SSLContext | None, *, user_agent: str, pem: bytes | None = None
    ) -> None:
        self.server = config.server
        self._config = config
        self._context = context
        self._pool = Pool(self._dial)
        self._pem = pem
        self._target_prefix = _target_prefix(config)
        self._stream_header_lines = _shared_headers(config, user_agent)
        self._request_header_lines = self._stream_header_lines + (GZIP if config.compression else b"")
        self._last_authorization: str | None = None
        self._authorization_line = b""  # the encoded header of `_last_authorization`

    async def request(self, request: Request) -> Response:
        """The response. Raises TransportError."""
        try:
            authorization = await self._read_credentials()
            response = await self._send_pooled(request, authorization)
            if response.status == 401 and self._config.credentials.renew_after_401(authorization):
                response = await self._send_pooled(request, await self._read_credentials())
            return response
        except NoResponse as error:
            raise self.failure(request, error) from error

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        """The response as it arrives; entering and reading may raise TransportError."""
        try:
            response_stream = await self._open_stream(request)
        except NoResponse as error:
            raise self.failure(request, error) from error
        try:
            yield response_stream
        finally:
            response_stream.close()
            self._pool.release(response_stream.connection)

    @property
    def connections_in_use(self) -> int:
        """The number of connections that serve a request now."""
        return self._pool.in_use

    async def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        await asyncio.sleep(0)  # asyncio closes the sockets in its next iteration

    async def _read_credentials(self) -> str | None:
        """The Authorization header, or None; a renewed client certificate is used from now on. Raises NoResponse."""
        try:
            if self._config.certificates is not None:
                await self._renew_certificate(await self._config.certificates.pem())
            return await self._config.credentials.authorization()
        except UsageError as error:
            raise NoResponse(f"getting credentials: {error}") from error

    async def _renew_certificate(self, pem: bytes | None) -> None:
        """Use a client certificate for new connections, if it is another one than before. Raises UsageError."""
        if pem == self._pem or self._context is None:
            return
        self._context = await asyncio.to_thread(tls.server_context, self._config, pem)
        self._pem = pem
        self._pool.retire()

    async def _send_pooled(self, request: Request, authorization: str | None) -> Response:
        """Send a request on a pooled connection; the whole response. Raises NoResponse."""
        encoded_request = self._encode(request, authorization, self._request_header_lines)
        connection = self._pool.take_idle() or await self._acquire(request.timeout_s)
        try:
            response = await self._exchange(connection, encoded_request, request)
        finally:
            self._pool.release(connection)
        return Response(response.status, response.headers, response.body())

    async def _exchange(self, connection: Connection, encoded_request: bytes, request: Request) -> HTTPResponse:
        """The response on this connection, or on a new one (rule 4). Raises NoResponse."""
        try:
            return await connection.send(encoded_request, request.timeout_s)
        except NoResponse as error:
            was_kept = connection.request_count > 0  # a new connection that the server closes is an error
            if not (was_kept and error.unanswered and error.broken and request.method == "GET"):
                raise
        new_connection = await self._pool.dial_new()
        try:
            return await new_connection.send(encoded_request, request.timeout_s)
        finally:
            self._pool.release(new_connection)

    async def _acquire(self, timeout_s: float | None) -> Connection:
        """A connection of the pool, at the latest after `timeout_s` (None: no limit). Raises NoResponse."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._pool.acquire()
        except TimeoutError as error:
            raise NoResponse(network_errors.TIMED_OUT) from error

    async def _dial(self) -> Connection:
        """A new connection, with the client certificate of now. Raises NoResponse."""
        return await dialing.dial(self._config, self._context)

    async def _open_stream(self, request: Request) -> "_HttpStream":
        """Send a request; its response once the head has arrived, with the connection in use. Raises NoResponse."""
        authorization = await self._read_credentials()
        connection = await self._acquire(HEADERS_TIMEOUT_S)
        timer = connection.expire_in(HEADERS_TIMEOUT_S)
        try:
            response = await connection.send_streamed(self._encode(request, authorization, self._stream_header_lines))
        except BaseException:
            self._pool.release(connection)
            raise
        finally:
            timer.cancel()
        if response.status == 401:
            self._config.credentials.renew_after_401(authorization)
        return _HttpStream(self, connection, request, response)

    def _encode(self, request: Request, authorization: str | None, shared_lines: bytes) -> bytes:
        """The bytes of a request; `shared_lines` are the headers that all requests have. Raises NoResponse."""
        if authorization != self._last_authorization:
            self._authorization_line = _header_line("Authorization", authorization or "")
            self._last_authorization = authorization
        head = f"{request.method} {self._target_prefix}{request.target} HTTP/1.1\r\n".encode("ascii") + shared_lines
        if authorization is not None:
            head += self._authorization_line
        header_lines = "".join([f"{name}: {value}\r\n" for name, value in request.headers.items()])
        if request.body is None:
            return head + f"{header_lines}\r\n".encode("latin-1")
        return head + f"{header_lines}Content-Length: {len(request.body)}\r\n\r\n".encode("latin-1") + request.body

    def failure(self, request: Request, error: NoResponse) -> TransportError:
        """The error of a request that got no response."""
        return TransportError(request, server=self.server, cause=error.cause, broken=error.broken)


class _HttpStream:
    """The response to one request as it arrives; a ResponseStream."""

    def __init__(self, owner: HttpTransport, connection: Connection, request: Request, response: HTTPResponse) -> None:
        self.connection = connection
        self.status = response.status
        self.headers = response.headers
        self._owner = owner
        self._request = request
        self._timer = None if request.timeout_s is None else connection.expire_in(request.timeout_s)

    def close(self) -> None:
        """End the request: its connection stays open only if the whole body was read."""
        if self._timer is not None:
            self._timer.cancel()
        self.connection.finish()

    async def read(self) -> bytes:
        """As in ResponseStream. Raises TransportError."""
        return b"".join([chunk async for chunks in self._chunks() for chunk in chunks])

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """As in ResponseStream; the lines that end in one arrival of bytes are one batch."""
        incomplete: list[bytes] = []  # the pieces of a line without its end
        async for chunks in self._chunks():
            incomplete += chunks
            if not any(b"\n" in chunk for chunk in chunks):
                continue
            *lines, line_start = b"".join(incomplete).split(b"\n")
            incomplete = [line_start] if line_start else []
            if batch := [line for line in lines if line]:
                yield batch

    async def _chunks(self) -> AsyncIterator[list[bytes]]:
        """The pieces of the body as they arrive. Raises TransportError."""
        try:
            while chunks := await self.connection.read_chunks():
                yield chunks
        except NoResponse as error:
            raise self._owner.failure(self._request, error) from error


def _target_prefix(config: Config) -> str:
    """What precedes the path in the request line: the whole server if a proxy reads it, else the server's path."""
    server = config.server
    if dialing.needs_absolute_targets(config):
        return server
    return "/" + server.split("/", 3)[3] if server.count("/") > 2 else ""


def _shared_headers(config: Config, user_agent: str) -> bytes:
    """The encoded header lines that all requests of the transport have."""
    headers = [("Host", config.server.split("/")[2]), ("User-Agent", user_agent)]
    if config.proxy and dialing.needs_absolute_targets(config):
        authorization = dialing.proxy_authorization(dialing.parse_address(config.proxy))
        headers += [("Proxy-Authorization", authorization)] if authorization else []
    return b"".join(_header_line(name, header) for name, header in (*headers, *config.headers))


def _header_line(name: str, value: str) -> bytes:
    """One header line. Raises NoResponse for a value with control characters."""
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise NoResponse(f'net/http: invalid header field value for "{name}"')
    return f"{name}: {value}\r\n".encode()
