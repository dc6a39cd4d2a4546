"""The real transport with real servers and proxies: TLS, client certificates, tunnels, and connections that die."""

import asyncio
from pathlib import Path

import pytest
from certificate_authority import Issuer
from cryptography import x509

from patience import WITHIN_S
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.transport import Request, TransportError
from tcp_server import serving

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Api:
    """A server that answers `ok` and remembers what it was asked and by whom."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.peers: list[str] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while True:
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            certificate = writer.get_extra_info("peercert") or {}
            self.peers.append(dict(part[0] for part in certificate.get("subject", ())).get("commonName", ""))
            writer.write(OK)


class Proxy:
    """A proxy that forwards whatever it is asked to connect to; wants a user if told so."""

    def __init__(self, target_port: int) -> None:
        self.asked: list[str] = []
        self._target_port = target_port

    async def serve_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head)
        if "denied" in head:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        elif head.startswith("CONNECT"):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._forward(reader, writer)
        else:
            writer.write(OK)

    async def serve_socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        writer.write(bytes([5, max(methods)]))
        if max(methods) == 2:
            length = (await reader.readexactly(2))[1]
            user = await reader.readexactly(length)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            self.asked.append(f"{user.decode()}:{password.decode()}")
            writer.write(b"\x01\x00")
        name = await reader.readexactly((await reader.readexactly(5))[4])
        self.asked.append(name.decode())
        await reader.readexactly(2)
        if name == b"denied":
            writer.write(bytes([5, 2, 0, 1, 0, 0, 0, 0, 0, 0]))
            return
        writer.write(bytes([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
        await self._forward(reader, writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        try:
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        finally:
            far_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """One authority for all."""
    return Issuer()


async def _answers(config: Config, *targets: str) -> list[str]:
    transport = await http_transport.connect(config, user_agent="test")
    try:
        return [
            (await transport.request(Request("GET", target, timeout_s=WITHIN_S))).body.decode() for target in targets
        ]
    finally:
        await transport.close()


async def _failure(config: Config) -> str:
    with pytest.raises(TransportError) as caught:
        await _answers(config, "/")
    return caught.value.cause


async def test_tls(issuer: Issuer, tmp_path: Path) -> None:
    """A trusted server is asked over one kept connection, with the client certificate that the configuration has."""
    api = Api()
    pem = issuer.issue("ann")
    certificate, _, key = pem.partition(b"-----END CERTIFICATE-----\n")
    async with serving(api.serve, context=issuer.server_context(tmp_path, "127.0.0.1")) as port:
        config = Config(
            f"https://127.0.0.1:{port}",
            ca_pem=issuer.pem,
            client_certificate_pem=certificate + b"-----END CERTIFICATE-----\n",
            client_key_pem=key,
        )
        answers = await _answers(config, "/a", "/b")
    assert (answers, api.peers, api.connections) == (["ok", "ok"], ["ann", "ann"], 1)


async def test_the_authority_is_not_shown(issuer: Issuer, tmp_path: Path) -> None:
    """A certificate that comes alone is shown alone: a server would check the signatures of all others too."""
    shown: list[set[str]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chain = writer.get_extra_info("ssl_object")._sslobj.get_unverified_chain()  # public from Python 3.13 on
        shown.append(
            {x509.load_pem_x509_certificate(each.public_bytes().encode()).subject.rfc4514_string() for each in chain}
        )
        await Api().serve(reader, writer)

    async with serving(serve, context=issuer.server_context(tmp_path, "127.0.0.1")) as port:
        certificates = Rotating(issuer.issue("ann"))
        await _answers(Config(f"https://127.0.0.1:{port}", ca_pem=issuer.pem, certificates=certificates), "/")
    assert shown == [{"CN=ann"}]


async def test_a_server_of_another_name(issuer: Issuer, tmp_path: Path) -> None:
    """The certificate must have the server's name, or the one that the kubeconfig gives; or nobody looks."""
    api = Api()
    async with serving(api.serve, context=issuer.server_context(tmp_path, "api.internal")) as port:
        server = f"https://127.0.0.1:{port}"
        cause = await _failure(Config(server, ca_pem=issuer.pem))
        named = await _answers(Config(server, ca_pem=issuer.pem, tls_server_name="api.internal"), "/")
        unverified = await _answers(Config(server, verify=False), "/")
    assert cause.startswith("tls: failed to verify certificate: x509: ")
    assert (named, unverified) == (["ok"], ["ok"])


