"""How long heads of requests may take, and what those are answered that are no HTTP."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web
from server_under_test import ADMIN_TOKEN, Running, running_server

from podscaler.base import http_server
from podscaler.base.http_server import HEAD_TIMEOUT_S

HALF = b"GET /version HTTP/1.1\r\nHost: x\r\nAuthori"
WHOLE = f"GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n".encode()


@dataclass
class Timers:
    """The timers of the limit for heads, which end when the test says so."""

    started: list[tuple[Callable[[], None], asyncio.TimerHandle]] = field(default_factory=list)
    news: asyncio.Queue[None] = field(default_factory=asyncio.Queue)

    @property
    def running(self) -> int:
        """How many were not cancelled."""
        return sum(not handle.cancelled() for _, handle in self.started)

    def fire(self) -> None:
        """End those that run."""
        for act, handle in self.started:
            if not handle.cancelled():
                handle.cancel()
                act()


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    """Those that are started from now on."""
    loop, found = asyncio.get_running_loop(), Timers()
    call_later = loop.call_later

    def note(delay_s: float, act: Callable[..., None], *arguments: Any, **more: Any) -> asyncio.TimerHandle:
        handle = call_later(delay_s, act, *arguments, **more)
        if delay_s == HEAD_TIMEOUT_S:
            found.started.append((act, handle))
            found.news.put_nowait(None)
        return handle

    monkeypatch.setattr(loop, "call_later", note)
    return found


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server closes the connection, which it may do before it has read everything."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A running server."""
    async with running_server(tmp_path) as running:
        yield running


async def _connect(server: Running) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, dict[str, str], bytes]:
    """Status line, headers and body."""
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().splitlines()
    headers = dict(line.split(": ", 1) for line in lines)
    return status.encode(), headers, await reader.readexactly(int(headers["Content-Length"]))


async def test_half_a_head_is_not_waited_for(server: Running, timers: Timers) -> None:
    """Connections whose first head does not come are closed without an answer."""
    streams = [await _connect(server) for _ in range(3)]
    for _, writer in streams:
        writer.write(HALF)
    for _ in streams:
        await timers.news.get()
    timers.fire()
    assert [await _rest(reader) for reader, _ in streams] == [b""] * 3
    for _, writer in streams:
        writer.close()


async def test_a_head_that_comes_ends_the_wait(server: Running, timers: Timers) -> None:
    """What was sent in time is answered, however long that takes, and an idle connection stays open."""
    reader, writer = await _connect(server)
    writer.write(HALF)
    await timers.news.get()
    writer.write(WHOLE.removeprefix(HALF))
    assert (await _answer(reader))[0] == b"HTTP/1.1 200 OK"
    assert (len(timers.started), timers.running) == (1, 0)
    writer.close()


async def test_half_a_second_head_is_not_waited_for(server: Running, timers: Timers) -> None:
    """The limit counts for each head of a connection that is kept."""
    reader, writer = await _connect(server)
    writer.write(WHOLE)
    assert (await _answer(reader))[0] == b"HTTP/1.1 200 OK"
    await timers.news.get()
    writer.write(HALF)
    await timers.news.get()
    assert timers.running == 1
    timers.fire()
    assert await _rest(reader) == b""
    writer.close()


async def _unanswered(_: web.BaseRequest) -> web.Response:
    raise AssertionError("nobody asks")


