"""What the metrics APIs answer: lists of values as adapters send them, and their refusals."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from metric_world import CUSTOM, EXTERNAL, MetricWorld, metric_world, pod

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.providers import MetricResource, MetricsRequest

NOW = "2026-01-01T00:00:00Z"
WEB = "{pods: app=web, value: 1500m}"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[MetricWorld]:
    """A world without ConfigMaps and pods."""
    async with metric_world(tmp_path) as opened:
        yield opened


def described(kind: str, name: str, api_version: str = "v1") -> dict[str, str]:
    """A reference to an object of the namespace default."""
    return {"kind": kind, "namespace": "default", "name": name, "apiVersion": api_version}


async def test_pods_in_v1beta2(world: MetricWorld) -> None:
    """The values of pods, by name, in the newer form."""
    world.run_pods(pod("web-2", app="web"), pod("web-1", app="web"), pod("db-1", app="db"))
    await world.state("custom", http_requests=WEB)
    item = {"metric": {"name": "http_requests", "selector": None}, "timestamp": NOW, "value": "1500m"}
    assert world.custom("pods", "*", "http_requests") == {
        "kind": "MetricValueList",
        "apiVersion": "custom.metrics.k8s.io/v1beta2",
        "metadata": {},
        "items": [{"describedObject": described("Pod", f"web-{number}"), **item} for number in (1, 2)],
    }


async def test_pods_in_v1beta1(world: MetricWorld) -> None:
    """The same in the older form, which names the metric in another place."""
    world.run_pods(pod("web-1", app="web"))
    await world.state("custom", http_requests="{pods: app=web, value: 5, window: 30s}")
    answer = world.apis.list_values(MetricsRequest(CUSTOM, "v1beta1", "default", "pods", "web-1", "http_requests"))
    item = {
        "describedObject": described("Pod", "web-1"),
        "metricName": "http_requests",
        "timestamp": NOW,
        "window": 30,
        "value": "5",
        "selector": None,
    }
    assert answer == {
        "kind": "MetricValueList",
        "apiVersion": "custom.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [item],
    }


async def test_the_window_has_another_name_in_v1beta2(world: MetricWorld) -> None:
    """`windowSeconds` is `window` in v1beta1, as upstream published it."""
    await world.state("custom", load="{object: svc/web, value: 5, window: 30s}")
    (item,) = world.custom("services", "web", "load")["items"]
    assert item["windowSeconds"] == 30


async def test_an_object(world: MetricWorld) -> None:
    """An object is described with its group and version; it need not exist."""
    await world.state("custom", load="{object: Deployment/web, value: 7}")
    (item,) = world.custom("deployments.apps", "web", "load")["items"]
    assert (item["describedObject"], item["value"]) == (described("Deployment", "web", "apps/v1"), "7")


async def test_the_namespace(world: MetricWorld) -> None:
    """A namespace has metrics of its own, at a path of their own; its reference has no namespace."""
    await world.state("custom", load="{object: namespace, value: 7}")
    (item,) = world.custom("metrics", "load")["items"]
    assert item["describedObject"] == {"kind": "Namespace", "name": "default", "apiVersion": "v1"}


async def test_external_values(world: MetricWorld) -> None:
    """External metrics are told with their labels, one item for each series."""
    await world.state("external", depth="[{labels: {queue: a}, value: 3}, {value: 4, window: 1m}]")
    item = {"metricName": "depth", "timestamp": NOW}
    assert world.external("depth") == {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {**item, "metricLabels": {"queue": "a"}, "value": "3"},
            {**item, "metricLabels": {}, "window": 60, "value": "4"},
        ],
    }


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("queue=a", ["3"]),
        ("queue!=a", ["4", "5"]),
        ("queue in (a,b)", ["3", "4"]),
        ("!queue", ["5"]),
        ("queue=c", []),
    ],
)
async def test_external_values_are_selected_by_their_labels(
    world: MetricWorld, selector: str, expected: list[str]
) -> None:
    """`labelSelector` looks at the metric's labels; nothing selected is an empty list."""
    await world.state("external", depth="[{labels: {queue: a}, value: 3}, {labels: {queue: b}, value: 4}, 5]")
    assert [item["value"] for item in world.external("depth", selector)["items"]] == expected


async def test_pods_are_selected_by_their_labels(world: MetricWorld) -> None:
    """`labelSelector` looks at the pods' labels; nothing selected is an empty list."""
    world.run_pods(pod("web-1", app="web", tier="front"), pod("web-2", app="web"))
    await world.state("custom", http_requests=WEB)
    assert world.values("pods", "*", "http_requests", label_selector="tier=front") == {"web-1": "1500m"}
    assert world.values("pods", "*", "http_requests", label_selector="app=db") == {}


