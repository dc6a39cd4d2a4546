"""Values of metrics: how few queries they take, and what odd values and failures of Prometheus become."""

import math
from typing import Any

import pytest
from adapter_world import CUSTOM, EXTERNAL, NAMESPACE, POD, RULES, AdapterWorld

from podscaler.adapter.prometheus.responses import PrometheusError
from podscaler.adapter.providers.object_values import Batching
from podscaler.adapter.providers.protocols import ExternalValue
from podscaler.api.machinery import quantity
from podscaler.api.machinery.selectors import Selector
from podscaler.testing.transport import json_answer

HITS = f"{CUSTOM}/pods/*/hits"
BATCH = 'sum(hits{namespace!="",pod!=""}) by (pod,namespace)'
DIRECT = 'sum(hits{namespace="default",pod=~"web-1|web-2"}) by (pod)'


async def test_values_of_pods() -> None:
    """A list has the values of the pods that the API server lists, in its order."""
    world = await AdapterWorld().started()
    assert await world.values(HITS) == {"web-1": "10", "web-2": "20500m"}


async def test_the_first_request_is_direct() -> None:
    """A request alone sends the query of prometheus-adapter."""
    world = await AdapterWorld().started()
    await world.values(HITS)
    assert world.sent == [DIRECT]


async def test_requests_share_one_query() -> None:
    """From the second request of a tick on, one query serves all namespaces and objects; in the next tick all."""
    world = await AdapterWorld().started()
    paths = [HITS, HITS.replace("default", "shop"), f"{CUSTOM}/pods/web-1/hits", f"{CUSTOM}/pods/web-2/hits"]
    for path in paths:
        await world.values(path)
    assert world.sent == [DIRECT, BATCH]
    for _ in range(2):
        await world.clock.advance(10.0)
        for path in paths:
            await world.values(path)
    assert world.sent == [DIRECT, BATCH, BATCH, BATCH]


async def test_a_direct_query_is_shared() -> None:
    """Equal requests of a tick send one query, where batches are off, too."""
    world = await AdapterWorld(batching=Batching.NEVER).started()
    for _ in range(3):
        await world.values(HITS)
    assert world.sent == [DIRECT]


async def test_a_tick_of_zero() -> None:
    """Without a tick each request sends its query."""
    world = await AdapterWorld(batching=Batching.NEVER, tick_s=0.0).started()
    for _ in range(3):
        await world.values(HITS)
    assert world.sent == [DIRECT] * 3


async def test_a_selector_of_the_metric_has_its_own_batch() -> None:
    """Series are selected in the query, and the selector is in the response."""
    world = await AdapterWorld(batching=Batching.ALWAYS).started()
    assert await world.values(f"{HITS}?metricLabelSelector=verb%3DGET") == {}
    assert world.sent == ['sum(hits{verb="GET",namespace!="",pod!=""}) by (pod,namespace)']


async def test_two_values_of_an_object_are_not_batched() -> None:
    """Where a template leaves several series of an object, direct queries decide which counts."""
    rules = RULES.replace("sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)", "<<.Series>>{<<.LabelMatchers>>}")
    world = await AdapterWorld(rules, batching=Batching.ALWAYS).started()
    world.database.add("hits", 99.0, namespace="default", pod="web-1", verb="PUT")
    assert await world.values(HITS) == {"web-1": "99", "web-2": "20500m"}
    assert world.sent == ['hits{namespace!="",pod!=""}', 'hits{namespace="default",pod=~"web-1|web-2"}']


async def test_a_rejected_batch_is_replaced() -> None:
    """Where Prometheus rejects a batch, such as one with too many samples, direct queries are sent from then on."""
    world = await AdapterWorld(batching=Batching.ALWAYS).started()
    query = world.database.query

    async def limited(promql: str) -> Any:
        if promql == BATCH:
            world.database.queries.append(promql)
            raise PrometheusError("execution", "query processing would load too many samples into memory")
        return await query(promql)

    world.database.query = limited  # type: ignore[method-assign]  # the test's own limit
    for _ in range(2):
        assert await world.values(HITS) == {"web-1": "10", "web-2": "20500m"}
    assert world.sent == [BATCH, DIRECT]


def _fail_batches(world: AdapterWorld, kind: str) -> None:
    """Let batches fail, and direct queries succeed."""
    query = world.database.query

    async def failing(promql: str) -> Any:
        if promql == BATCH:
            world.database.queries.append(promql)
            raise PrometheusError(kind, "a batch")
        return await query(promql)

    world.database.query = failing  # type: ignore[method-assign]  # the test's own failure


