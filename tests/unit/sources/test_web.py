"""The sources prometheus and http: requests, responses that are refused, and addresses that are."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.test_utils import TestServer

from podscaler.sources import metric_numbers
from podscaler.sources.protocol import InvalidSource, InvalidValue, SourceConfig, SourceError
from podscaler.sources.systems.http import HttpSource
from podscaler.sources.systems.http_client import GuardedResolver, RefusedAddress, is_refused
from podscaler.testing import VirtualClock

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    """A server whose responses are those of `answers`, by their path."""

    async def redirect(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("http://169.254.169.254/latest/meta-data")

    async def echo(request: web.Request) -> web.StreamResponse:
        names = ("Authorization", "X-Scope-OrgID", "Cache-Control")
        found = {name: request.headers.get(name, "") for name in names}
        is_expected = found == {"Authorization": "Bearer sesame", "X-Scope-OrgID": "shop", "Cache-Control": "no-cache"}
        return web.Response(text="1" if is_expected else f"unexpected {found}")

    async def login(request: web.Request) -> web.StreamResponse:
        return web.Response(text="1" if request.headers["Authorization"] == "Basic bWU6cMO2" else "0")

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=int(request.query.get("status", 200)), body=BODIES[request.match_info["name"]])

    app = web.Application()
    app.router.add_get("/redirect", redirect)
    app.router.add_get("/echo", echo)
    app.router.add_get("/login", login)
    app.router.add_get("/{name}", answer)
    async with TestServer(app) as running:
        yield running


BODIES = {
    "plain": b" 42\n",
    "json": b'{"queue": {"length": 7, "share": 0.1, "text": "9", "none": null}, "sizes": [1, 2], "NaN": NaN}',
    "empty": b"",
    "binary": b"\xff",
    "html": b"<html>",
    "negative": b"-1",
    "huge": b"[" + b"9" * 400 + b"]",
    "huge_float": b"[1e999]",
    "deep": b"[" * 100_000,
    "long": b"1" * (1024 * 1024 + 1),
}


async def read(url: str, **more: Any) -> object:
    """The number that the source http reads; `credentials` are those of the config."""
    credentials = more.pop("credentials", {})
    source = HttpSource(SourceConfig({"url": url} | more, VirtualClock(), credentials, timeout_s=5))
    try:
        return await source.read()
    finally:
        await source.close()


@pytest.mark.parametrize(
    ("path", "json_path", "number"),
    [
        ("plain", "", 42),
        ("json", "$.queue.length", 7),
        ("json", "$.queue.text", 9),
        ("json", "$.sizes[-1]", 2),
        ("json", "$..length", 7),
        ("json", "$.sizes[?@ > 1]", 2),
    ],
)
async def test_numbers(server: TestServer, path: str, json_path: str, number: int) -> None:
    """The whole body, or what a JSONPath query selects."""
    assert await read(str(server.make_url(path)), jsonPath=json_path) == number


@pytest.mark.parametrize(
    ("path", "json_path", "text"),
    [
        ("json", "$.missing", "jsonPath selects no value, not one"),
        ("json", "$.sizes[*]", "jsonPath selects several values, not one"),
        ("json", "$.queue", "the result is an object, not a number"),
        ("json", "$.queue.none", "the result is null, not a number"),
        ("json", "", "the result is a text that is no number"),
        ("empty", "", "the result is an empty text, not a number"),
        ("empty", "$.a", "the text is not JSON"),
        ("html", "$.a", "the text is not JSON"),
        ("deep", "$.a", "the text is not JSON"),
        ("binary", "", "the text is not UTF-8"),
    ],
)
async def test_bad_values(server: TestServer, path: str, json_path: str, text: str) -> None:
    """Each is a failure with its reason, which does not repeat the response."""
    with pytest.raises(InvalidValue, match=f"^{text}$"):
        await read(str(server.make_url(path)), jsonPath=json_path)


@pytest.mark.parametrize(
    ("path", "json_path", "text"),
    [
        ("json", "$.NaN", "the result is NaN"),
        ("negative", "", "the result is negative"),
        ("huge", "$[0]", "the result is greater than 9223372036854775"),
        ("huge_float", "$[0]", "the result is infinite"),
    ],
)
async def test_numbers_that_no_metric_has(server: TestServer, path: str, json_path: str, text: str) -> None:
    """Refused as from every source."""
    number: Any = await read(str(server.make_url(path)), jsonPath=json_path)
    with pytest.raises(InvalidValue, match=f"^{text}$"):
        metric_numbers.milli_of(number)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("redirect", "the server responds with a redirect (302), which is not followed"),
        ("plain?status=404", "the server responds with status 404"),
        ("plain?status=500", "the server responds with status 500"),
        ("long", "the response is longer than 1048576 bytes"),
    ],
)
async def test_responses_that_are_refused(server: TestServer, path: str, text: str) -> None:
    """Each is a failed read."""
    with pytest.raises(SourceError) as caught:
        await read(str(server.make_url("/")) + path)
    assert str(caught.value) == text


async def test_headers(server: TestServer) -> None:
    """The token, and those of the spec."""
    headers = {"X-Scope-OrgID": "shop"}
    assert await read(str(server.make_url("/echo")), headers=headers, credentials={"token": "sesame"}) == 1


async def test_a_user_with_a_password(server: TestServer) -> None:
    """Sent as Basic, in UTF-8."""
    assert await read(str(server.make_url("/login")), credentials={"username": "me", "password": "pö"}) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "http://a", "headers": {"Authorization": "Bearer sesame"}},
        {"url": "http://a", "headers": {"X-A": "b\r\nX-C: d"}},
        {"url": "http://a", "headers": {"X A": "b"}},
        {"url": "http://a", "headers": {"Host": "b"}},
        {"url": "http://a", "jsonPath": "a"},
        {"url": "http://a", "jsonPath": "$[?match(@.a, '(a+)+')]"},
        {"url": "http://a", "jsonPath": "$[?search(@.a, '(a+)+')]"},
        {"url": "http://a", "jsonPath": "$..a..b"},
        {"url": "http://a", "jsonPath": "$[?@.a[?@.b]]"},
        {"url": "file:///etc/passwd"},
        {"url": "http://user:password@a"},
        {"url": "http://169.254.169.254/latest"},
        {"url": "http://[fe80::1%25eth0]/"},
        {"url": "http://[::ffff:169.254.169.254]/"},
        {},
    ],
)
def test_invalid_settings(settings: dict[str, Any]) -> None:
    """Found when the source is opened."""
    with pytest.raises(InvalidSource):
        HttpSource(SourceConfig(settings, VirtualClock()))


def test_quoted_names_of_members_are_no_operators() -> None:
    """Dots and question marks in them do not count."""
    HttpSource(SourceConfig({"url": "http://a", "jsonPath": "$['a..b?']['c..?d']"}, VirtualClock()))


@pytest.mark.parametrize(
    ("address", "is_link_local"),
    [
        ("169.254.169.254", True),
        ("169.254.0.1", True),
        ("fe80::1", True),
        ("fe80::1%eth0", True),
        ("::ffff:169.254.169.254", True),
        ("64:ff9b::a9fe:a9fe", True),
        ("2002:a9fe:a9fe::1", True),
        ("fd00:ec2::254", True),
        ("100.100.100.200", True),
        ("10.0.0.1", False),
        ("127.0.0.1", False),
        ("::1", False),
        ("fd00::1", False),
        ("prometheus", False),
    ],
)
def test_addresses(address: str, *, is_link_local: bool) -> None:
    """Link-local ones, also embedded in IPv6 addresses, and the metadata services of clouds."""
    assert is_refused(address) is is_link_local


class Names(AbstractResolver):
    """A resolver with one address for all names."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The address."""
        return [ResolveResult(hostname=host, host=self._address, port=port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        """Do nothing."""


async def test_a_name_of_a_refused_address() -> None:
    """Refused after DNS, so a name does not help."""
    with pytest.raises(RefusedAddress):
        await GuardedResolver(Names("169.254.169.254")).resolve("metadata.example.com", 80)
    assert [each["host"] for each in await GuardedResolver(Names("10.0.0.7")).resolve("queue", 80)] == ["10.0.0.7"]


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("2130706433", id="decimal"),
        pytest.param("0177.0.0.1", id="octal"),
        pytest.param("127.1", id="short"),
        pytest.param("127.0.1", id="three parts"),
        pytest.param("127.0.0.1.", id="a dot at the end"),
    ],
)
async def test_other_forms_of_addresses(server: TestServer, host: str) -> None:
    """A resolver would read each as 127.0.0.1, and likewise 169.254.169.254; the client rejects them before."""
    with pytest.raises(ValueError, match=r"not a canonical IPv4 address"):
        await read(f"http://{host}:{server.port}/plain")


@pytest.mark.parametrize("host", ["0xA9FEA9FE", "0xa9.0xfe.0xa9.0xfe"])
async def test_hexadecimal_forms_of_addresses(host: str) -> None:
    """They are names for the client; what a resolver reads in them is refused as the address of any name."""
    with pytest.raises(aiohttp.ClientConnectorDNSError) as caught:
        await read(f"http://{host}/")
    assert isinstance(caught.value.os_error, RefusedAddress)


def test_the_query() -> None:
    """What is asked; the query of the URL may have a key, and is not shown."""
    settings = {"url": "http://queue/stats?key=sesame#a", "jsonPath": "$.length"}
    assert HttpSource(SourceConfig(settings, VirtualClock())).query == "http $.length of http://queue/stats"
