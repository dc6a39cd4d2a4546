"""The real transport: credentials, TLS faults, and the words for connections that fail."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from own_ports import own_place
from podscaler.base.errors import UsageError
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.http_transport import HttpTransport
from podscaler.kube.transport.transport import Request, TransportError


class RenewedToken:
    """Credentials that give a good token once the first was refused."""

    def __init__(self) -> None:
        self.value = "Bearer old"

    async def authorization(self) -> str:
        return self.value

    def renew_after_401(self, authorization: str | None) -> bool:
        self.value = "Bearer new"
        return True


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    """A server that accepts the token `new`, and hangs at /hang."""

    async def guarded(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.headers.get("Authorization") == "Bearer new" else 401)

    async def hang(_: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    application = web.Application()
    application.router.add_get("/", guarded)
    application.router.add_get("/hang", hang)
    async with TestServer(application) as made:
        yield made


async def _failure(config: Config, request: Request) -> TransportError:
    transport = await http_transport.connect(config, user_agent="test")
    try:
        with pytest.raises(TransportError) as caught:
            await transport.request(request)
        return caught.value
    finally:
        await transport.close()


async def test_a_refused_token_is_renewed_once(server: TestServer) -> None:
    """401 makes the transport ask its credentials again and repeat the request."""
    transport = HttpTransport(
        Config(str(server.make_url("")).rstrip("/"), credentials=RenewedToken()), None, user_agent="test"
    )
    answer = await transport.request(Request("GET", "/"))
    await transport.close()
    assert answer.status == 200


async def test_nobody_listens() -> None:
    """A refused connection has Go's words with the address that refused."""
    place = "{}:{}".format(*own_place())
    error = await _failure(Config(f"http://{place}"), Request("GET", "/api", "limit=5"))
    expected = f'Get "http://{place}/api?limit=5": dial tcp {place}: connect: connection refused'
    assert (str(error), error.broken) == (expected, False)


async def test_a_server_that_hangs(server: TestServer) -> None:
    """A request that gets no answer within its time says so, and is not called broken."""
    config = Config(str(server.make_url("")).rstrip("/"))
    error = await _failure(config, Request("GET", "/hang", timeout_s=0.05))
    assert (error.cause, error.broken) == (
        "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        False,
    )


async def test_a_watch_that_never_begins(server: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream may last, but its beginning must come."""
    monkeypatch.setattr(http_transport, "HEADERS_TIMEOUT_S", 0.05)
    transport = HttpTransport(Config(str(server.make_url("")).rstrip("/")), None, user_agent="test")

    async def read() -> None:
        async with transport.stream(Request("GET", "/hang")):
            pass

    with pytest.raises(TransportError, match="context deadline exceeded"):
        await read()
    await transport.close()


async def test_tls_to_a_plain_server(server: TestServer) -> None:
    """Speaking TLS to a server that does not is a TransportError, not a traceback."""
    error = await _failure(Config(f"https://127.0.0.1:{server.port}", verify=False), Request("GET", "/"))
    assert error.cause.startswith("tls: ")


@pytest.mark.parametrize(
    ("config", "text"),
    [
        pytest.param(Config("https://x", ca_pem=b"nonsense", origin="kubeconfig F"), "certificate-authority", id="ca"),
        pytest.param(
            Config("https://x", client_certificate_pem=b"a", client_key_pem=b"b", origin="kubeconfig F"),
            "client-certificate and client-key cannot be used",
            id="client certificate",
        ),
    ],
)
async def test_unusable_certificates_are_a_usage_error(config: Config, text: str) -> None:
    """What cannot be loaded names the configuration and the field."""
    with pytest.raises(UsageError, match=f"kubeconfig F: {text}"):
        await http_transport.connect(config, user_agent="test")
