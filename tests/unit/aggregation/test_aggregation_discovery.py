"""What clients are told about groups that another API server serves."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aggregation_world import APISERVICES, GROUP, NAME, RESOURCE, ROOT, World, open_world
from aiohttp import web

from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.registry.providers import MetricResource, MetricsRequest

AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
CUSTOM = "custom.metrics.k8s.io"
DISCOVERED = {
    "resource": "things",
    "responseKind": {"group": "", "version": "", "kind": "Thing"},
    "scope": "Namespaced",
    "singularResource": "thing",
    "verbs": ["get", "list"],
}


class Metrics:
    """Custom metrics of our own, of which there are none."""

    versions: Mapping[str, Sequence[str]] = {CUSTOM: ("v1beta2", "v1beta1")}
    list_kinds: Mapping[str, str] = {CUSTOM: "MetricValueList"}
    generation = 0

    def resources(self, group: str) -> Sequence[MetricResource]:
        """None."""
        return []

    def list_values(self, query: MetricsRequest) -> dict[str, Any]:
        """A list without items."""
        return {"kind": "MetricValueList", "items": []}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A server with metrics of its own, and another one to which nothing leads yet."""
    async with open_world(tmp_path, ServerParts(metrics=Metrics())) as opened:
        yield opened


async def groups(world: World) -> list[str]:
    """The groups, in order."""
    return [group["name"] for group in (await world.get("/apis")).body["groups"]]


async def aggregated(world: World, group: str = GROUP) -> list[dict[str, Any]]:
    """The versions of the group in the aggregated document."""
    found = (await world.get("/apis", headers=AGGREGATED)).body["items"]
    versions: list[dict[str, Any]] = next(item["versions"] for item in found if item["metadata"]["name"] == group)
    return versions


async def test_a_group_of_which_nothing_is_known(world: World) -> None:
    """It is listed as soon as it is registered, whether anybody serves it or not; what it has is stale."""
    await world.register()
    version = {"groupVersion": f"{GROUP}/v1", "version": "v1"}
    page = {"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": [version], "preferredVersion": version}
    assert (await world.get(f"/apis/{GROUP}")).body == page
    assert await aggregated(world) == [{"version": "v1", "freshness": "Stale"}]
    assert (await world.get(f"/apis/{GROUP}/v2")).body == "404 page not found\n"
    assert (await world.get(f"/apis/{GROUP}/v2/things")).body == "404 page not found\n"
    assert f"/apis/{GROUP}/v1" in (await world.get("/")).body["paths"]


async def test_groups_and_versions_are_in_order(world: World) -> None:
    """Groups by the highest of their priorities, versions by theirs, then newest first."""
    for version, priority, group_priority in (("v1", 5, 1), ("v2", 5, 17_501), ("v3alpha1", 9, 1)):
        await world.register(version=version, versionPriority=priority, groupPriorityMinimum=group_priority)
    await world.register(group="last.example.com", groupPriorityMinimum=1)
    found = await groups(world)
    assert found.index(GROUP) == found.index("autoscaling") - 1
    assert found[-1] == "last.example.com"
    assert [each["version"] for each in (await world.get(f"/apis/{GROUP}")).body["versions"]] == [
        "v3alpha1",
        "v2",
        "v1",
    ]


async def test_what_a_server_lists(world: World) -> None:
    """Its list of resources is what discovery shows, until it cannot be asked: then it is stale."""
    await world.aggregate()
    await world.ask()
    assert await aggregated(world) == [{"version": "v1", "resources": [DISCOVERED], "freshness": "Current"}]
    await world.extension.stop()
    await world.check()
    await world.ask()
    assert await aggregated(world) == [{"version": "v1", "resources": [DISCOVERED], "freshness": "Stale"}]


async def test_a_server_with_aggregated_discovery(world: World) -> None:
    """It is asked for everything at once, and what it says is passed on."""
    other = {"resource": "others", "verbs": []}
    versions = [{"version": "v1", "resources": [DISCOVERED]}, {"version": "v2", "resources": [other]}]
    items = [{"metadata": {"name": "x"}, "versions": []}, {"metadata": {"name": GROUP}, "versions": versions}]
    world.extension.answers["/apis"] = {"kind": "APIGroupDiscoveryList", "items": items}
    await world.aggregate()
    await world.ask()
    assert await aggregated(world) == [{"version": "v1", "resources": [DISCOVERED], "freshness": "Current"}]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"resources": [{"kind": "Thing"}]}, id="a resource without a name"),
        pytest.param([], id="no object"),
        pytest.param({"resources": 5}, id="no list"),
    ],
)
async def test_broken_lists(world: World, answer: Any) -> None:
    """A server that answers with nonsense is as one that does not answer."""
    await world.aggregate()
    world.extension.answers[ROOT] = answer
    await world.ask()
    assert await aggregated(world) == [{"version": "v1", "freshness": "Stale"}]


