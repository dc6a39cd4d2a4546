"""Metrics APIs over HTTP: their place in discovery, their paths, and what they refuse."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from server_under_test import VIEWER_TOKEN, Object, Running, running_server

from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.registry.providers import MetricResource, MetricsRequest

CUSTOM = "custom.metrics.k8s.io"
EXTERNAL = "external.metrics.k8s.io"
CUSTOM_PATH = f"/apis/{CUSTOM}/v1beta2"
AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
UNKNOWN = "the server could not find the metric misses for pods"


class Metrics:
    """Metrics APIs that answer with what they were asked."""

    versions: Mapping[str, Sequence[str]] = {CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",)}
    list_kinds: Mapping[str, str] = {CUSTOM: "MetricValueList", EXTERNAL: "ExternalMetricValueList"}

    def __init__(self) -> None:
        self.generation = 0
        self.listed = [
            MetricResource("namespaces", "load", namespaced=False),
            MetricResource("pods", "hits"),
            MetricResource("pods", "misses"),
        ]
        self.asked: list[MetricsRequest] = []

    def resources(self, group: str) -> Sequence[MetricResource]:
        """Those that a test has put there, and one external metric."""
        return self.listed if group == CUSTOM else [MetricResource("", "depth")]

    def list_values(self, query: MetricsRequest) -> Object:
        """A list without items."""
        self.asked.append(query)
        if query.subresource == "misses":
            raise StatusError(UNKNOWN, code=404, reason="NotFound")
        return {"kind": "MetricValueList", "items": []}


@pytest.fixture
def metrics() -> Metrics:
    """The metrics."""
    return Metrics()


@pytest.fixture
async def server(tmp_path: Path, metrics: Metrics) -> AsyncIterator[Running]:
    """A server with them."""
    async with running_server(tmp_path, ServerParts(metrics=metrics)) as running:
        yield running


async def test_the_groups_are_served(server: Running) -> None:
    """The groups are among all groups, the newer version preferred."""
    groups = {group["name"]: group for group in (await server.get("/apis")).body["groups"]}
    preferred = {name: groups[name]["preferredVersion"]["version"] for name in (CUSTOM, EXTERNAL)}
    assert preferred == {CUSTOM: "v1beta2", EXTERNAL: "v1beta1"}
    assert (await server.get(f"/apis/{CUSTOM}")).body["versions"] == [
        {"groupVersion": f"{CUSTOM}/{version}", "version": version} for version in ("v1beta2", "v1beta1")
    ]


async def test_metrics_are_resources_of_their_group(server: Running) -> None:
    """Adapters list a metric as a part of what it describes, without a resource for that; external ones alone."""

    def entry(name: str, kind: str, *, namespaced: bool = True) -> Object:
        return {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get"]}

    kind = "MetricValueList"
    assert (await server.get(f"/apis/{CUSTOM}/v1beta1")).body == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{CUSTOM}/v1beta1",
        "resources": [
            entry("namespaces/load", kind, namespaced=False),
            entry("pods/hits", kind),
            entry("pods/misses", kind),
        ],
    }
    external = (await server.get(f"/apis/{EXTERNAL}/v1beta1")).body["resources"]
    assert external == [entry("depth", "ExternalMetricValueList")]


async def test_metrics_in_aggregated_discovery(server: Running) -> None:
    """There the described resource is told without a kind, with the metrics as its subresources."""
    items = (await server.get("/apis", headers=AGGREGATED)).body["items"]
    found = {item["metadata"]["name"]: item["versions"] for item in items}

    def metric(name: str) -> Object:
        kind = {"group": "", "version": "", "kind": "MetricValueList"}
        return {"subresource": name, "responseKind": kind, "verbs": ["get"]}

    def described(resource: str, scope: str, *metrics: str) -> Object:
        return {
            "resource": resource,
            "responseKind": {"group": "", "version": "", "kind": ""},
            "scope": scope,
            "singularResource": "",
            "verbs": [],
            "subresources": [metric(name) for name in metrics],
        }

    resources = [described("namespaces", "Cluster", "load"), described("pods", "Namespaced", "hits", "misses")]
    assert found[CUSTOM] == [
        {"version": version, "resources": resources, "freshness": "Current"} for version in ("v1beta2", "v1beta1")
    ]
    (external,) = found[EXTERNAL][0]["resources"]
    assert (external["resource"], external["responseKind"]["kind"], external["verbs"]) == (
        "depth",
        "ExternalMetricValueList",
        ["get"],
    )


async def test_discovery_follows_the_metrics(server: Running, metrics: Metrics) -> None:
    """Documents are made anew when metrics come or go, and kept otherwise."""
    first = await server.get(CUSTOM_PATH)
    metrics.listed = []
    same = await server.get(CUSTOM_PATH)
    metrics.generation += 1
    after = await server.get(CUSTOM_PATH)
    assert [len(reply.body["resources"]) for reply in (first, same, after)] == [3, 3, 0]
    assert first.headers["ETag"] == same.headers["ETag"] != after.headers["ETag"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(
            f"{CUSTOM_PATH}/namespaces/shop/pods/%2A/hits?labelSelector=app%3Dweb&metricLabelSelector=verb%3DGET",
            MetricsRequest(CUSTOM, "v1beta2", "shop", "pods", "*", "hits", "app=web", "verb=GET"),
            id="pods",
        ),
        pytest.param(
            f"{CUSTOM_PATH}/namespaces/shop/deployments.apps/web/hits",
            MetricsRequest(CUSTOM, "v1beta2", "shop", "deployments.apps", "web", "hits"),
            id="an object",
        ),
        pytest.param(
            f"{CUSTOM_PATH}/namespaces/shop/metrics/load",
            MetricsRequest(CUSTOM, "v1beta2", "shop", "metrics", "load"),
            id="the namespace",
        ),
        pytest.param(
            f"/apis/{EXTERNAL}/v1beta1/namespaces/shop/depth?labelSelector=a",
            MetricsRequest(EXTERNAL, "v1beta1", "shop", "depth", label_selector="a"),
            id="an external metric",
        ),
    ],
)
async def test_paths(server: Running, metrics: Metrics, path: str, expected: MetricsRequest) -> None:
    """What upstream's controller asks for arrives in its parts."""
    reply = await server.get(path, headers={"Accept": "application/vnd.kubernetes.protobuf, */*"})
    assert (reply.status, reply.body) == (200, {"kind": "MetricValueList", "items": []})
    assert metrics.asked == [expected]


