"""Requests over a pool of kept-alive connections: the transport that is used outside tests.

`connect` makes it from a Config. One pool serves everything; a request that needs a connection while all are in use
waits for one. TLS contexts are built in a thread, because the client certificate has to pass through a file.
"""

import asyncio
import os
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
from yarl import URL

from podscaler.errors import UsageError
from podscaler.kube import causes
from podscaler.kube.config import Config
from podscaler.kube.transport import Answer, Request, Stream, TransportError

CONNECTIONS = 100
KEEP_ALIVE_S = 45.0
"""Shorter than servers keep an idle connection, so that it is us who close it and no request meets a closed one."""
DIAL_TIMEOUT_S = 30.0
HEADERS_TIMEOUT_S = 60.0
"""A stream's body may take for ever, its beginning may not."""
DEAD_AFTER_MS = 45_000
"""A peer that acknowledges nothing for so long is gone; what Go finds out by HTTP/2 pings after 30 s and 15 s."""
READ_BUFFER_BYTES = 1 << 18
FAILURES = (aiohttp.ClientError, OSError, TimeoutError)
"""What can prevent an answer, as aiohttp raises it."""


async def connect(config: Config, *, user_agent: str) -> "AiohttpTransport":
    """A transport to the server of `config`; no connection is made yet. Raises UsageError for unusable certificates."""
    context = await asyncio.to_thread(tls_context, config) if config.server.startswith("https:") else None
    return AiohttpTransport(config, context, user_agent=user_agent)


def tls_context(config: Config) -> ssl.SSLContext:
    """What to trust and to show. Touches files. Raises UsageError for certificates and keys that cannot be used."""
    try:
        context = ssl.create_default_context(cadata=config.ca_pem.decode() if config.ca_pem else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise UsageError(f"{config.origin}: certificate-authority: {error}") from error
    if not config.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if config.client_certificate_pem and config.client_key_pem:
        _load_client_certificate(context, config.client_certificate_pem + b"\n" + config.client_key_pem, config.origin)
    return context


def _load_client_certificate(context: ssl.SSLContext, pem: bytes, origin: str) -> None:
    descriptor, name = tempfile.mkstemp(prefix="podscaler-")  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        context.load_cert_chain(name, password=lambda: b"")
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"{origin}: client-certificate and client-key cannot be used: {error}") from error
    finally:
        os.unlink(name)


class AiohttpTransport:
    """See `podscaler.kube.transport.Transport`.

    Args:
        config: the server, and the credentials asked before each request.
        context: None for plain HTTP.
        user_agent: sent with every request.
    """

    def __init__(self, config: Config, context: ssl.SSLContext | None, *, user_agent: str) -> None:
        self.server = config.server
        self._config = config
        self._address = _address(URL(config.server))
        connector = aiohttp.TCPConnector(
            limit=CONNECTIONS,
            keepalive_timeout=KEEP_ALIVE_S,
            ssl=context if context is not None else False,
            socket_factory=_socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": user_agent, "Accept-Encoding": "gzip"},
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER_BYTES,
            max_line_size=16_384,
            max_field_size=16_384,
        )
        self._options: dict[str, Any] = {"allow_redirects": False}
        if config.tls_server_name:
            self._options["server_hostname"] = config.tls_server_name
        if config.proxy:
            self._options["proxy"] = config.proxy

    async def request(self, request: Request) -> Answer:
        """The answer. Raises TransportError, and UsageError where a token file never could be read."""
        authorization = await self._config.credentials.authorization()
        answer = await self._once(request)
        if answer.status == 401 and self._config.credentials.refused(authorization):
            answer = await self._once(request)
        return answer

    async def _once(self, request: Request) -> Answer:
        try:
            response = await self._open(request)
            async with response:
                return Answer(response.status, response.headers, await response.read())
        except FAILURES as error:
            raise self._failure(request, error) from error

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """The answer as it arrives; entering and reading may raise TransportError."""
        try:
            async with asyncio.timeout(HEADERS_TIMEOUT_S):
                response = await self._open(request)
        except FAILURES as error:
            raise self._failure(request, error) from error
        if response.status == 401:
            self._config.credentials.refused(await self._config.credentials.authorization())
        try:
            yield _ResponseStream(response, partial(self._failure, request))
        finally:
            response.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def _open(self, request: Request) -> aiohttp.ClientResponse:
        headers = {**request.headers, **dict(self._config.headers)}
        authorization = await self._config.credentials.authorization()
        if authorization is not None:
            headers["Authorization"] = authorization
        return await self._session.request(
            request.method,
            URL(self.server + request.target, encoded=True),
            data=request.body,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=request.timeout_s, sock_connect=DIAL_TIMEOUT_S),
            **self._options,
        )

    def _failure(self, request: Request, error: BaseException) -> TransportError:
        return TransportError(
            request,
            server=self.server,
            cause=causes.text(error, self._address),
            broken=causes.is_broken_connection(error),
        )


class _ResponseStream:
    def __init__(self, response: aiohttp.ClientResponse, failure: Callable[[BaseException], TransportError]) -> None:
        self._response = response
        self._failure = failure
        self.status = response.status
        self.headers = response.headers

    async def read(self) -> bytes:
        try:
            return await self._response.read()
        except FAILURES as error:
            raise self._failure(error) from error

    async def batches(self) -> AsyncIterator[list[bytes]]:
        rest: list[bytes] = []
        try:
            async for chunk in self._response.content.iter_any():
                rest.append(chunk)
                if b"\n" not in chunk:
                    continue
                *lines, last = b"".join(rest).split(b"\n")
                rest = [last] if last else []
                if batch := [line for line in lines if line]:
                    yield batch
        except FAILURES as error:
            raise self._failure(error) from error


def _address(url: URL) -> str:
    host = url.host or ""
    return f"[{host}]:{url.port}" if ":" in host else f"{host}:{url.port}"


def _socket(info: Any) -> socket.socket:
    family, kind, protocol, _, _ = info
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_AFTER_MS)
    return made
