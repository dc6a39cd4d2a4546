"""The subresource `proxy` of pods, Services and nodes: where requests go, what is sent on, and what comes back."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from server_under_test import ADMIN_TOKEN, VIEWER_TOKEN, Reply, Running, running_server

from podscaler.base import http_server
from podscaler.controlplane.apiserver.handlers import endpoint_proxy
from podscaler.controlplane.apiserver.handlers.proxy_targets import ProxyTarget
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.registry.pod_connections import NodeEndpoint

Object = dict[str, Any]
CORE = "/api/v1/namespaces/default"
WEB = f"{CORE}/pods/web/proxy"


@dataclass
class Target:
    """An HTTP server in the place of a pod; keeps the requests that it gets."""

    port: int = 0
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """A response for each path; other paths are repeated."""
        body = await request.read()
        self.requests.append((request.method, request.raw_path, body))
        self.headers.append(request.headers.copy())
        if request.path == "/moved":
            return web.Response(status=302, headers={"Location": "/there?a=1"})
        if request.path == "/drop":
            assert request.transport is not None
            request.transport.abort()
        if request.path == "/stream":
            return await self._stream(request)
        return web.Response(body=body.upper() or b"hello", headers={"X-Own": "kept", "Connection": "close"})

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        await self.may_end.wait()
        await response.write(b"last")
        return response


class Node:
    """The node as the API server sees it: all pods but `lost` have the target's port."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def locate(self, pod: Object, port: int) -> tuple[str, int] | None:
        """Port 8080 of a pod is the target's; nobody listens on others."""
        if pod["metadata"]["name"] == "lost":
            return None
        return "127.0.0.1", self._target.port if port == 8080 else 1


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    """The server behind the proxy."""
    made = Target()
    runner = web.ServerRunner(http_server.Server(made.respond))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


@pytest.fixture
async def server(tmp_path: Path, target: Target) -> AsyncIterator[Running]:
    """An API server with pods, a Service, its slice and a node."""
    endpoint = NodeEndpoint("here", "127.0.0.1", 1, ssl.create_default_context)
    parts = ServerParts(connections=Node(target), find_node_endpoint=lambda: endpoint)  # type: ignore[arg-type] # one method
    async with running_server(tmp_path, parts) as running:
        for name in ("web", "lost"):
            container = {"name": "main", "image": "none", "ports": [{"containerPort": 8080}]}
            pod = {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
            await running.create(f"{CORE}/pods", pod)
        ports = [{"name": "http", "port": 80}, {"name": "bare", "port": 81}]
        await running.create(
            f"{CORE}/services", {"kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": ports}}
        )
        await running.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", endpoint_slice())
        await running.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": "here"}})
        await running.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": "elsewhere"}})
        yield running


