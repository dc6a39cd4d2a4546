"""Requests of scrapes against a real server."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from yarl import URL

from podscaler.controlplane.metrics.scraped import scrape_client
from podscaler.controlplane.metrics.scraped.scrape_client import ScrapeClient, ScrapeError

WITHIN_S = 30.0


async def _answer(request: web.Request) -> web.StreamResponse:
    match request.path:
        case "/metrics":
            return web.Response(text=f"a 1\n# {request.headers['Accept']}", content_type="text/plain")
        case "/moved":
            raise web.HTTPFound("http://127.0.0.1:1/metrics")
        case "/slow":
            await asyncio.sleep(WITHIN_S)
        case "/chunks":
            response = web.StreamResponse()
            await response.prepare(request)
            for _ in range(5):
                await response.write(b"a 1\n")
            return response
    return web.Response(status=500)


@pytest.fixture
async def server() -> AsyncIterator[URL]:
    """A server on a port of its own."""
    app = web.Application()
    app.router.add_get("/{path:.*}", _answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield URL(site.name).with_port(runner.addresses[0][1])
    await runner.cleanup()


@pytest.fixture
async def client() -> AsyncIterator[ScrapeClient]:
    """A client that is closed at the end."""
    opened = ScrapeClient()
    yield opened
    await opened.close()


async def test_a_body(server: URL, client: ScrapeClient) -> None:
    """With its Content-Type; both formats are accepted."""
    body, content_type = await client.get(server / "metrics", WITHIN_S)
    assert (body, content_type) == (f"a 1\n# {scrape_client.ACCEPT}", "text/plain; charset=utf-8")


async def test_a_body_in_pieces(server: URL, client: ScrapeClient) -> None:
    """All of it is read."""
    assert (await client.get(server / "chunks", WITHIN_S))[0] == "a 1\n" * 5


async def test_a_body_that_is_too_large(server: URL, client: ScrapeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error, and not cut."""
    monkeypatch.setattr(scrape_client, "BODY_MAX_BYTES", 19)
    with pytest.raises(ScrapeError, match=r"answered with more than 19 bytes$"):
        await client.get(server / "chunks", WITHIN_S)


@pytest.mark.parametrize(
    ("path", "timeout_s", "text"),
    [
        ("other", WITHIN_S, "answered with status 500"),
        ("moved", WITHIN_S, "answered with status 302"),
        ("slow", 0.05, "took longer than 0.05 s"),
    ],
)
async def test_failures(server: URL, client: ScrapeClient, path: str, timeout_s: float, text: str) -> None:
    """Every one is a ScrapeError that names the URL; redirects are not followed."""
    with pytest.raises(ScrapeError) as raised:
        await client.get(server / path, timeout_s)
    assert str(raised.value) == f"GET {server / path} {text}"


async def test_nobody_listens(client: ScrapeClient, unused_tcp_port: int) -> None:
    """It says so."""
    with pytest.raises(
        ScrapeError, match=rf"^GET http://127.0.0.1:{unused_tcp_port}/ failed: .*refused|Connect call failed"
    ):
        await client.get(URL(f"http://127.0.0.1:{unused_tcp_port}/"), WITHIN_S)