HITS = f"{CUSTOM_PATH}/namespaces/shop/pods/*/hits"


@pytest.mark.parametrize(
    ("method", "path", "code", "text"),
    [
        ("GET", HITS.replace("hits", "misses"), 404, UNKNOWN),
        ("GET", f"{HITS}/more", 404, "the server could not find the requested resource"),
        ("GET", HITS.replace("v1beta2", "v1"), 404, "the server could not find the requested resource"),
        ("POST", HITS, 405, "the server does not allow this method on the requested resource"),
        ("DELETE", HITS, 405, "the server does not allow this method on the requested resource"),
        ("GET", f"{HITS}?watch=true", 405, "the server does not allow this method on the requested resource"),
    ],
)
async def test_errors(server: Running, method: str, path: str, code: int, text: str) -> None:
    """Metrics can be read, and nothing else."""
    reply = await server.request(method, path)
    assert (reply.status, reply.body["message"]) == (code, text)


async def test_reading_metrics_is_a_right(server: Running) -> None:
    """Who may not read resources may not read metrics."""
    reply = await server.get(HITS, headers={"Authorization": f"Bearer {VIEWER_TOKEN}"})
    assert (reply.status, reply.body["message"]) == (
        403,
        f'pods.{CUSTOM} "*" is forbidden: User "viewer" cannot get resource "pods/hits" in API group "{CUSTOM}" '
        'in the namespace "shop"',
    )


async def test_without_metrics_the_groups_are_not_served(tmp_path: Path) -> None:
    """A server that nobody gives metrics to does not know the groups."""
    async with running_server(tmp_path) as server:
        reply = await server.get(HITS)
        groups = [group["name"] for group in (await server.get("/apis")).body["groups"]]
        assert (reply.status, reply.body, CUSTOM in groups) == (404, "404 page not found\n", False)
