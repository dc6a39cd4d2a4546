"""One list of a namespace instead of many questions: when it is made, what is picked out of it, and how it fails."""

import asyncio
from typing import Any

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.metrics import ExternalMetricValueList, PodMetrics, PodMetricsList, PodMetricsMeta
from podscaler.base.errors import StatusError
from podscaler.metrics.listed_pod_metrics import KnownPods, ListedMetricsSource
from podscaler.metrics.queries import ExternalMetricQuery, MetricQuery, ResourceMetricsQuery
from podscaler.metrics.shared_queries import SharedMetricsSource
from podscaler.testing.clock import VirtualClock

APPS = 20
PODS_EACH = 3
TICK_S = 1.0


class Api:
    """A metrics API: what was asked, and what it answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refuses_lists = False

    async def query(self, query: MetricQuery[Any]) -> Any:
        if not isinstance(query, ResourceMetricsQuery):
            return ExternalMetricValueList()
        self.asked.append(str(query.selector))
        if self.refuses_lists and not str(query.selector):
            raise StatusError("no lists", code=403, reason="Forbidden")
        names = _names("", query.selector)
        return PodMetricsList(items=tuple(PodMetrics(PodMetricsMeta(name, query.namespace)) for name in names))


def _app(number: int) -> Selector:
    return selectors.parse(f"app=a{number}")


def _names(namespace: str, selector: Selector) -> list[str]:
    del namespace
    names = [(f"a{app}-{pod}", {"app": f"a{app}"}) for app in range(APPS) for pod in range(PODS_EACH)]
    return [name for name, labels in names if selector.matches(labels)]


class World:
    """The parts together, in virtual time."""

    def __init__(self, count: int = APPS * PODS_EACH) -> None:
        self.clock = VirtualClock()
        self.api = Api()
        shared = SharedMetricsSource(self.api, self.clock, fresh_s=TICK_S)
        pods = KnownPods(lambda _: count, _names)
        self.source = ListedMetricsSource(shared, pods, self.clock, tick_s=TICK_S, pause_s=15)

    async def ask(self, number: int) -> list[str]:
        answer = await self.source.query(ResourceMetricsQuery("shop", _app(number)))
        return [item.metadata.name for item in answer.items or ()]

    async def round(self) -> list[str]:
        """All ask, one after the other; what the API was asked."""
        self.api.asked.clear()
        for number in range(APPS):
            assert await self.ask(number) == [f"a{number}-{pod}" for pod in range(PODS_EACH)]
        return list(self.api.asked)


async def test_the_first_tick_asks_singly_until_that_is_dearer() -> None:
    """Nothing is known: single questions until they have cost as much as a list, then the list."""
    assert await World().round() == ["app=a0", "app=a1", "app=a2", ""]


async def test_later_ticks_list_at_once() -> None:
    """A namespace in which many ask is listed by the first who asks, once in each tick."""
    world = World()
    await world.round()
    await world.clock.advance(15)
    second = await world.round()
    await world.clock.advance(15)
    assert (second, await world.round()) == ([""], [""])


async def test_no_answer_is_older_than_a_tick() -> None:
    """A list that was asked for a tick ago is not used."""
    world = World()
    await world.round()
    await world.clock.advance(15)
    await world.round()
    await world.clock.advance(TICK_S)
    await world.ask(0)
    assert world.api.asked == ["", ""]


async def test_few_who_ask_among_many_pods() -> None:
    """Where a list would cost more than the questions, it is never made."""
    world = World(count=5_000)
    for _ in range(3):
        assert await world.round() == [f"app=a{number}" for number in range(APPS)]
        await world.clock.advance(15)


async def test_those_who_ask_no_more_are_forgotten() -> None:
    """A namespace in which hardly anybody asks any more is soon asked singly."""
    world = World()
    await world.round()
    world.api.asked.clear()
    for _ in range(8):
        await world.clock.advance(15)
        await world.ask(0)
    assert world.api.asked[-1] == "app=a0"


async def test_at_once_they_share_the_list() -> None:
    """Who asks while the list is on its way waits for it."""
    world = World()
    await world.round()
    await world.clock.advance(15)
    world.api.asked.clear()
    await asyncio.gather(*(world.ask(number) for number in range(APPS)))
    assert world.api.asked == [""]


async def test_a_failed_list_is_not_felt() -> None:
    """Where lists are refused everybody asks for himself, and no list is tried for a while."""
    world = World()
    world.api.refuses_lists = True
    singly = [f"app=a{number}" for number in range(APPS)]
    assert await world.round() == [*singly[:3], "", *singly[3:]]
    await world.clock.advance(10)
    assert await world.round() == singly
    await world.clock.advance(10)
    assert await world.round() == ["", *singly]


async def test_pods_are_told_by_our_cache() -> None:
    """A pod of the list that we do not know belongs to nobody; labels of the list are not looked at."""
    world = World()
    await world.round()
    await world.clock.advance(15)
    found = await world.source.query(ResourceMetricsQuery("shop", selectors.parse("app=nobody")))
    assert (found.items, world.api.asked[-1]) == ((), "")


async def test_other_metrics_are_passed_on() -> None:
    """Only resource metrics can be listed."""
    query = ExternalMetricQuery("shop", "depth", selectors.EVERYTHING)
    assert await World().source.query(query) == ExternalMetricValueList()
