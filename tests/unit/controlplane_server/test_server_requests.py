"""Requests over HTTP where the captures of a real server say nothing: sizes, encodings, caching, bugs, lifecycle."""

import asyncio
import gzip
import json
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import policies
import pytest
from server_under_test import CONFIG_MAPS, VIEWER_TOKEN, Running, config_map, running_server

from patience import WITHIN_S
from podscaler.base.errors import UsageError
from podscaler.controlplane.apiserver.app import ApiServer
from podscaler.controlplane.apiserver.http import request_bodies
from podscaler.controlplane.auth.authenticator import Authenticator
from podscaler.controlplane.credentials import certificates
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.users import ADMIN
from podscaler.controlplane.storage.store import open_store, run_inline
from podscaler.testing import VirtualClock


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A running server."""
    async with running_server(tmp_path) as running:
        yield running


async def test_stored_bytes_are_sent(server: Running) -> None:
    """An object in its storage version is answered as it is stored, Go's escapes included."""
    await server.create(CONFIG_MAPS, config_map("a", x="<&>"))
    async with server.client.get(f"{server.url}{CONFIG_MAPS}/a") as answer:
        body = await answer.read()
    assert body == server.objects.get("configmaps", "default", "a").body
    assert b'"x":"\\u003c\\u0026\\u003e"' in body


async def test_list_items_carry_no_type(server: Running) -> None:
    """Items of a typed list have no kind and apiVersion, as upstream's have none."""
    await server.create(CONFIG_MAPS, config_map("a"))
    body = (await server.get(CONFIG_MAPS)).body
    assert (body["kind"], body["apiVersion"], next(iter(body["items"][0]))) == ("ConfigMapList", "v1", "metadata")
    assert "kind" not in body["items"][0]


async def test_large_answers_are_compressed(server: Running) -> None:
    """Answers of more than 128 KiB are gzipped for clients that take it, and only for those."""
    await server.create(CONFIG_MAPS, config_map("big", x="y" * 200_000))
    sizes = []
    for encoding in ("gzip", "identity"):
        request = server.client.get(
            f"{server.url}{CONFIG_MAPS}/big", headers={"Accept-Encoding": encoding}, auto_decompress=False
        )
        async with request as answer:
            data = await answer.read()
        sizes.append(len(data))
        text = gzip.decompress(data) if answer.headers.get("Content-Encoding") == "gzip" else data
        assert len(json.loads(text)["data"]["x"]) == 200_000
    compressed, plain = sizes
    assert compressed < plain / 40


@pytest.mark.parametrize(
    ("query", "agent", "is_indented"),
    [
        pytest.param("", "Go-http-client/2.0", False, id="a program"),
        pytest.param("", "curl/8.0", True, id="curl"),
        pytest.param("?pretty=true", "Go-http-client/2.0", True, id="asked for"),
        pytest.param("?pretty=0", "curl/8.0", False, id="declined"),
    ],
)
async def test_indentation(server: Running, query: str, agent: str, is_indented: bool) -> None:
    """People get indented JSON, programs compact JSON."""
    async with server.client.get(f"{server.url}/version{query}", headers={"User-Agent": agent}) as answer:
        assert (await answer.read()).startswith(b'{\n  "major"') == is_indented