async def test_an_unknown_authority(issuer: Issuer, tmp_path: Path) -> None:
    """A server whose certificate nobody vouches for is refused in Go's words."""
    async with serving(Api().serve, context=issuer.server_context(tmp_path, "127.0.0.1")) as port:
        cause = await _failure(Config(f"https://127.0.0.1:{port}", ca_pem=Issuer().pem))
    assert cause == "tls: failed to verify certificate: x509: certificate signed by unknown authority"


class Rotating:
    """Client certificates that change."""

    def __init__(self, *pems: bytes) -> None:
        self._pems = list(pems)

    async def pem(self) -> bytes:
        return self._pems.pop(0) if len(self._pems) > 1 else self._pems[0]


async def test_a_certificate_that_changes(issuer: Issuer, tmp_path: Path) -> None:
    """A new client certificate is shown on a new connection, before the next request."""
    api = Api()
    certificates = Rotating(issuer.issue("first"), issuer.issue("second"))
    async with serving(api.serve, context=issuer.server_context(tmp_path, "127.0.0.1")) as port:
        config = Config(f"https://127.0.0.1:{port}", ca_pem=issuer.pem, certificates=certificates)
        await _answers(config, "/", "/", "/")
    assert (api.peers, api.connections) == (["first", "second", "second"], 2)


@pytest.mark.parametrize("is_proxy_tls", [False, True], ids=["http proxy", "https proxy"])
async def test_a_tunnel(issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_proxy_tls: bool) -> None:
    """An HTTPS server is reached by CONNECT, with the proxy's credentials, which the server does not see."""
    api = Api()
    trust = tmp_path / "ca.pem"
    trust.write_bytes(issuer.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(trust))
    async with serving(api.serve, context=issuer.server_context(tmp_path, "api.internal")) as port:
        proxy = Proxy(port)
        proxy_context = issuer.server_context(tmp_path, "127.0.0.1") if is_proxy_tls else None
        async with serving(proxy.serve_http, context=proxy_context) as proxy_port:
            scheme = "https" if is_proxy_tls else "http"
            config = Config(
                "https://api.internal", ca_pem=issuer.pem, proxy=f"{scheme}://ann:s%20t@127.0.0.1:{proxy_port}"
            )
            answers = await _answers(config, "/a", "/b")
    assert answers == ["ok", "ok"]
    assert proxy.asked == [
        "CONNECT api.internal:443 HTTP/1.1\r\nHost: api.internal:443\r\nProxy-Authorization: Basic YW5uOnMgdA==\r\n\r\n"
    ]
    assert "Proxy" not in api.heads[0]


async def test_a_plain_server_behind_a_proxy() -> None:
    """An HTTP server is asked through the proxy by its whole URL."""
    proxy = Proxy(0)
    async with serving(proxy.serve_http) as port:
        await _answers(Config("http://api.internal:8080/prefix", proxy=f"http://127.0.0.1:{port}"), "/a?b=c")
    assert proxy.asked[0].splitlines()[:2] == [
        "GET http://api.internal:8080/prefix/a?b=c HTTP/1.1",
        "Host: api.internal:8080",
    ]


@pytest.mark.parametrize("user", ["", "ann:secret"], ids=["nobody", "a user"])
async def test_socks(issuer: Issuer, tmp_path: Path, user: str) -> None:
    """A SOCKS5 proxy looks the name up and forwards, with a password if the URL has one."""
    api = Api()
    async with serving(api.serve, context=issuer.server_context(tmp_path, "api.internal")) as port:
        proxy = Proxy(port)
        async with serving(proxy.serve_socks) as proxy_port:
            at = f"{user}@" if user else ""
            config = Config("https://api.internal", ca_pem=issuer.pem, proxy=f"socks5://{at}127.0.0.1:{proxy_port}")
            answers = await _answers(config, "/")
    assert (answers, proxy.asked) == (["ok"], [*([user] if user else []), "api.internal"])


