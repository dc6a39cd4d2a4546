"""What every transport promises, run against the real one (with a real server) and against the scripted one."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from podscaler.kube.transport.config import Config
from podscaler.kube.transport.credentials import bearer
from podscaler.kube.transport.http_transport import HttpTransport
from podscaler.kube.transport.transport import Request, Response, Transport, TransportError
from podscaler.testing.transport import Feed, ScriptedTransport, TransportFailure, json_answer


def _application() -> web.Application:
    async def echo(request: web.Request) -> web.Response:
        told = {"method": request.method, "target": request.raw_path, "body": (await request.read()).decode()}
        return web.json_response(told, status=int(request.query.get("status", "200")))

    async def lines(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"a":1}\n{"a"')
        await asyncio.sleep(0)
        await response.write(b":2}\n\n")
        if request.query.get("cut"):
            assert request.transport is not None
            request.transport.close()
        return response

    async def drop(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    application = web.Application()
    application.router.add_route("*", "/echo/{tail:.*}", echo)
    application.router.add_get("/lines", lines)
    application.router.add_route("*", "/drop", drop)
    return application


def _script() -> ScriptedTransport:
    def echo(request: Request) -> Response:
        status = 503 if "status=503" in request.query else 200
        told = {"method": request.method, "target": request.target, "body": (request.body or b"").decode()}
        return json_answer(told, status)

    def lines(request: Request) -> Feed:
        feed = Feed(b'{"a":1}')
        feed.send(b'{"a":2}')
        feed.cut() if request.query else feed.end()
        return feed

    transport = ScriptedTransport()
    for method in ("GET", "PUT", "POST"):
        transport.on(method, "/echo/a%2Ab", echo)
        transport.on(method, "/drop", TransportFailure("EOF", broken=True))
    transport.on("GET", "/lines", lines)
    return transport


@pytest.fixture(params=["real", "scripted"])
async def transport(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    """A transport to a server that echoes, streams lines and drops connections."""
    if request.param == "scripted":
        yield _script()
        return
    async with TestServer(_application()) as server:
        config = Config(str(server.make_url("")).rstrip("/"), credentials=bearer("secret"))
        real = HttpTransport(config, None, user_agent="test")
        yield real
        await real.close()


async def test_path_query_and_body_arrive_as_given(transport: Transport) -> None:
    """Paths and queries are escaped by the caller, and nothing unescapes or reorders them."""
    answer = await transport.request(Request("PUT", "/echo/a%2Ab", "z=%28x%29&a=b+c", b"body"))
    told = b'{"method":"PUT","target":"/echo/a%2Ab?z=%28x%29&a=b+c","body":"body"}'
    assert (answer.status, answer.body.replace(b": ", b":").replace(b", ", b",")) == (200, told)


async def test_an_answer_of_any_status_is_an_answer(transport: Transport) -> None:
    """Only what prevents an answer is a TransportError."""
    answer = await transport.request(Request("GET", "/echo/a%2Ab", "status=503"))
    assert answer.status == 503


async def test_headers_are_found_by_lower_case_names(transport: Transport) -> None:
    """Callers look headers up in lower case."""
    answer = await transport.request(Request("GET", "/echo/a%2Ab"))
    assert answer.headers["content-type"].startswith("application/json")


async def test_a_dropped_connection_names_the_request(transport: Transport) -> None:
    """A connection that ends without an answer is `Post "<URL>": EOF`, and counts as broken."""
    with pytest.raises(TransportError) as caught:
        await transport.request(Request("POST", "/drop", "", b"{}"))
    assert (str(caught.value), caught.value.broken, caught.value.code) == (
        f'Post "{transport.server}/drop": EOF',
        True,
        0,
    )


async def test_a_stream_gives_whole_lines(transport: Transport) -> None:
    """Lines arrive whole, in order, without line ends and empty lines, until the server ends the answer."""
    async with transport.stream(Request("GET", "/lines")) as stream:
        read = [line async for batch in stream.batches() for line in batch]
    assert (stream.status, read) == (200, [b'{"a":1}', b'{"a":2}'])


async def test_a_cut_stream_raises_after_its_lines(transport: Transport) -> None:
    """What arrived before a cut is delivered, then reading raises."""
    read: list[bytes] = []

    async def read_all() -> None:
        async with transport.stream(Request("GET", "/lines", "cut=1")) as stream:
            async for batch in stream.batches():
                read.extend(batch)

    with pytest.raises(TransportError, match="EOF"):
        await read_all()
    assert read == [b'{"a":1}', b'{"a":2}']