async def test_discovery_is_cached_by_etag(server: Running) -> None:
    """A client that has a document already gets a 304, of the type of the document that it has."""
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    first = await server.get("/apis", headers=accept)
    again = await server.get("/apis", headers={**accept, "If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, "")
    assert again.headers["Content-Type"] == first.headers["Content-Type"]


async def test_too_large_without_a_length(server: Running) -> None:
    """A body of unknown length is refused as soon as it is too long."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b"x" * 65_536

    reply = await server.request("POST", CONFIG_MAPS, data=chunks(), headers={"Content-Type": "application/json"})
    assert (reply.status, reply.body["message"]) == (413, "Request entity too large: limit is 3145728")


async def test_body_that_does_not_come(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that stops in the middle of its body does not hold a handler for ever."""
    monkeypatch.setattr(request_bodies, "READ_TIMEOUT_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    writer.write(
        f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n"
        "Content-Length: 100\r\n\r\n{".encode()
    )
    assert (await asyncio.wait_for(reader.readline(), WITHIN_S)).startswith(b"HTTP/1.1 408")
    writer.close()
    await writer.wait_closed()


async def test_deep_bodies(server: Running) -> None:
    """Nesting without end is a 400, in JSON and in YAML."""
    for content_type, body in (("application/json", "[" * 100_000), ("application/yaml", "[" * 5_000)):
        reply = await server.request("POST", CONFIG_MAPS, data=body, headers={"Content-Type": content_type})
        assert reply.status == 400


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "x"])
async def test_compressed_bodies(server: Running, encoding: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing unpacks a body, whatever it says, as upstream: a compressed one is no JSON, and nothing is logged."""
    packed = gzip.compress(b"x" * 50_000_000)
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    reply = await server.request("POST", CONFIG_MAPS, data=packed, headers=headers)
    assert (reply.status, "json parse error: invalid character" in reply.body["message"]) == (400, True)
    plain = await server.request("POST", CONFIG_MAPS, json=config_map("a"), headers={"Content-Encoding": encoding})
    assert (plain.status, caplog.text) == (201, "")


async def test_only_gzip_by_its_name_is_taken(server: Running) -> None:
    """A long answer is compressed where the client names gzip, and nowhere else."""
    await server.create(CONFIG_MAPS, {**config_map("long"), "data": {"a": "x" * 200_000}})
    encodings = {}
    for wanted in ("gzip", "deflate, gzip", "gzip;q=0", "x-gzip", "identity"):
        async with server.client.get(f"{server.url}{CONFIG_MAPS}/long", headers={"Accept-Encoding": wanted}) as answer:
            encodings[wanted] = answer.headers.get("Content-Encoding", "")
    assert encodings == {"gzip": "gzip", "deflate, gzip": "gzip", "gzip;q=0": "", "x-gzip": "", "identity": ""}


async def test_bugs_are_not_shown(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug of ours is a 500 without a traceback, which goes to the log."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(server.objects, "get", broken)
    reply = await server.get(f"{CONFIG_MAPS}/a")
    assert (reply.status, reply.body["reason"], "secret" in str(reply.body)) == (500, "InternalError", False)
    assert "ZeroDivisionError" in caplog.text


async def test_warning_headers(server: Running) -> None:
    """Each unknown field is a Warning header, also where the object is refused in the end."""
    obj = {**config_map("a"), "x\ny": 1, 'q"': 2}
    accepted = await server.request("POST", CONFIG_MAPS, json=obj)
    assert accepted.status == 201
    refused = await server.request("POST", CONFIG_MAPS, json={**config_map("UPPER"), "x": 1})
    assert (refused.status, refused.headers["Warning"]) == (422, '299 - "unknown field \\"x\\""')


async def test_binding_a_pod(server: Running) -> None:
    """A binding names the pod's node, once."""
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await server.create(pods, pod)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    first = await server.request("POST", f"{pods}/p/binding", json=binding)
    second = await server.request("POST", "/api/v1/namespaces/default/bindings", json=binding)
    assert (first.status, second.status) == (201, 409)
    assert (await server.get(f"{pods}/p")).body["spec"]["nodeName"] == "n1"


async def test_finalizing_a_namespace(server: Running) -> None:
    """A deleted namespace goes once its spec names no finalizer any more."""
    await server.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    marked = (await server.request("DELETE", "/api/v1/namespaces/n")).body
    assert marked["status"]["phase"] == "Terminating"
    emptied = {**marked, "spec": {}}
    assert (await server.request("PUT", "/api/v1/namespaces/n/finalize", json=emptied)).status == 200
    assert (await server.get("/api/v1/namespaces/n")).status == 404


async def test_impersonation(server: Running) -> None:
    """Masters may act for others, who then have only their own rights."""
    headers = {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}
    assert (await server.get(CONFIG_MAPS, headers=headers)).status == 200
    reply = await server.get(CONFIG_MAPS, headers={"Impersonate-User": "bob"})
    assert reply.body["message"].startswith('configmaps is forbidden: User "bob" cannot list resource')


async def test_reviews(server: Running) -> None:
    """Anyone may ask who they are and what they may do."""
    await policies.create_default_policy(server.objects)
    group = "/apis/authorization.k8s.io/v1"
    wanted = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
    headers = {"Authorization": f"Bearer {VIEWER_TOKEN}"}
    answers = [
        (await server.request("POST", path, json=body, headers=headers)).body["status"]
        for path, body in (
            (f"{group}/selfsubjectaccessreviews", wanted),
            (f"{group}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}),
            ("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
        )
    ]
    assert answers[0] == {"allowed": False}
    assert answers[1]["resourceRules"][0]["resources"] == [
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
    ]
    assert answers[2]["userInfo"] == {"username": "viewer", "groups": ["viewers", "system:authenticated"]}


@pytest.mark.parametrize(
    ("plural", "spec", "status"),
    [
        pytest.param(
            "authentication.k8s.io/v1/tokenreviews",
            {"token": VIEWER_TOKEN},
            {
                "authenticated": True,
                "user": {"username": "viewer", "groups": ["viewers", "system:authenticated"]},
                "audiences": ["https://kubernetes.default.svc.cluster.local"],
            },
            id="a token",
        ),
        pytest.param(
            "authentication.k8s.io/v1/tokenreviews",
            {"token": "x"},
            {"user": {}, "error": "invalid bearer token"},
            id="no token",
        ),
        pytest.param(
            "authorization.k8s.io/v1/subjectaccessreviews",
            {"user": "eve", "groups": ["system:masters"], "nonResourceAttributes": {"verb": "get", "path": "/x"}},
            {"allowed": True},
            id="someone else",
        ),
    ],
)
async def test_reviews_of_others(server: Running, plural: str, spec: object, status: object) -> None:
    """The admin may ask about tokens and about others."""
    reply = await server.request("POST", f"/apis/{plural}", json={"spec": spec})
    assert (reply.status, reply.body["status"]) == (201, status)


async def test_port_in_use(server: Running, tmp_path: Path) -> None:
    """A port that somebody else has is one sentence."""
    port = int(server.url.rpartition(":")[2])
    clock = VirtualClock()
    store = await open_store(tmp_path / "other", clock, run=run_inline)
    other = ApiServer(Objects(store, []), [], authenticator=Authenticator({}), tls=None, clock=clock)
    with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 is in use: stop what uses it or choose another"):
        await other.start("127.0.0.1", port)
    with pytest.raises(UsageError, match="70000 is no port"):
        await other.start("127.0.0.1", 70_000)
    await other.stop()
    await store.close()


async def test_tls(tmp_path: Path) -> None:
    """Over HTTPS, a client that trusts the authority needs nothing else to be sure of the server."""
    clock = VirtualClock()
    made = certificates.ensure(tmp_path / "pki", now_ns=time.time_ns())
    store = await open_store(tmp_path / "store", clock, run=run_inline)
    users = Authenticator({"t" * 20: ADMIN})
    server = ApiServer(Objects(store, []), [], authenticator=users, tls=made.server_context(), clock=clock)
    port = await server.start("127.0.0.1", 0)
    trusting = ssl.create_default_context(cadata=made.authority_pem.decode())
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {'t' * 20}"}) as client,
        client.get(f"https://localhost:{port}/readyz", ssl=trusting) as answer,
    ):
        assert (answer.status, await answer.text()) == (200, "ok")
    await server.stop()
    await store.close()


async def test_objects_are_stored_as_a_server_prints_them(server: Running) -> None:
    """Empty lists and maps are not kept, and fields stand in the order of their type, whoever wrote them how."""
    pod = {
        "metadata": {"name": "p"},
        "spec": {"tolerations": [], "volumes": [], "containers": [{"image": "i", "env": [], "name": "c"}]},
    }
    created = await server.create("/api/v1/namespaces/default/pods", pod)
    [container] = created["spec"]["containers"]
    assert ("volumes" in created["spec"], "env" in container) == (False, False)
    assert list(container)[:2] == ["name", "image"]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        pytest.param("Authorization: Bearer hidden\x01", b"400", id="a byte that may not be there"),
        pytest.param("Authorization : Bearer hidden", b"400", id="a blank that may not be there"),
        pytest.param(f"Authorization: Bearer hidden {'x' * 100_000}", b"431", id="too long"),
    ],
)
async def test_no_token_is_logged(
    server: Running, caplog: pytest.LogCaptureFixture, header: str, status: bytes
) -> None:
    """What is no HTTP gets 400, or 431 for its size; the log says at most that there was one, and nothing of it."""
    caplog.set_level("DEBUG")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    writer.write(f"GET /api HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n".encode())
    assert (await reader.readline()).split()[1] == status
    writer.close()
    assert "hidden" not in caplog.text
    assert [record.levelname for record in caplog.records if record.name.startswith("podscaler")] == ["INFO"]
    assert not [record for record in caplog.records if record.name.startswith("aiohttp")]
