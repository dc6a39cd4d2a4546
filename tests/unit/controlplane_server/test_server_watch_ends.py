"""Watches of custom resources end when their definition changes, so that clients come again and see it as it is now."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from server_under_test import Running, running_server

from patience import WITHIN_S

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
MERGE = {"Content-Type": "application/merge-patch+json"}


def definition() -> dict[str, Any]:
    """Things of two versions."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    version = {"served": True, "schema": {"openAPIV3Schema": schema}}
    versions = [{"name": "v1", "storage": True, **version}, {"name": "v2", "storage": False, **version}]
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": "things.example.com"}, "spec": spec}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A running server that serves Things, one of which there is."""
    async with running_server(tmp_path) as running:
        await running.create(CRDS, definition())
        await established(running)
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"a": "b"}}
        await running.create(THINGS, thing)
        yield running


async def established(server: Running) -> None:
    """Return once Things are served; fail when patience ends."""
    async with asyncio.timeout(WITHIN_S):
        while (await server.get(THINGS)).status != 200:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)


@asynccontextmanager
async def watching(server: Running, path: str = THINGS) -> AsyncIterator[aiohttp.ClientResponse]:
    """A watch that has given what there is."""
    async with server.client.get(f"{server.url}{path}?watch=true") as answer:
        assert json.loads(await asyncio.wait_for(answer.content.readline(), WITHIN_S))["type"] == "ADDED"
        yield answer


async def rest(answer: aiohttp.ClientResponse) -> list[str]:
    """The types of the events up to the end of the watch."""
    body = await asyncio.wait_for(answer.content.read(), WITHIN_S)
    return [json.loads(line)["type"] for line in body.splitlines()]


async def change(server: Running, patch: dict[str, Any]) -> None:
    """Patch the definition."""
    url = f"{server.url}{CRDS}/things.example.com"
    async with server.client.patch(url, data=json.dumps(patch), headers=MERGE) as answer:
        assert answer.status == 200, await answer.text()


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_change_of_the_schema_ends_watches(server: Running, version: str) -> None:
    """Of all versions, in good order and without a word."""
    versions = definition()["spec"]["versions"]
    schema = versions[0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["b"] = {"type": "string"}
    async with watching(server, THINGS.replace("v1", version)) as answer:
        await change(server, {"spec": {"versions": versions}})
        assert await rest(answer) == []


async def test_the_end_of_the_definition_ends_watches(server: Running) -> None:
    """After the end of every object."""
    async with watching(server) as answer:
        async with server.client.delete(f"{server.url}{CRDS}/things.example.com") as deleted:
            assert deleted.status == 200
        assert await rest(answer) == ["DELETED"]


async def test_other_changes_do_not_end_watches(server: Running) -> None:
    """A label of the definition says nothing of its objects."""
    async with watching(server) as answer:
        await change(server, {"metadata": {"labels": {"a": "b"}}})
        await server.create(THINGS, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "two"}})
        event = json.loads(await asyncio.wait_for(answer.content.readline(), WITHIN_S))
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "two")