@pytest.mark.parametrize("kind", ["timeout", "down", "bad_response", "internal"])
async def test_a_batch_that_fails_is_replaced(kind: str) -> None:
    """Whatever fails for all objects, direct queries serve the requests."""
    world = await AdapterWorld(batching=Batching.ALWAYS).started()
    _fail_batches(world, kind)
    for _ in range(3):
        assert await world.values(HITS) == {"web-1": "10", "web-2": "20500m"}
    assert world.sent == [BATCH, DIRECT]


async def test_a_batch_that_fails_again_has_longer_pauses() -> None:
    """They double from 30 s to ten minutes; a batch that succeeds ends them."""
    world = await AdapterWorld(batching=Batching.ALWAYS).started()
    query = world.database.query
    _fail_batches(world, "timeout")
    sent_at_s = []
    for second in range(0, 2000, 10):
        sent = world.sent.count(BATCH)
        await world.values(HITS)
        if world.sent.count(BATCH) > sent:
            sent_at_s.append(second)
        await world.clock.advance(10.0)
    assert sent_at_s == [0, 30, 90, 210, 450, 930, 1530]
    world.database.query = query  # type: ignore[method-assign]  # nothing fails any more
    await world.clock.advance(600.0)
    world.sent.clear()
    for _ in range(2):
        await world.values(HITS)
        await world.clock.advance(10.0)
    assert world.sent == [BATCH, BATCH]


async def test_prometheus_is_down_for_batches_and_direct_queries() -> None:
    """One direct query finds that out; then both are sent again after a second, not after a pause."""
    world = await AdapterWorld(batching=Batching.ALWAYS).started()
    world.database.failure = PrometheusError("down", "no response in time")
    for path in (HITS, HITS.replace("default", "shop")):
        assert await world.get(path) == (500, "Internal error occurred: unable to fetch metrics")
    assert world.sent == [BATCH, DIRECT]
    world.database.failure = None
    await world.clock.advance(10.0)
    assert await world.values(HITS) == {"web-1": "10", "web-2": "20500m"}
    assert world.sent == [BATCH, DIRECT, BATCH]


@pytest.mark.parametrize(
    ("value", "of_pod", "of_queue"),
    [
        (math.nan, "0", None),
        (math.inf, None, None),
        (-math.inf, None, None),
        (-2.5, "-2500m", "-2500m"),
        (0.0001, "0", "0"),
        (9e17, "900P", "900P"),
        (1e30, None, None),
    ],
    ids=["NaN", "Inf", "-Inf", "negative", "tiny", "huge", "too huge"],
)
async def test_odd_values(value: float, of_pod: str | None, of_queue: str | None) -> None:
    """NaN of a pod is 0, as in prometheus-adapter; what is no quantity is left out."""
    world = await AdapterWorld().started()
    world.database.stored = []
    world.database.add("hits", value, namespace="default", pod="web-1")
    world.database.add("queue", value, name="mail")
    assert await world.values(HITS) == ({} if of_pod is None else {"web-1": of_pod})
    queue = await world.get(f"{EXTERNAL}/queue")
    assert [each["value"] for each in queue["items"]] == ([] if of_queue is None else [of_queue])


RESOURCE_RULES = """
resourceRules:
  window: 1m
  cpu:
    containerQuery: sum(cpu{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    nodeQuery: sum(cpu{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}, node: {resource: node}}}
    containerLabel: container
  memory:
    containerQuery: sum(memory{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    nodeQuery: sum(memory{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}, node: {resource: node}}}
    containerLabel: container
"""


@pytest.mark.parametrize(
    ("cpu", "usage"),
    [
        pytest.param(0.25, ["250m", "1"], id="a quantity"),
        pytest.param(0.0, ["0", "1"], id="zero"),
        pytest.param(math.nan, ["0", "1"], id="NaN"),
        pytest.param(-1.0, ["0", "1"], id="negative"),
        pytest.param(math.inf, ["1"], id="infinite"),
        pytest.param(1e19, ["1"], id="too large"),
    ],
)
async def test_usage_that_is_no_quantity(cpu: float, usage: list[str]) -> None:
    """The pod is left out, as one without samples: usage 0 would scale down."""
    world = AdapterWorld(RESOURCE_RULES)
    resources = [POD, {"name": "nodes", "singularName": "node", "namespaced": False, "kind": "Node"}, NAMESPACE]
    world.kubernetes.on("GET", "/api/v1", json_answer({"resources": resources}))
    running = [
        {"metadata": {"name": f"web-{n}", "namespace": "default"}, "status": {"phase": "Running"}} for n in (1, 2)
    ]
    world.kubernetes.on("GET", "/api/v1/namespaces/default/pods", json_answer({"items": running}))
    for name, value in (("web-1", cpu), ("web-2", 1.0)):
        world.database.add("cpu", value, namespace="default", pod=name, container="app")
        world.database.add("memory", 1.0, namespace="default", pod=name, container="app")
    await world.started()
    body = await world.get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods")
    assert [each["containers"][0]["usage"]["cpu"] for each in body["items"]] == usage


