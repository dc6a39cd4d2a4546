"""Requests for what another API server serves: how they get there, and how its answers come back."""

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aggregation_world import GROUP, NAME, ROOT, SERVICE, THINGS, World, open_world
from aiohttp import ClientPayloadError, web
from yarl import URL

THINGS_PATH = f"{ROOT}/namespaces/default/things"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A server that hands requests on, and the one that gets them."""
    async with open_world(tmp_path) as opened:
        opened.extension.answers[THINGS_PATH] = THINGS
        await opened.aggregate()
        opened.extension.asked.clear()
        yield opened


async def test_the_answer_comes_back(world: World) -> None:
    """Status, body and type are the other server's."""
    reply = await world.get(THINGS_PATH)
    assert (reply.status, reply.body) == (200, THINGS)
    assert reply.headers["Cache-Control"] == "no-cache, private"


async def test_the_user_is_told_and_nothing_else_believed(world: World) -> None:
    """Identity comes from here: no token, no name that the client made up, no header of its connection gets through."""
    made_up = {"X-Remote-User": "root", "X-Remote-Group": "g", "X-Remote-Extra-k": "v", "X-Remote-Uid": "0"}
    connection = {"Connection": "X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=1", "TE": "trailers", "X-Own": "kept"}
    await world.get(THINGS_PATH, headers={**made_up, **connection}, token="admin")
    asked = world.extension.asked[0]
    assert (asked.peer, asked.all("X-Remote-User")) == ("front-proxy-client", ["admin"])
    assert asked.all("X-Remote-Group") == ["system:masters", "system:authenticated"]
    dropped = ("Authorization", "X-Remote-Extra-k", "X-Remote-Uid", "X-Hop", "Keep-Alive", "TE")
    assert {name: asked.all(name) for name in dropped} == {name: [] for name in dropped}
    assert asked.all("X-Own") == ["kept"]
    assert asked.all("X-Forwarded-For") == ["127.0.0.1"]


async def test_uid_and_extra_facts_of_a_user(world: World) -> None:
    """They go in headers of their own; keys are escaped, as no header may be called so."""
    await world.registry.create(
        "clusterrolebindings.rbac.authorization.k8s.io",
        {
            "metadata": {"name": "ann"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
        },
    )
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    await world.registry.create("clusterroles.rbac.authorization.k8s.io", {"metadata": {"name": "all"}, "rules": rules})
    await world.get(THINGS_PATH, token="known")
    asked = world.extension.asked[0]
    assert (asked.all("X-Remote-User"), asked.all("X-Remote-Uid")) == (["ann"], ["7"])
    assert asked.all("X-Remote-Extra-a%2FB%25") == ["x", "y"]


async def test_impersonation_ends_here(world: World) -> None:
    """The other server is told whom the request is for, not who may act for them."""
    await world.get(THINGS_PATH, headers={"Impersonate-User": "jane", "Impersonate-Group": "system:masters"})
    asked = world.extension.asked[0]
    assert (asked.all("X-Remote-User"), asked.all("Impersonate-User")) == (["jane"], [])
    assert asked.all("X-Remote-Group") == ["system:masters", "system:authenticated"]


async def test_who_may_not_does_not_get_there(world: World) -> None:
    """Rights are looked at before anything is sent."""
    reply = await world.get(THINGS_PATH, token="viewer")
    text = 'things.things.example.com is forbidden: User "viewer" cannot list resource "things" in API group'
    assert reply.status == 403
    assert reply.body["message"].startswith(text)
    assert world.extension.asked == []


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        pytest.param("?b=2&a=1&c=%2F&b=1", "?a=1&b=2&b=1&c=%2F", id="queries are sorted by name"),
        pytest.param("/%2a/x%20y", "/%2A/x%20y", id="paths are escaped as Go escapes them"),
        pytest.param("/a%2Fb", "/a/b", id="a slash is a slash, however it was written"),
        pytest.param("?labelSelector=a%3Db%2Cc&x", "?labelSelector=a%3Db%2Cc&x=", id="values that are empty"),
    ],
)
async def test_path_and_query(world: World, sent: str, received: str) -> None:
    """What was authorized is what is sent, in one way to write it."""
    async with world.client.get(
        URL(world.url + THINGS_PATH + sent, encoded=True), headers={"Authorization": "Bearer admin"}
    ):
        pass
    assert world.extension.asked[0].path == THINGS_PATH + received


async def test_bodies_are_sent(world: World) -> None:
    """Method, type and body arrive, also those of two megabytes."""
    body = b"x" * (2 << 20)
    reply = await world.request(
        "POST", THINGS_PATH, data=io.BytesIO(body), headers={"Content-Type": "application/json"}
    )
    asked = world.extension.asked[0]
    assert reply.status == 200
    assert (asked.method, asked.body == body, asked.all("Content-Type")) == ("POST", True, ["application/json"])


async def test_a_body_that_is_too_large(world: World) -> None:
    """It is refused as for our own objects."""
    reply = await world.request("POST", THINGS_PATH, data=io.BytesIO(b"x" * (4 << 20)))
    assert reply.status == 413
    assert world.extension.asked == []