async def test_handshakes_have_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not finish a TLS handshake is not waited for longer than for a head."""
    loop, limits = asyncio.get_running_loop(), []
    make = loop.create_server

    async def create_server(*_: Any, **options: Any) -> asyncio.Server:
        limits.append(options.get("ssl_handshake_timeout"))
        return await make(asyncio.Protocol, "127.0.0.1", 0)

    monkeypatch.setattr(loop, "create_server", create_server)
    runner = web.ServerRunner(http_server.Server(_unanswered))
    await runner.setup()
    for tls in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), None):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            await http_server.Site(runner, listener, tls, backlog=1).start()
    await runner.cleanup()
    assert limits == [HEAD_TIMEOUT_S, None]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("Authorization: Bearer hidden\x01", id="a byte that may not be there"),
        pytest.param("Authorization : Bearer hidden", id="a blank that may not be there"),
        pytest.param("Bearer hidden", id="no colon"),
        pytest.param("Content-Length: hidden", id="no length"),
    ],
)
async def test_faulty_heads_are_not_repeated(server: Running, line: str) -> None:
    """The answer is that of Go's server, whatever is wrong: it shows nothing of the request."""
    reader, writer = await _connect(server)
    writer.write(f"GET /api HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n".encode())
    status, headers, body = await _answer(reader)
    del headers["Date"]
    assert (status, headers, body) == (
        b"HTTP/1.1 400 Bad Request",
        {"Content-Type": "text/plain; charset=utf-8", "Content-Length": "15", "Connection": "close"},
        b"400 Bad Request",
    )
    assert await _rest(reader) == b""
    writer.close()


@pytest.mark.parametrize("path", ["/version", "/healthz", "/api/v1/pods?watch=1&timeoutSeconds=1", "/nothing"])
async def test_answers_do_not_name_the_software(server: Running, path: str) -> None:
    """There is no header Server, as upstream sends none."""
    async with server.client.get(server.url + path) as answer:
        assert "Server" not in answer.headers


def _head(method: str, *lines: str) -> bytes:
    authorization = f"Authorization: Bearer {ADMIN_TOKEN}"
    return "\r\n".join((f"{method} /version HTTP/1.1", "Host: x", authorization, *lines, "", "")).encode()


@pytest.mark.parametrize("method", ["FROB", "get", "X-ODD", "PROPFIND", "M!"])
async def test_any_method_is_read(server: Running, method: str) -> None:
    """A method that HTTP does not define is refused by the API, also on a connection that was used before."""
    reader, writer = await _connect(server)
    for sent, expected in ((WHOLE, b"200 OK"), (_head(method), b"405 Method Not Allowed"), (WHOLE, b"200 OK")):
        writer.write(sent)
        assert (await _answer(reader))[0] == b"HTTP/1.1 " + expected
    writer.close()


BAD_REQUEST = b"Connection: close\r\n\r\n400 Bad Request"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(WHOLE + _head("FROB"), id="behind another request of the same packet"),
        pytest.param(b"FR@OB /version HTTP/1.1\r\n\r\n", id="no token"),
    ],
)
async def test_odd_methods_that_are_not_read(server: Running, sent: bytes) -> None:
    """What may be the rest of something else is never read as a head: it ends the connection with 400."""
    reader, writer = await _connect(server)
    writer.write(sent)
    assert (await _rest(reader)).endswith(BAD_REQUEST)
    writer.close()


async def test_odd_methods_behind_a_body(server: Running) -> None:
    """Behind a body the server does not tell whether a head begins, so only the usual methods are read there."""
    reader, writer = await _connect(server)
    writer.write(_head("POST", "Content-Length: 2") + b"{}")
    assert (await _answer(reader))[0] == b"HTTP/1.1 405 Method Not Allowed"
    writer.write(_head("FROB"))
    assert (await _rest(reader)).endswith(BAD_REQUEST)
    writer.close()


async def test_a_method_in_two_packets() -> None:
    """The second half of an odd method is not taken for a method: `G` and `GET /` are no request for `/`."""
    server = http_server.Server(_unanswered)
    handler, transport, closed = server(), Mock(spec=asyncio.Transport), asyncio.Event()
    sent: list[bytes] = []
    transport.is_closing.return_value = False
    transport.write.side_effect = sent.append
    transport.writelines.side_effect = sent.extend
    transport.close.side_effect = closed.set
    handler.connection_made(transport)
    handler.data_received(b"G")
    handler.data_received(WHOLE)
    await closed.wait()
    assert b"".join(sent).endswith(BAD_REQUEST)