async def test_subresources(world: World) -> None:
    """They are parts of their resource, which may have nothing but them: so metrics are listed."""
    part = {**RESOURCE, "name": "things/status", "singularName": ""}
    metric = {"name": "pods/hits", "singularName": "", "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}
    world.extension.answers[ROOT] = {"kind": "APIResourceList", "resources": [RESOURCE, part, metric]}
    await world.aggregate()
    await world.ask()
    kind = {"group": "", "version": "", "kind": "Thing"}
    things = {**DISCOVERED, "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get", "list"]}]}
    pods = {
        "resource": "pods",
        "responseKind": {"group": "", "version": "", "kind": ""},
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": [],
        "subresources": [
            {"subresource": "hits", "responseKind": {**kind, "kind": "MetricValueList"}, "verbs": ["get"]}
        ],
    }
    assert (await aggregated(world))[0]["resources"] == [things, pods]


async def test_openapi_documents(world: World) -> None:
    """The index names what the server has, at its own address; the document comes from there."""
    path = f"/openapi/v3/apis/{GROUP}/v1"
    url = {"serverRelativeURL": f"{path}?hash=1"}
    world.extension.answers["/openapi/v3"] = {"paths": {f"apis/{GROUP}/v1": url, "apis/other/v1": url}}
    world.extension.answers[path] = {"openapi": "3.0.0"}
    await world.aggregate()
    await world.ask()
    index = await world.get("/openapi/v3")
    paths = index.body["paths"] if isinstance(index.body, dict) else json.loads(index.body)["paths"]
    assert paths[f"apis/{GROUP}/v1"] == url
    assert "apis/other/v1" not in paths
    assert (await world.get(f"{path}?hash=1")).body == {"openapi": "3.0.0"}


async def test_our_metrics_give_way(world: World) -> None:
    """An adapter that serves one version of a metrics API serves all metrics: ours are back when it has gone."""
    before = (await world.get(f"/apis/{CUSTOM}")).body["versions"]
    assert [each["version"] for each in before] == ["v1beta2", "v1beta1"]
    await world.serve()
    await world.register(CUSTOM, "v1beta1")
    assert [each["version"] for each in (await world.get(f"/apis/{CUSTOM}")).body["versions"]] == ["v1beta1"]
    assert (await world.get(f"/apis/{CUSTOM}/v1beta1")).body == "service unavailable\n"
    assert (await world.get(f"/apis/{CUSTOM}/v1beta2/namespaces/default/pods/*/hits")).body == "404 page not found\n"
    assert (await world.get(f"/apis/{CUSTOM}/v1beta2")).body == "404 page not found\n"
    await world.registry.delete(APISERVICES, "", f"v1beta1.{CUSTOM}")
    assert (await world.get(f"/apis/{CUSTOM}")).body["versions"] == before
    assert (await world.get(f"/apis/{CUSTOM}/v1beta2/namespaces/default/pods/*/hits")).status == 200


async def test_the_list_of_apiservices_stays_ours(world: World) -> None:
    """Nobody else can serve it: a mistake could not be mended otherwise."""
    await world.serve()
    await world.register("apiregistration.k8s.io", "v1")
    assert (await world.get("/apis/apiregistration.k8s.io/v1/apiservices")).status == 200


async def test_the_table(world: World) -> None:
    """kubectl shows the Service, and why it is not available."""
    await world.register()
    await world.check()
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    rows = (await world.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{NAME}", headers=table)).body["rows"]
    assert rows[0]["cells"][:3] == [NAME, "default/extension", "False (ServiceNotFound)"]


async def test_a_server_that_hangs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking it what it serves ends, too."""
    monkeypatch.setattr("podscaler.controlplane.aggregator.remote_documents.READ_TIMEOUT_S", 0.05)
    await world.aggregate()
    release = asyncio.Event()

    async def hang(request: web.BaseRequest) -> web.StreamResponse:
        await release.wait()
        return web.Response()

    world.extension.answers["/apis"] = hang
    await world.ask()
    release.set()
    assert await aggregated(world) == [{"version": "v1", "freshness": "Stale"}]


@pytest.mark.parametrize(
    "url", ["https://elsewhere/openapi/v3", "//elsewhere/x", f"/openapi/v3/apis/{GROUP}/v1/../../x", "/api/v1/secrets"]
)
async def test_documents_elsewhere_are_not_told(world: World, url: str) -> None:
    """Another server names only its own group's document: clients would follow any other address with their rights."""
    world.extension.answers["/openapi/v3"] = {"paths": {f"apis/{GROUP}/v1": {"serverRelativeURL": url}}}
    await world.aggregate()
    await world.ask()
    index = await world.get("/openapi/v3")
    paths = index.body["paths"] if isinstance(index.body, dict) else json.loads(index.body)["paths"]
    assert f"apis/{GROUP}/v1" not in paths