async def test_stale_series_have_no_value() -> None:
    """Where Prometheus has no sample any more, an object has no value, and the metric is still known."""
    world = await AdapterWorld().started()
    world.database.now_s += 600
    assert await world.values(HITS) == {}
    assert await world.values(f"{CUSTOM}/pods/web-1/hits") == (
        404,
        "the server could not find the metric hits for pods web-1",
    )


@pytest.mark.parametrize("path", [HITS, f"{CUSTOM}/pods/web-1/hits", f"{EXTERNAL}/queue"])
async def test_prometheus_is_down(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """Users get an error without details, and the log has the cause."""
    world = await AdapterWorld().started()
    world.database.failure = PrometheusError("down", "connection refused")
    assert await world.get(path) == (500, "Internal error occurred: unable to fetch metrics")
    assert "cannot be read" in caplog.text
    assert "down: connection refused" in caplog.text


async def test_a_failure_is_shared_for_a_second() -> None:
    """Requests do not all wait for a Prometheus that is down; after a second it is asked again."""
    world = await AdapterWorld(batching=Batching.NEVER).started()
    world.database.failure = PrometheusError("down", "no answer in time")
    for _ in range(5):
        await world.get(HITS)
    assert len(world.sent) == 1
    world.database.failure = None
    await world.clock.advance(1.0)
    assert await world.values(HITS) == {"web-1": "10", "web-2": "20500m"}


class OtherSource:
    """Has one metric."""

    def names(self) -> list[str]:
        """The metric."""
        return ["other"]

    async def find_values(self, namespace: str, name: str, selector: Selector) -> list[ExternalValue] | None:
        """One value with a window."""
        return [ExternalValue(quantity.parse("5"), 0, {"from": namespace}, 60)] if name == "other" else None


async def test_another_source_comes_before_the_rules() -> None:
    """A metric that both have is that of the source, as in the controller; the others are those of the rules."""
    rules = RULES.replace("queue{name", "{name")
    both = await AdapterWorld(rules, external=[OtherSource()]).started()
    both.database.add("other", 9.0, name="mail")
    await both.started()
    found = [(await both.get(f"{EXTERNAL}/{name}"))["items"][0]["value"] for name in ("other", "queue")]
    assert found == ["5", "7"]


async def test_another_source_of_external_metrics() -> None:
    """A metric that Prometheus lacks comes from the other provider; discovery has the metrics of all."""
    world = await AdapterWorld(external=[OtherSource()]).started()
    item = {"metricName": "other", "metricLabels": {"from": "default"}, "timestamp": "1970-01-01T00:00:00Z"}
    assert (await world.get(f"{EXTERNAL}/other"))["items"] == [{**item, "window": 60, "value": "5"}]
    listed = await world.get("/apis/external.metrics.k8s.io/v1beta1")
    assert [each["name"] for each in listed["resources"]] == ["other", "queue"]
    assert await world.get(f"{EXTERNAL}/none") == (404, "the server could not find the metric none for namespaces")


BY_NAME = """
rules:
- seriesQuery: 'hits{namespace!=""}'
  resources: {template: "<<.Resource>>"}
  metricsQuery: sum(hits{pod="<<index .LabelValuesByName "pod">>"}) by (<<.GroupBy>>)
"""


@pytest.mark.parametrize(
    ("name", "is_sent"),
    [
        pytest.param("web-1", True, id="a pod"),
        pytest.param("system:web.a_B", True, id="any name of an object"),
        pytest.param('x"} or secret{pod="y', False, id="another expression"),
        pytest.param("web-1\\", False, id="an escape"),
        pytest.param(".*", False, id="a pattern"),
        pytest.param("w" * 254, False, id="too long"),
    ],
)
async def test_names_within_a_template(name: str, is_sent: bool) -> None:
    """A template with LabelValuesByName has them as they are: one that no object has is not put into an expression."""
    world = await AdapterWorld(BY_NAME).started()
    await world.get(f"{CUSTOM}/pods/{name}/hits")
    assert world.sent == ([f'sum(hits{{pod="{name}"}}) by (pod)'] if is_sent else [])
