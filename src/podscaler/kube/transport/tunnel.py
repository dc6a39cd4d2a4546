"""Connects to a server through a proxy: the handshakes of SOCKS5, and of HTTP's CONNECT.

`transport.dialing` opens a ProxyTunnel, calls `connect_socks` or `connect_http`, and then hands the tunnel's asyncio
transport to the Connection. No bytes are unread then: servers of HTTP and TLS send nothing before the client does.

Source: RFC 1928 and RFC 1929 (SOCKS5); RFC 9110 9.3.6 (CONNECT).
"""

import asyncio
import ipaddress
from typing import cast

from podscaler.kube.transport.http_response import HTTPResponse
from podscaler.kube.transport.network_errors import NoResponse

PROXY_HEAD_MAX_BYTES = 1 << 16
"""The longest head of an HTTP proxy's response."""

# the numbers of SOCKS5
SOCKS_VERSION = 5
NO_AUTHENTICATION, PASSWORD_AUTHENTICATION = 0, 2
PASSWORD_VERSION = 1
SOCKS_CONNECT = 1
IPV4, NAME, IPV6 = 1, 3, 4
"""The types of addresses."""
IP_BYTES = {IPV4: 4, IPV6: 16}
"""The length of an IP address by its type."""
NAME_MAX_BYTES = 255
"""The longest host, user name and password, whose lengths are sent as one byte."""
SOCKS_ERRORS = {
    1: "general SOCKS server failure",
    2: "connection not allowed by ruleset",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}


class ProxyTunnel(asyncio.Protocol):
    """A connection to a proxy; reading raises EOFError if the proxy closes it."""

    def __init__(self) -> None:
        self.transport = cast(asyncio.Transport, None)  # set by asyncio before the tunnel is used
        self._unread = b""
        self._is_closed = False
        self._waiter: asyncio.Future[None] | None = None

    def write(self, data: bytes) -> None:
        """Send `data`."""
        self.transport.write(data)

    def close(self) -> None:
        """Close at once."""
        self.transport.abort()

    async def read_exactly(self, count: int) -> bytes:
        """The next `count` bytes. Raises EOFError."""
        while len(self._unread) < count:
            await self._wait_for_data()
        received, self._unread = self._unread[:count], self._unread[count:]
        return received

    async def read_until(self, end: bytes) -> bytes:
        """The next bytes up to and with `end`. Raises ValueError after PROXY_HEAD_MAX_BYTES without it, EOFError."""
        while end not in self._unread:
            if len(self._unread) > PROXY_HEAD_MAX_BYTES:
                raise ValueError("the proxy's answer is too long")
            await self._wait_for_data()
        return await self.read_exactly(self._unread.index(end) + len(end))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the connection is established."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio: bytes of the proxy."""
        self._unread += data
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the connection is closed."""
        self._is_closed = True
        self._wake()

    async def _wait_for_data(self) -> None:
        """Wait for more bytes of the proxy. Raises EOFError if it closed the connection."""
        if self._is_closed:
            raise EOFError
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._waiter = None

    def _wake(self) -> None:
        """Let the caller in `_wait_for_data` go on, if there is one."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def connect_http(tunnel: ProxyTunnel, server: str, proxy: str, authorization: str | None) -> None:
    """Have an HTTP proxy forward to `server` by CONNECT; both are `host:port`.

    Raises NoResponse and EOFError; the caller closes the tunnel then.
    """
    lines = [f"CONNECT {server} HTTP/1.1", f"Host: {server}"]
    if authorization:
        lines.append(f"Proxy-Authorization: {authorization}")
    tunnel.write("\r\n".join([*lines, "", ""]).encode())
    response = HTTPResponse()
    try:
        response.feed(await tunnel.read_until(b"\r\n\r\n"))
    except ValueError as error:
        raise NoResponse(f"proxyconnect tcp: {error}") from error
    if response.status != 200:
        raise NoResponse(f"proxyconnect tcp: the proxy {proxy} answered CONNECT with status {response.status}")


async def connect_socks(tunnel: ProxyTunnel, host: str, port: int, *, credentials: tuple[str, str] | None) -> None:
    """Have a SOCKS5 proxy forward to `host`, which the proxy resolves, as with Go's client.

    `credentials` are user and password. Raises NoResponse, UnicodeError for a host that is no name, and EOFError if the
    proxy closes the connection; the caller closes the tunnel then.
    """
    methods = bytes([NO_AUTHENTICATION, PASSWORD_AUTHENTICATION] if credentials else [NO_AUTHENTICATION])
    tunnel.write(bytes([SOCKS_VERSION, len(methods)]) + methods)
    version, method = await tunnel.read_exactly(2)
    if version != SOCKS_VERSION:
        raise NoResponse("socks connect tcp: the proxy does not speak SOCKS5")
    if method == PASSWORD_AUTHENTICATION and credentials:
        await _authenticate(tunnel, *credentials)
    elif method != NO_AUTHENTICATION:
        raise NoResponse("socks connect tcp: no acceptable authentication methods")
    tunnel.write(bytes([SOCKS_VERSION, SOCKS_CONNECT, 0]) + _encode_host(host) + port.to_bytes(2))  # 0: reserved
    _, reply, _, address_type = await tunnel.read_exactly(4)
    if reply:
        raise NoResponse(f"socks connect tcp: {SOCKS_ERRORS.get(reply, f'unknown code {reply}')}")
    # skip the address and the port (2 bytes) from which the proxy connects
    if address_type == NAME:
        (length,) = await tunnel.read_exactly(1)
    elif address_type in IP_BYTES:
        length = IP_BYTES[address_type]
    else:
        raise NoResponse(f"socks connect tcp: unknown address type {address_type}")
    await tunnel.read_exactly(length + 2)


def _encode_host(host: str) -> bytes:
    """The type and the bytes of an IP address, or of a name with its length. Raises NoResponse, UnicodeError."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna")
        if len(name) > NAME_MAX_BYTES:
            raise NoResponse("socks connect tcp: FQDN too long") from None
        return bytes([NAME, len(name)]) + name
    return bytes([IPV4 if address.version == 4 else IPV6]) + address.packed


async def _authenticate(tunnel: ProxyTunnel, user: str, password: str) -> None:
    """Log in at a SOCKS5 proxy (RFC 1929). Raises NoResponse, EOFError."""
    name, secret = user.encode(), password.encode()
    if not 0 < len(name) <= NAME_MAX_BYTES or not 0 < len(secret) <= NAME_MAX_BYTES:
        raise NoResponse("socks connect tcp: the proxy's user name and password must have 1 to 255 bytes")
    tunnel.write(bytes([PASSWORD_VERSION, len(name)]) + name + bytes([len(secret)]) + secret)
    _, status = await tunnel.read_exactly(2)
    if status:
        raise NoResponse("socks connect tcp: username/password authentication failed")