@pytest.mark.parametrize(
    ("scheme", "ending"),
    [
        ("http", "answered CONNECT with status 403"),
        ("socks5", "socks connect tcp: connection not allowed by ruleset"),
    ],
)
async def test_a_proxy_that_refuses(scheme: str, ending: str) -> None:
    """A refusal is named, and no request is sent."""
    proxy = Proxy(0)
    async with serving(proxy.serve_http if scheme == "http" else proxy.serve_socks) as port:
        cause = await _failure(Config("https://denied", verify=False, proxy=f"{scheme}://127.0.0.1:{port}"))
    assert cause.endswith(ending)


async def test_a_proxy_that_is_away() -> None:
    """A proxy that nobody serves is named with its address."""
    async with serving(Api().serve) as port:
        pass
    cause = await _failure(Config("https://h", verify=False, proxy=f"http://127.0.0.1:{port}"))
    assert cause == f"proxyconnect tcp: dial tcp 127.0.0.1:{port}: connect: connection refused"


async def test_a_kept_connection_that_the_server_closed() -> None:
    """A GET that meets a connection closed under it is sent again on another; a PUT is not."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode().split()[0])
        writer.write(OK)
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode().split()[0])

    async with serving(serve) as port:
        transport = await http_transport.connect(Config(f"http://127.0.0.1:{port}"), user_agent="test")
        for method in ("GET", "GET"):
            await transport.request(Request(method, "/", timeout_s=WITHIN_S))
        with pytest.raises(TransportError, match="EOF"):
            await transport.request(Request("PUT", "/", timeout_s=WITHIN_S))
        await transport.close()
    assert seen == ["GET", "GET", "GET", "PUT"]


async def test_who_stops_waiting_leaves_no_answer_behind() -> None:
    """A request that is cancelled takes its connection with it: the next one gets its own answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
            if path == b"/slow":
                await asyncio.sleep(0.2)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(path), path))

    async with serving(serve) as port:
        transport = await http_transport.connect(Config(f"http://127.0.0.1:{port}"), user_agent="test")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(transport.request(Request("GET", "/slow")), 0.05)
        answer = await transport.request(Request("GET", "/next"))
        await transport.close()
    assert answer.body == b"/next"


async def test_more_requests_than_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds no connection free waits for one; all are answered, over no more than there may be."""
    monkeypatch.setattr("podscaler.kube.transport.connection_pool.CONNECTIONS", 3)
    api = Api()
    async with serving(api.serve) as port:
        transport = await http_transport.connect(Config(f"http://127.0.0.1:{port}"), user_agent="test")
        answers = await asyncio.gather(*(transport.request(Request("GET", "/", timeout_s=WITHIN_S)) for _ in range(40)))
        await transport.close()
    assert ({answer.body for answer in answers}, api.connections) == ({b"ok"}, 3)


async def test_headers_of_every_request() -> None:
    """Who is to be impersonated, who we are, and that answers may be compressed goes with each request."""
    api = Api()
    async with serving(api.serve) as port:
        config = Config(f"http://127.0.0.1:{port}", headers=(("Impersonate-User", "zoë"),))
        await _answers(config, "/")
    assert api.heads[0].split("\r\n")[1:-2] == [
        f"Host: 127.0.0.1:{port}",
        "User-Agent: test",
        "Impersonate-User: zoë",
        "Accept-Encoding: gzip",
    ]


async def test_a_server_below_a_path() -> None:
    """A server's address may have a path, which stands before every request's."""
    api = Api()
    async with serving(api.serve) as port:
        await _answers(Config(f"http://127.0.0.1:{port}/k8s/clusters/c-1"), "/api?limit=1")
    assert api.heads[0].splitlines()[0] == "GET /k8s/clusters/c-1/api?limit=1 HTTP/1.1"


async def test_a_name_that_no_host_can_have() -> None:
    """A host name that cannot be looked up is an error of that request."""
    cause = await _failure(Config("http://a..b"))
    assert cause


async def test_a_token_that_would_end_the_header() -> None:
    """A token with a line break is refused before anything is sent."""

    class Broken:
        async def authorization(self) -> str:
            return "Bearer a\r\nX: y"

        def renew_after_401(self, authorization: str | None) -> bool:
            return False

    api = Api()
    async with serving(api.serve) as port:
        cause = await _failure(Config(f"http://127.0.0.1:{port}", credentials=Broken()))
    assert (cause, api.heads) == ('net/http: invalid header field value for "Authorization"', [])