async def _redirect(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": "/apis/elsewhere"})


async def _cut(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _teapot(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=418, text="short", headers={"X-Own": "1", "Connection": "X-Hop", "X-Hop": "1"})


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        pytest.param(
            _redirect, 502, "the backend attempted to redirect this request, which is not permitted", id="redirect"
        ),
        pytest.param(_cut, 503, "error trying to reach service: EOF\n", id="no answer"),
        pytest.param(_teapot, 418, "short", id="any status"),
    ],
)
async def test_other_answers(world: World, answer: Any, status: int, text: str) -> None:
    """In upstream's words."""
    world.extension.answers[f"{ROOT}/odd"] = answer
    reply = await world.get(f"{ROOT}/odd")
    assert (reply.status, reply.body) == (status, text)
    assert "X-Hop" not in reply.headers


async def test_a_server_that_has_gone(world: World) -> None:
    """As long as nobody has noticed it is tried; then requests are refused without."""
    await world.extension.stop()
    reply = await world.get(THINGS_PATH)
    port = world.extension.port
    text = f"error trying to reach service: dial tcp 127.0.0.1:{port}: connect: connection refused\n"
    assert (reply.status, reply.body) == (503, text)
    await world.check()
    reply = await world.get(THINGS_PATH)
    assert (reply.status, reply.body) == (503, "service unavailable\n")
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    await world.extension.start()
    await world.check()
    assert (await world.get(THINGS_PATH)).status == 200


async def test_a_service_that_has_gone(world: World) -> None:
    """Requests are refused, even before it was noticed."""
    await world.registry.delete("services", "default", SERVICE)
    reply = await world.get(THINGS_PATH)
    assert (reply.status, reply.body) == (503, "service unavailable\n")


async def test_watches_come_as_they_are_sent(world: World) -> None:
    """Each event reaches the client before the next one is sent."""
    read = asyncio.Event()

    async def watch(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for number in range(3):
            read.clear()
            await response.write(b'{"type":"ADDED","object":{"n":%d}}\n' % number)
            await read.wait()
        return response

    world.extension.answers[THINGS_PATH] = watch
    lines = []
    async with world.client.get(
        f"{world.url}{THINGS_PATH}?watch=true", headers={"Authorization": "Bearer admin"}
    ) as answer:
        async for line in answer.content:
            lines.append(line)
            read.set()
    assert lines == [b'{"type":"ADDED","object":{"n":%d}}\n' % number for number in range(3)]


async def test_a_server_that_takes_too_long(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not meant to last ends, as everywhere."""
    monkeypatch.setattr("podscaler.controlplane.apiserver.handlers.remote_proxy.REQUEST_TIMEOUT_S", 0.05)
    waited = asyncio.Event()

    async def hang(request: web.BaseRequest) -> web.StreamResponse:
        await waited.wait()
        return web.Response()

    world.extension.answers[THINGS_PATH] = hang
    reply = await world.get(THINGS_PATH)
    waited.set()
    assert (reply.status, reply.body["reason"]) == (504, "Timeout")
    assert reply.body["message"] == "Timeout: request did not complete within the allotted timeout"


async def test_open_watches_end_with_the_server(world: World) -> None:
    """As our own do: as if their time were up."""

    async def watch(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b"{}\n")
        await asyncio.Event().wait()
        return response

    world.extension.answers[THINGS_PATH] = watch
    path = f"{world.url}{THINGS_PATH}?watch=true"
    async with world.client.get(path, headers={"Authorization": "Bearer admin"}) as answer:
        assert await answer.content.readline() == b"{}\n"
        await world.server.stop()
        assert await answer.content.read() == b""


async def test_an_answer_that_breaks_off(world: World) -> None:
    """The client sees that it is not whole."""

    async def half(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return response

    world.extension.answers[THINGS_PATH] = half
    with pytest.raises(ClientPayloadError):
        await world.get(THINGS_PATH)


async def test_the_group_s_own_page_is_theirs(world: World) -> None:
    """The list of resources, and paths of the group and version that are no resources."""
    assert (await world.get(ROOT)).body["resources"][0]["name"] == "things"
    assert (await world.get(f"{ROOT}/nothing")).body["reason"] == "NotFound"


async def test_what_is_deleted_is_not_served(world: World) -> None:
    """Without its APIService the group is unknown."""
    await world.registry.delete("apiservices.apiregistration.k8s.io", "", NAME)
    reply = await world.get(THINGS_PATH)
    assert (reply.status, reply.body) == (404, "404 page not found\n")


@pytest.mark.parametrize("path", ["//apis/things.example.com/v1", "///apis/things.example.com/v1", "//elsewhere/x"])
async def test_a_path_never_names_a_host(world: World, path: str) -> None:
    """A path with two slashes at its beginning is no URL of another host: nothing is sent, by whomever it is asked."""
    remote = world.aggregation.remotes.find(GROUP, "v1")
    assert remote is not None
    with pytest.raises(ValueError, match="must begin with one slash"):
        await world.aggregation.connections.send(remote, ("localhost", world.extension.port), path=path, headers={})
    assert world.extension.asked == []


async def test_two_slashes_lead_to_no_other_server(world: World) -> None:
    """The group's path with a slash too many is not found, as with upstream, and not handed on."""
    reply = await world.get(f"/{ROOT}")
    assert (reply.status, world.extension.asked) == (404, [])