async def test_objects_are_selected_if_they_exist(world: MetricWorld) -> None:
    """A wildcard finds the objects that are there, by their labels."""
    for name in ("a", "b"):
        service = {"metadata": {"name": name, "namespace": "default", "labels": {"name": name}}}
        await world.registry.create("services", {**service, "spec": {"ports": [{"port": 80}]}})
    values = {name: f"{{metric: load, object: svc/{name}, value: {number}}}" for number, name in enumerate("abc")}
    await world.state("custom", **values)
    assert world.values("services", "*", "load") == {"a": "0", "b": "1"}
    assert world.values("services", "*", "load", label_selector="name=b") == {"b": "1"}


async def test_series_are_selected_by_the_metrics_labels(world: MetricWorld) -> None:
    """`metricLabelSelector` picks series; it is repeated in the answer."""
    await world.state(
        "custom",
        get="{metric: hits, object: svc/web, labels: {verb: GET}, value: 1}",
        put="{metric: hits, object: svc/web, labels: {verb: PUT}, value: 2}",
    )
    with pytest.raises(StatusError) as refused:
        world.custom("services", "web", "hits", metric_label_selector="verb in (POST,HEAD),!error")
    text = "the server could not find the metric hits for services web with selector !error,verb in (HEAD,POST)"
    assert refused.value.message == text
    (item,) = world.custom("services", "web", "hits", metric_label_selector="verb=PUT,verb notin (GET),verb")["items"]
    assert item["value"] == "2"
    assert item["metric"]["selector"] == {
        "matchLabels": {"verb": "PUT"},
        "matchExpressions": [
            {"key": "verb", "operator": "NotIn", "values": ["GET"]},
            {"key": "verb", "operator": "Exists"},
        ],
    }


async def test_series_of_one_object_add_up(world: MetricWorld) -> None:
    """What several entries state about one object is summed, also across ConfigMaps."""
    world.run_pods(pod("web-1", app="web"), pod("web-2", app="web"))
    await world.state("custom", hits="[{pods: app=web, value: 1500m}, {object: pod/web-2, value: 2}]")
    await world.state("custom", name="more", hits="{pods: '', value: 1n}")
    assert world.values("pods", "*", "hits") == {"web-1": "1500000001n", "web-2": "3500000001n"}


async def test_a_total_is_shared_by_ready_pods(world: MetricWorld) -> None:
    """Each ready pod has its share of a total, one that is not ready has none of it."""
    await world.state("custom", hits="{pods: app=web, value: 100, sharedBy: 'app=web,!canary'}")
    world.run_pods(
        pod("a", app="web"), pod("b", app="web"), pod("c", app="web", ready=False), pod("d", app="web", canary="y")
    )
    assert world.values("pods", "*", "hits") == {"a": "50", "b": "50", "c": "0", "d": "0"}
    world.run_pods(pod("a", app="web"), pod("b", app="web"), pod("c", app="web"))
    assert world.values("pods", "*", "hits") == {"a": "33334m", "b": "33334m", "c": "33334m"}


@pytest.mark.parametrize(
    ("ready", "expected"), [(0, "60"), (1, "60"), (3, "20")], ids=["nobody shares it", "one pod", "three pods"]
)
async def test_what_belongs_to_no_pod_may_be_shared(world: MetricWorld, ready: int, expected: str) -> None:
    """Values of objects and external ones fall with more pods; with none, all of it is there to scale up from zero."""
    world.run_pods(*(pod(f"web-{number}", app="web") for number in range(ready)))
    await world.state("custom", hits="{object: svc/web, value: 60, sharedBy: app=web}")
    await world.state("external", name="queue", depth="{value: 60, sharedBy: app=web}")
    assert world.values("services", "web", "hits") == {"web": expected}
    assert [item["value"] for item in world.external("depth")["items"]] == [expected]