def endpoint_slice() -> Object:
    """The pod `web`, a pod that does not exist, and an address that is no pod's."""
    references: list[Object | None] = [
        {"kind": "Pod", "namespace": "default", "name": name} for name in ("web", "none")
    ]
    endpoints = [{"addresses": ["10.0.0.1"], "targetRef": each} for each in references]
    return {
        "kind": "EndpointSlice",
        "metadata": {"name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}],
        "endpoints": [*endpoints, {"addresses": ["127.0.0.1"]}],
    }


@pytest.mark.parametrize(
    "path",
    [
        f"{CORE}/pods/web/proxy/x",
        f"{CORE}/pods/web:8080/proxy/x",
        f"{CORE}/pods/http:web:8080/proxy/x",
        f"{CORE}/services/web:80/proxy/x",
        f"{CORE}/services/web:http/proxy/x",
        f"{CORE}/services/http:web:http/proxy/x",
    ],
)
async def test_requests_get_there(server: Running, path: str) -> None:
    """By the number or the name of a port, with or without the scheme."""
    reply = await server.get(path)
    assert (reply.status, reply.body, reply.headers["X-Own"]) == (200, "hello", "kept")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_the_request_is_kept(server: Running, target: Target, method: str) -> None:
    """Method, escaped path, query and body are the client's."""
    reply = await server.request(method, f"{WEB}/a%20b/proxy/c?x=%26&y", data=b"body")
    assert reply.body == "BODY"
    assert target.requests == [(method, "/a%20b/proxy/c?x=%26&y", b"body")]
    assert target.headers[0]["Content-Length"] == "4"


async def test_a_body_in_chunks(server: Running, target: Target) -> None:
    """A body without a length is sent on as it comes."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"a" * 100_000
        yield b"b"

    await server.request("POST", f"{WEB}/", data=chunks())
    assert target.requests[0][2] == b"a" * 100_000 + b"b"
    assert target.headers[0]["Transfer-Encoding"] == "chunked"


async def test_headers(server: Running, target: Target) -> None:
    """The token stays here; the target learns how the client called it."""
    await server.get(
        f"{WEB}/x", headers={"Impersonate-User": "admin", "Impersonate-Group": "system:masters", "X-A": "1"}
    )
    sent, host = target.headers[0], server.url.removeprefix("http://")
    assert ("Authorization" in sent, "Impersonate-User" in sent, sent["X-A"]) == (False, False, "1")
    assert [sent[f"X-Forwarded-{name}"] for name in ("For", "Host", "Uri")] == ["127.0.0.1", host, f"{WEB}/x"]


async def test_a_stream(server: Running, target: Target) -> None:
    """What the target has sent arrives before it has sent all."""
    async with server.client.get(f"{server.url}{WEB}/stream") as response:
        first = await response.content.readexactly(5)
        target.may_end.set()
        assert (first, await response.read()) == (b"first", b"last")


@pytest.mark.parametrize("query", ["", "?a=1"])
async def test_an_empty_path_is_redirected(server: Running, query: str) -> None:
    """A slash is appended, so that relative links of a page work."""
    reply = await server.get(WEB + query, allow_redirects=False)
    assert (reply.status, reply.headers["Location"]) == (301, f"{WEB}/{query}")


async def test_a_redirect_stays_in_the_proxy(server: Running) -> None:
    """An absolute path of the target is one below the proxy for the client."""
    reply = await server.get(f"{WEB}/moved", allow_redirects=False)
    host = server.url.removeprefix("http://")
    assert (reply.status, reply.headers["Location"]) == (302, f"https://{host}{WEB}/there?a=1")


@pytest.mark.parametrize(
    ("location", "rewritten"),
    [
        ("/a", "https://api/base/a"),
        ("http://10.0.0.1:80/a?b#c", "https://api/base/a?b#c"),
        ("http://api/a", "https://api/base/a"),
        ("http://other/a", "http://other/a"),
        ("a", "a"),
        ("http://[bad", "http://[bad"),
        ("/base/a", "/base/a"),
        ("http://10.0.0.1:80/base/a", "https://api/base/a"),
    ],
)
def test_locations(location: str, rewritten: str) -> None:
    """Only absolute paths of the same host are rewritten."""
    target = ProxyTarget("http", "10.0.0.1", 80)
    assert endpoint_proxy.through_proxy(location, "/base", target, "api") == rewritten


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (f"{CORE}/pods/none/proxy/", 404, 'pods "none" not found'),
        (f"{CORE}/pods/ftp:web:80/proxy/", 400, 'invalid pod request "ftp:web:80"'),
        (f"{CORE}/pods/web:x/proxy/", 400, 'invalid pod request "web:x"'),
        (f"{CORE}/pods/lost/proxy/", 400, "address not allowed"),
        (f"{CORE}/pods/web:99999/proxy/", 400, 'invalid pod request "web:99999"'),
        (
            f"{CORE}/pods/web:9/proxy/",
            503,
            "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused",
        ),
        (f"{CORE}/services/none:80/proxy/", 404, 'services "none" not found'),
        (f"{CORE}/services/none/proxy/", 503, 'no endpoints available for service "none"'),
        (f"{CORE}/services/a:b:c:d/proxy/", 400, 'invalid service request "a:b:c:d"'),
        (f"{CORE}/services/web:99/proxy/", 503, 'no service port 99 found for service "web"'),
        (f"{CORE}/services/web:{'9' * 4400}/proxy/", 503, 'no endpoints available for service "web"'),
        (f"{CORE}/services/web:bare/proxy/", 503, 'no endpoints available for service "web"'),
        ("/api/v1/nodes/none/proxy/healthz", 404, 'nodes "none" not found'),
        ("/api/v1/nodes/here:22/proxy/healthz", 400, "address not allowed"),
        ("/api/v1/nodes/elsewhere/proxy/healthz", 503, 'no endpoint of node "elsewhere" is known'),
    ],
)
async def test_refusals(server: Running, path: str, status: int, message: str) -> None:
    """In the words of kube-apiserver."""
    reply = await server.get(path)
    assert (reply.status, reply.body["message"]) == (status, message)


async def test_permission(server: Running, target: Target) -> None:
    """The subresource has verbs of its own; nothing is sent without them."""
    reply = await server.request("POST", f"{WEB}/", headers={"Authorization": f"Bearer {VIEWER_TOKEN}"})
    text = 'pods "web" is forbidden: User "viewer" cannot create resource "pods/proxy" in API group "" in the namespace'
    assert reply.status == 403
    assert reply.body["message"].startswith(text)
    assert target.requests == []


async def test_upgrades(server: Running) -> None:
    """They are refused before anything is sent."""
    reply: Reply = await server.get(
        f"{WEB}/", headers={"Connection": "Upgrade", "Upgrade": "websocket", "Authorization": f"Bearer {ADMIN_TOKEN}"}
    )
    assert (reply.status, reply.body["message"]) == (400, "connections cannot be upgraded through the proxy")


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
async def test_a_request_is_sent_once(server: Running, target: Target, method: str) -> None:
    """A pod that closes the connection without a response may have done what was asked."""
    reply = await server.request(method, f"{WEB}/drop")
    assert (reply.status, target.requests) == (503, [(method, "/drop", b"")])
