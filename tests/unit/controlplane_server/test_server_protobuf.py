"""Answers as protobuf, as client-go asks for them."""

import asyncio
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from server_under_test import Running, running_server

from podscaler.api.protobuf import protobuf, protobuf_types
from podscaler.api.schema import schema
from podscaler.api.text import json_text
from podscaler.controlplane.apiserver.http import protobuf_encoding

PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPT = {"Accept": PROTOBUF}
MAPS = "/api/v1/namespaces/default/configmaps"
METADATA = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@pytest.fixture
async def server(tmp_path: Path) -> Any:
    """A server with two ConfigMaps."""
    async with running_server(tmp_path) as instance:
        for name in ("one", "two"):
            await instance.create(MAPS, {"metadata": {"name": name, "labels": {"a": name}}, "data": {"k": "<&>"}})
        yield instance


async def _body(server: Running, path: str, accept: str = PROTOBUF, **arguments: Any) -> tuple[int, str, bytes]:
    method = arguments.pop("method", "GET")
    async with server.client.request(method, server.url + path, headers={"Accept": accept}, **arguments) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.read()


def _typed(found: protobuf.Body) -> dict[str, Any]:
    return {"kind": found.kind, "apiVersion": found.api_version, **found.obj}


def _normal(value: Any) -> Any:
    """JSON-ready data without what protobuf cannot tell from nothing."""
    if isinstance(value, dict):
        return {key: _normal(part) for key, part in value.items() if part not in (None, {}, [], "", 0, False)}
    return [_normal(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"{MAPS}/one", id="an object"),
        pytest.param(MAPS, id="a list"),
        pytest.param(f"{MAPS}?limit=1", id="a page"),
        pytest.param("/api/v1/nodes", id="an empty list"),
        pytest.param("/apis", id="groups"),
        pytest.param("/api", id="core versions"),
        pytest.param("/apis/apps/v1", id="resources"),
        pytest.param(f"{MAPS}/none", id="an API error"),
    ],
)
async def test_the_same_as_json(server: Running, path: str) -> None:
    """An answer in protobuf says what the answer in JSON says."""
    wanted = await server.get(path)
    status, content_type, body = await _body(server, path)
    found = _typed(protobuf.decode(body))
    items = wanted.body.get("items", [])
    assert (status, content_type) == (wanted.status, PROTOBUF)
    found.get("metadata", {}).pop("continue", None)
    wanted.body.get("metadata", {}).pop("continue", None)
    assert _normal(found) == _normal({"apiVersion": "v1", **wanted.body} | ({"items": items} if items else {}))


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        pytest.param(f"{MAPS}/one", METADATA, "PartialObjectMetadata", id="of an object"),
        pytest.param(MAPS, METADATA_LIST, "PartialObjectMetadataList", id="of a list"),
    ],
)
async def test_bare_metadata(server: Running, path: str, accept: str, kind: str) -> None:
    """The garbage collector's informers ask for bare metadata in protobuf."""
    _, content_type, body = await _body(server, path, accept)
    found = protobuf.decode(body, f"meta/v1.{kind}")
    obj = protobuf.decode_raw(
        protobuf_types.for_message("pkg/runtime.Unknown").FromString(body[4:]).f2, f"meta/v1.{kind}"
    )
    first = obj["items"][0] if kind.endswith("List") else obj
    assert (content_type, found.kind, found.api_version) == (PROTOBUF, kind, "meta.k8s.io/v1")
    assert first["metadata"]["name"] == "one"


@pytest.mark.parametrize("accept", [PROTOBUF, f"{PROTOBUF};stream=watch"])
async def test_a_watch(server: Running, accept: str) -> None:
    """Each event comes behind its length, its object in an envelope of its own."""
    path = f"{MAPS}?watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    status, content_type, body = await _body(server, f"{path}&allowWatchBookmarks=true", accept)
    assert (status, content_type) == (200, f"{PROTOBUF};stream=watch")
    told = [(kind, obj.kind, obj.obj["metadata"].get("name")) for kind, obj in _events(body)]
    assert told[:3] == [
        ("ADDED", "ConfigMap", "one"),
        ("ADDED", "ConfigMap", "two"),
        ("BOOKMARK", "ConfigMap", None),
    ]


def _events(body: bytes) -> list[tuple[str, protobuf.Body]]:
    event = protobuf_types.for_message("meta/v1.WatchEvent")
    found = []
    while body:
        (size,) = struct.unpack(">I", body[:4])
        one: Any = event.FromString(body[4 : 4 + size])
        found.append((one.f1, protobuf.decode(one.f2.f1)))
        body = body[4 + size :]
    return found


async def test_a_watch_whose_history_is_gone(server: Running) -> None:
    """The ERROR event holds a Status in an envelope."""
    await asyncio.gather(*(server.create(MAPS, {"metadata": {"name": f"m{number}"}}) for number in range(3)))
    await server.request("POST", "/podscaler/compact")
    _, _, body = await _body(server, f"{MAPS}?watch=true&resourceVersion=1")
    ((kind, status),) = _events(body)
    assert (kind, status.kind, status.obj["code"]) == ("ERROR", "Status", 410)


async def test_what_is_created_comes_back_as_protobuf(server: Running) -> None:
    """The answer to a write is in the form that the client accepts."""
    status, _, body = await _body(server, MAPS, method="POST", json={"metadata": {"name": "new"}})
    assert (status, protobuf.decode(body).obj["metadata"]["name"]) == (201, "new")


def test_messages_are_kept_within_bounds() -> None:
    """The memo forgets what was wanted longest ago, and never holds more than it may."""
    bodies = [json_text.encode({"metadata": {"name": f"n{number}"}}) for number in range(10)]
    one = len(bodies[0]) + len(protobuf.encode_raw(json.loads(bodies[0]), "core/v1.ConfigMap"))
    memo = protobuf_encoding.MessageCache(max_bytes=3 * one)
    first = memo.encode(bodies[0], "core/v1.ConfigMap")
    assert memo.encode(bodies[0], "core/v1.ConfigMap") is first
    for body in bodies[1:]:
        memo.encode(body, "core/v1.ConfigMap")
    assert memo.encode(bodies[0], "core/v1.ConfigMap") is not first


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 20_000])
def test_lists_are_put_together_from_their_items(size: int) -> None:
    """A list made of the messages of its items is the list's own message, whatever the length of an item."""
    items = [{"metadata": {"name": "a" * size}}, {"data": {"k": "v"}}] if size else []
    metadata = {"resourceVersion": "7", "continue": "x"}
    made = protobuf.raw_list(metadata, [protobuf.encode_raw(item, "core/v1.ConfigMap") for item in items])
    assert made == protobuf.encode_raw({"metadata": metadata, "items": items}, "core/v1.ConfigMapList")


@pytest.mark.parametrize(
    ("api_version", "message"),
    [
        ("batch/v1", "batch/v1.Job"),
        ("batch.example.com/v1", None),
        ("networking.k8s.io/v1", "networking/v1.Ingress"),
    ],
)
def test_groups_of_other_domains_have_no_messages(api_version: str, message: str | None) -> None:
    """A custom resource is not taken for the built-in kind of the same name."""
    kind = "Ingress" if api_version.startswith("networking") else "Job"
    assert schema.find_kind(api_version, kind) == message