async def test_values_change_with_time(world: MetricWorld) -> None:
    """Time is the clock's, counted from the ConfigMap's creation; nothing has to be written for a new value."""
    await world.clock.advance(3600)
    await world.state("external", ramp="ramp: {from: 0, to: 60, over: 1m}", steps="steps: [{after: 30s, value: 9}]")
    seen = []
    for _ in range(4):
        items = [*world.external("ramp")["items"], *world.external("steps")["items"]]
        seen.append([(item["timestamp"][11:], item["value"]) for item in items])
        await world.clock.advance(20)
    assert seen == [
        [("01:00:00Z", "0")],
        [("01:00:20Z", "20")],
        [("01:00:40Z", "40"), ("01:00:40Z", "9")],
        [("01:01:00Z", "60"), ("01:01:00Z", "9")],
    ]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        pytest.param(
            MetricsRequest(CUSTOM, "v1beta2", "default", "pods", "*", "misses"),
            "the server could not find the metric misses for pods",
            id="a metric that no pod has",
        ),
        pytest.param(
            MetricsRequest(CUSTOM, "v1beta2", "other", "pods", "*", "hits"),
            "the server could not find the metric hits for pods",
            id="a metric of another namespace",
        ),
        pytest.param(
            MetricsRequest(CUSTOM, "v1beta2", "default", "pods", "gone", "hits"),
            "the server could not find the metric hits for pods gone",
            id="a pod that does not run",
        ),
        pytest.param(
            MetricsRequest(CUSTOM, "v1beta2", "default", "deployments.apps", "web", "hits"),
            "the server could not find the metric hits for deployments.apps",
            id="a metric of another kind",
        ),
        pytest.param(
            MetricsRequest(CUSTOM, "v1beta2", "default", "services", "api", "load"),
            "the server could not find the metric load for services api",
            id="an object without the metric",
        ),
        pytest.param(
            MetricsRequest(CUSTOM, "v1beta2", "default", "services", "web", "later"),
            "the server could not find the metric later for services web",
            id="a value that is still to come",
        ),
        pytest.param(
            MetricsRequest(CUSTOM, "v1beta2", "default", "metrics", "hits"),
            "the server could not find the metric hits for namespaces",
            id="a namespace without the metric",
        ),
        pytest.param(
            MetricsRequest(CUSTOM, "v1beta2", "", "pods", "*", "hits"),
            "the server could not find the metric hits for pods",
            id="all namespaces",
        ),
        pytest.param(
            MetricsRequest(EXTERNAL, "v1beta1", "default", "hits"),
            "the server could not find the metric hits for namespaces",
            id="an external metric that is not known",
        ),
        pytest.param(
            MetricsRequest(CUSTOM, "v1beta2", "default", "pods", "web-1"),
            "the server could not find the requested resource",
            id="a path without a metric",
        ),
        pytest.param(
            MetricsRequest(EXTERNAL, "v1beta1", "default", "depth", "more"),
            "the server could not find the requested resource",
            id="a path behind an external metric",
        ),
        pytest.param(
            MetricsRequest(EXTERNAL, "v1beta1", "", "depth"),
            "the server could not find the requested resource",
            id="an external metric without a namespace",
        ),
    ],
)
async def test_not_found(world: MetricWorld, query: MetricsRequest, text: str) -> None:
    """What is not known is 404, in the adapters' words."""
    world.run_pods(pod("web-1", app="web"))
    await world.state(
        "custom",
        hits="{pods: app=web, value: 1}",
        load="{object: svc/web, value: 1}",
        later="{object: svc/web, steps: [{after: 1h, value: 1}]}",
    )
    await world.state("external", name="queue", depth="1")
    with pytest.raises(StatusError) as refused:
        world.apis.list_values(query)
    assert (refused.value.code, refused.value.reason, refused.value.message) == (404, "NotFound", text)


@pytest.mark.parametrize(
    ("selectors", "text"),
    [
        pytest.param(
            {"label_selector": "="}, "found '=', expected: !, identifier, or 'end of string'", id="of objects"
        ),
        pytest.param(
            {"metric_label_selector": "a b"},
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            id="of the metric",
        ),
        pytest.param({"metric_label_selector": "a>1"}, '"gt" isn\'t supported in label selectors', id="a comparison"),
    ],
)
async def test_selectors_that_cannot_be_used(world: MetricWorld, selectors: dict[str, str], text: str) -> None:
    """A selector that is none is 400, in the words of its parser."""
    await world.state("custom", hits="{pods: app=web, value: 1}")
    with pytest.raises(StatusError) as refused:
        world.custom("pods", "*", "hits", **selectors)
    assert (refused.value.code, refused.value.reason, refused.value.message) == (400, "BadRequest", text)


async def test_without_config_maps_there_is_nothing(world: MetricWorld) -> None:
    """The APIs are served with no metrics in them."""
    assert [world.apis.resources(group) for group in (CUSTOM, EXTERNAL)] == [[], []]
    assert world.apis.versions == {CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",)}


async def test_metrics_are_listed(world: MetricWorld) -> None:
    """Every metric of any namespace is listed once, by what it describes and its name."""
    await world.state(
        "custom",
        hits="[{pods: app=web, value: 1}, {pods: app=db, value: 1}, {object: svc/web, value: 1}]",
        load="{object: namespace, value: 1}",
        age="{object: deploy/web, value: 1}",
    )
    await world.state("external", name="queue", depth="1")
    assert world.apis.resources(CUSTOM) == [
        MetricResource("deployments.apps", "age"),
        MetricResource("namespaces", "load", namespaced=False),
        MetricResource("pods", "hits"),
        MetricResource("services", "hits"),
    ]
    assert world.apis.resources(EXTERNAL) == [MetricResource("", "depth")]
