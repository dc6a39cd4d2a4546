"""Asking a SOCKS5 proxy for a connection.

`transport.dialing` calls `connect`. Host names are looked up by the proxy, as Go's client has it.

Source: RFC 1928 and RFC 1929.
"""

from typing import Protocol

from podscaler.kube.transport.network_errors import NoAnswer

VERSION = 5
NO_AUTHENTICATION, PASSWORD = 0, 2
CONNECT, BY_NAME = 1, 3
ADDRESS_BYTES = {1: 4, 4: 16}
REPLIES = {
    1: "general SOCKS server failure",
    2: "connection not allowed by ruleset",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}


class SocksConnection(Protocol):
    """What `connect` needs of a connection."""

    def write(self, data: bytes) -> None: ...
    async def exactly(self, count: int) -> bytes: ...


async def connect(wire: SocksConnection, host: str, port: int, *, credentials: tuple[str, str] | None) -> None:
    """Return once the proxy forwards to `host`. Raises NoAnswer, and EOFError where the proxy hangs up."""
    methods = bytes([NO_AUTHENTICATION, PASSWORD] if credentials else [NO_AUTHENTICATION])
    wire.write(bytes([VERSION, len(methods)]) + methods)
    version, method = await wire.exactly(2)
    if version != VERSION:
        raise NoAnswer("socks connect tcp: the proxy does not speak SOCKS5")
    if method == PASSWORD and credentials:
        await _log_in(wire, *credentials)
    elif method != NO_AUTHENTICATION:
        raise NoAnswer("socks connect tcp: no acceptable authentication methods")
    name = host.encode("idna")
    wire.write(bytes([VERSION, CONNECT, 0, BY_NAME, len(name)]) + name + port.to_bytes(2))
    _, reply, _, kind = await wire.exactly(4)
    if reply:
        raise NoAnswer(f"socks connect tcp: {REPLIES.get(reply, f'unknown code {reply}')}")
    length = (await wire.exactly(1))[0] if kind == BY_NAME else ADDRESS_BYTES.get(kind, 0)
    await wire.exactly(length + 2)


async def _log_in(wire: SocksConnection, user: str, password: str) -> None:
    name, secret = user.encode(), password.encode()
    if not 0 < len(name) < 256 or not 0 < len(secret) < 256:
        raise NoAnswer("socks connect tcp: the proxy's user name and password must have 1 to 255 bytes")
    wire.write(bytes([1, len(name)]) + name + bytes([len(secret)]) + secret)
    _, status = await wire.exactly(2)
    if status:
        raise NoAnswer("socks connect tcp: username/password authentication failed")
