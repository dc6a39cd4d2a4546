"""Handshakes with proxies that fail: the connection to the proxy is closed, and the error is the transport's."""

import asyncio

import pytest

from podscaler.kube.transport import dialing
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.network_errors import NoResponse
from tcp_server import serving

LONG_HOST = ".".join(["a" * 60] * 5)


@pytest.mark.parametrize(
    ("scheme", "server", "reply", "text"),
    [
        pytest.param("socks5", "https://h", b"\x05\xff", "no acceptable authentication methods", id="a login"),
        pytest.param("socks5", "https://h", b"HT", "the proxy does not speak SOCKS5", id="no SOCKS5"),
        pytest.param("socks5", f"https://{LONG_HOST}", b"\x05\x00", "FQDN too long", id="a long name"),
        pytest.param(
            "socks5", "https://h", b"\x05\x00\x05\x00\x00\x09", "unknown address type 9", id="an unknown address"
        ),
        pytest.param(
            "http", "https://h", b"HTTP/1.1 403 No\r\n\r\n", "CONNECT with status 403", id="a rejected CONNECT"
        ),
    ],
)
async def test_a_failed_tunnel_is_closed(scheme: str, server: str, reply: bytes, text: str) -> None:
    """The proxy sees the end of the connection, though it keeps its own side open."""
    is_closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(reply)
        try:
            while await reader.read(1024):
                pass
        except ConnectionError:  # the connection is reset if bytes were not read
            pass
        is_closed.set()

    async with serving(serve) as port:
        with pytest.raises(NoResponse, match=text):
            await dialing.dial(Config(server, proxy=f"{scheme}://127.0.0.1:{port}"), None)
        async with asyncio.timeout(10):
            await is_closed.wait()


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("h.example", b"\x03\x09h.example"),
        ("10.1.2.3", b"\x01\x0a\x01\x02\x03"),
        ("[fd00::1]", b"\x04\xfd" + bytes(14) + b"\x01"),
    ],
)
async def test_hosts_of_socks(host: str, address: bytes) -> None:
    """A SOCKS5 proxy gets an IP address as such, and a name to look up."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(b"\x05\x00")
        requests.append(await reader.readexactly(3 + len(address) + 2))
        writer.write(b"\x05\x05\x00\x01")

    async with serving(serve) as port:
        with pytest.raises(NoResponse, match="connection refused"):
            await dialing.dial(Config(f"https://{host}:6443", proxy=f"socks5://127.0.0.1:{port}"), None)
    assert requests == [b"\x05\x01\x00" + address + b"\x19\x2b"]
