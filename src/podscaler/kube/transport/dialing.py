"""Makes connections to an API server: name lookup, socket, proxy, TLS.

`transport.connection_pool` calls `dial` when it has no idle connection. A dial may take thirty seconds, its TLS
handshake ten. To a plain HTTP server an HTTP proxy forwards single requests (`needs_absolute_targets`); everything else
gets a tunnel.

Source: Go's net.Dialer and net/http.Transport (limits and texts).
"""

import asyncio
import base64
import socket
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohappyeyeballs

from podscaler.kube.transport import network_errors, tunnel
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.connection import Connection
from podscaler.kube.transport.network_errors import NoResponse
from podscaler.kube.transport.proxies import DEFAULT_PORTS
from podscaler.kube.transport.tunnel import ProxyTunnel

DIAL_TIMEOUT_S = 30.0
HANDSHAKE_TIMEOUT_S = 10.0
SECOND_FAMILY_DELAY_S = 0.3
"""The delay before addresses of the other family are tried too (Happy Eyeballs), as in Go."""
DEAD_AFTER_MS = 45_000
"""A connection without acknowledgements for so long is closed; Go detects that by HTTP/2 pings after 45 s."""
KEEP_ALIVE_IDLE_S = 30
KEEP_ALIVE_INTERVAL_S = 5
KEEP_ALIVE_PROBES = 3
"""How many keep-alive probes without a response close a connection: together with the idle time DEAD_AFTER_MS."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server or a proxy.

    Attributes:
        scheme: `https`, `http`, `socks5` or `socks5h`.
        user, password: the credentials in the URL, decoded; None if it has none.
    """

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str | None = None

    @property
    def address(self) -> str:
        """`host:port`, as in messages and CONNECT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(url: str) -> ServerAddress:
    """The address in a URL that is checked already: `https://host` has the port 443."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
    if parts.username is None:
        return ServerAddress(parts.scheme, host, port)
    user, password = unquote(parts.username), unquote(parts.password or "")  # may be empty: `http://:secret@proxy`
    return ServerAddress(parts.scheme, host, port, user, password)


def needs_absolute_targets(config: Config) -> bool:
    """Whether request lines hold the whole URL, because an HTTP proxy reads them."""
    return config.server.startswith("http:") and bool(config.proxy) and (config.proxy or "").startswith("http")


def proxy_authorization(proxy: ServerAddress) -> str | None:
    """The value of Proxy-Authorization; None if the proxy's URL has no user."""
    if proxy.user is None:
        return None
    return "Basic " + base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()


async def dial(config: Config, context: ssl.SSLContext | None) -> Connection:
    """A new connection; `context` is None for plain HTTP. Raises NoResponse."""
    server = parse_address(config.server)
    connection = Connection(server.address, config.body_max_bytes)
    try:
        async with asyncio.timeout(DIAL_TIMEOUT_S):
            if config.proxy:
                await _connect_through_proxy(connection, config, parse_address(config.proxy), context)
            else:
                await _connect_directly(connection, config, server, context)
    except (OSError, EOFError, UnicodeError) as error:  # UnicodeError: a name that cannot be a host's
        raise network_errors.of_dial(error, server.address) from error
    return connection


async def _connect_directly(
    connection: Connection, config: Config, server: ServerAddress, context: ssl.SSLContext | None
) -> None:
    """Connect to the server itself, and hand the asyncio transport to `connection`. Raises OSError."""
    loop = asyncio.get_running_loop()
    connected = await _socket_to(server)
    await loop.create_connection(
        lambda: connection,
        sock=connected,
        ssl=context,
        server_hostname=(config.tls_server_name or server.host) if context else None,
        ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if context else None,
    )


async def _connect_through_proxy(
    connection: Connection, config: Config, proxy: ServerAddress, context: ssl.SSLContext | None
) -> None:
    """Connect through a proxy, and hand the asyncio transport to `connection`.

    Raises OSError, EOFError, UnicodeError and NoResponse, and closes the connection to the proxy then.
    """
    server = parse_address(config.server)
    proxy_tunnel = await _connect_to_proxy(proxy)
    try:
        if not needs_absolute_targets(config):
            await _connect_tunnel(proxy_tunnel, server, proxy)
        if context is None:
            transport: asyncio.Transport | None = proxy_tunnel.transport
            proxy_tunnel.transport.set_protocol(connection)
        else:
            transport = await asyncio.get_running_loop().start_tls(
                proxy_tunnel.transport,
                connection,
                context,
                server_hostname=config.tls_server_name or server.host,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S,
            )
        if transport is None:  # the proxy closed the connection during the handshake
            raise EOFError
    except BaseException:
        proxy_tunnel.close()
        raise
    connection.connection_made(transport)


async def _connect_tunnel(proxy_tunnel: ProxyTunnel, server: ServerAddress, proxy: ServerAddress) -> None:
    """Let the proxy connect to the server. Raises EOFError, UnicodeError, NoResponse."""
    if proxy.scheme.startswith("socks5"):
        credentials = None if proxy.user is None else (proxy.user, proxy.password or "")
        await tunnel.connect_socks(proxy_tunnel, server.host, server.port, credentials=credentials)
    else:
        await tunnel.connect_http(proxy_tunnel, server.address, proxy.address, proxy_authorization(proxy))


async def _connect_to_proxy(proxy: ServerAddress) -> ProxyTunnel:
    """A connection to the proxy, over TLS if its scheme is `https`. Raises NoResponse."""
    try:
        context = await asyncio.to_thread(ssl.create_default_context) if proxy.scheme == "https" else None
        _, proxy_tunnel = await asyncio.get_running_loop().create_connection(
            ProxyTunnel,
            sock=await _socket_to(proxy),
            ssl=context,
            server_hostname=proxy.host if context else None,
            ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if context else None,
        )
    except OSError as error:
        raise NoResponse(f"proxyconnect tcp: {network_errors.of_dial(error, proxy.address).cause}") from error
    return proxy_tunnel


async def _socket_to(address: ServerAddress) -> socket.socket:
    """A connected socket; the addresses of both families are tried alternately. Raises OSError."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return await aiohappyeyeballs.start_connection(
        addresses, happy_eyeballs_delay=SECOND_FAMILY_DELAY_S, interleave=1, socket_factory=_socket
    )


def _socket(address_info: Any) -> socket.socket:
    """An unconnected socket for a result of getaddrinfo, with keep-alive probes after KEEP_ALIVE_IDLE_S."""
    family, kind, protocol, _, _ = address_info
    unconnected = socket.socket(family, kind, protocol)
    unconnected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        unconnected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_IDLE_S)
        unconnected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEP_ALIVE_INTERVAL_S)
        unconnected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEP_ALIVE_PROBES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        unconnected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_AFTER_MS)
    return unconnected
