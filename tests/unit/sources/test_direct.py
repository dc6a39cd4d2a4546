"""Queries for external metrics: which are read from a MetricSource, which are shared, and what failures say."""

import asyncio
from typing import Any

import pytest

from podscaler.api.machinery import selectors
from podscaler.api.typed.metrics import ExternalMetricValue, ExternalMetricValueList, PodMetricsList
from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Key
from podscaler.metrics.queries import ExternalMetricQuery, MetricQuery, ResourceMetricsQuery
from podscaler.sources.direct_metrics import DirectMetricsSource, DirectSources
from podscaler.sources.metric_source import MetricSource
from podscaler.sources.open_sources import OpenSources, ReadResult
from podscaler.testing import VirtualClock
from podscaler.testing.sources import FakeSystem, metric_source
from podscaler.testing.transport import ScriptedTransport

ALL = selectors.parse("")
API_LIST = ExternalMetricValueList("external.metrics.k8s.io/v1beta1", {}, (ExternalMetricValue("other", value="3"),))


class OtherAPI:
    """The metrics APIs: one external value for every query."""

    async def query(self, query: MetricQuery[Any]) -> Any:
        """The list."""
        return PodMetricsList() if isinstance(query, ResourceMetricsQuery) else API_LIST


class World:
    """MetricSources of a fake system, before the metrics APIs."""

    def __init__(self, *sources: MetricSource, fresh_s: float = 1.0) -> None:
        self.clock = VirtualClock()
        self.system = FakeSystem(7)
        self.noted: list[tuple[str, ReadResult]] = []
        self._sources = {(each.metadata.namespace, each.metadata.name): each for each in sources}
        client = Client(ScriptedTransport(), self.clock)
        self.direct = DirectSources(
            self,
            OpenSources(client, self.clock, find_factory=self.system.find_factory),
            self.clock,
            fresh_s=fresh_s,
            on_read=lambda source, result: self.noted.append((source.metadata.name, result)),
        )
        self._metrics = DirectMetricsSource(self.direct, OtherAPI())

    async def find(self, key: Key) -> MetricSource | None:
        """As the informer."""
        return self._sources.get(key)

    async def ask(self, metric: str = "jobs", namespace: str = "shop", selector: str = "") -> ExternalMetricValueList:
        """The response to a query."""
        return await self._metrics.query(ExternalMetricQuery(namespace, metric, selectors.parse(selector)))


async def test_underscores_are_hyphens() -> None:
    """Names of metrics have underscores, which names of objects cannot have."""
    found = await World(metric_source("jobs-ready")).ask("jobs_ready")
    assert [each.metric_name for each in found.items] == ["jobs_ready"]


async def test_a_metric_source_is_read() -> None:
    """The list has one value, with the labels of the source and what was asked."""
    world = World(metric_source(labels={"queue": "jobs"}))
    labels = {"queue": "jobs", "podscaler.dev/query": "fake number of the fake system"}
    assert await world.ask() == ExternalMetricValueList(
        "external.metrics.k8s.io/v1beta1",
        {},
        (ExternalMetricValue("jobs", labels, "2026-01-01T00:00:00Z", None, "7"),),
    )


@pytest.mark.parametrize(
    ("metric", "namespace"), [("other", "shop"), ("jobs", "elsewhere")], ids=["another name", "another namespace"]
)
async def test_other_metrics_are_requested_from_the_api(metric: str, namespace: str) -> None:
    """A MetricSource is for its own name and namespace alone."""
    world = World(metric_source())
    assert await world.ask(metric, namespace) is API_LIST


async def test_other_queries_pass() -> None:
    """Resource metrics come from their API."""
    world = World(metric_source())
    assert (
        await DirectMetricsSource(world.direct, OtherAPI()).query(ResourceMetricsQuery("shop", ALL)) == PodMetricsList()
    )


@pytest.mark.parametrize(("selector", "is_read"), [("queue=jobs", True), ("queue=mails", False), ("region", False)])
async def test_the_labels_must_match_the_selector(selector: str, is_read: bool) -> None:
    """Else the metric fails, with both in the text."""
    world = World(metric_source(labels={"queue": "jobs"}))
    if is_read:
        assert (await world.ask(selector=selector)).items is not None
        return
    text = f"the labels of the MetricSource shop/jobs do not match the selector {selector} of the metric"
    with pytest.raises(StatusError) as caught:
        await world.ask(selector=selector)
    assert (str(caught.value), world.system.reads) == (text, 0)


async def test_queries_of_a_tick_share_a_read() -> None:
    """Also with different selectors, and also while the read runs."""
    world = World(metric_source(labels={"queue": "jobs"}))
    await asyncio.gather(world.ask(), world.ask(selector="queue=jobs"))
    await world.ask(selector="queue in (jobs)")
    assert (world.system.reads, len(world.noted)) == (1, 1)


async def test_the_next_tick_reads_again() -> None:
    """A value is not older than a tick."""
    world = World(metric_source())
    await world.ask()
    await world.clock.advance(1.0)
    world.system.number = 8
    assert ((await world.ask()).items or ())[0].value == "8"


async def test_a_failure_of_a_tick_is_shared() -> None:
    """A system that is down is not asked by each autoscaler."""
    world = World(metric_source())
    world.system.number = OSError("refused")
    for _ in range(2):
        with pytest.raises(StatusError):
            await world.ask()
    assert world.system.reads == 1


async def test_a_failure_names_source_query_and_reason() -> None:
    """The text is for the condition of the autoscaler."""
    world = World(metric_source())
    world.system.number = OSError("refused")
    with pytest.raises(StatusError) as caught:
        await world.ask()
    text = "the MetricSource shop/jobs (fake number of the fake system) cannot be read: OSError: refused"
    assert (str(caught.value), caught.value.code) == (text, 0)


async def test_an_edited_spec_is_read_at_once() -> None:
    """The value of the old spec is not shared with it."""
    world = World(metric_source())
    await world.ask()
    world._sources["shop", "jobs"] = metric_source(custom={"type": "fake", "settings": {"queue": "new"}})
    await world.ask()
    assert world.system.reads == 2
