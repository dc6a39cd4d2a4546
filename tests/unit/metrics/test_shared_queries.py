"""Answers that are shared within a tick."""

import asyncio
from typing import Any

import pytest

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.metrics import ExternalMetricValueList
from podscaler.base.errors import StatusError
from podscaler.metrics.concurrency_limiter import LimitedMetricsSource
from podscaler.metrics.queries import ExternalMetricQuery, MetricQuery
from podscaler.metrics.shared_queries import SharedMetricsSource
from podscaler.testing.clock import VirtualClock

BLUE = selectors.parse("color=blue")


class Queue:
    """An external metrics API that may be slow or broken."""

    def __init__(self, clock: VirtualClock) -> None:
        self.asked: list[tuple[str, str]] = []
        self.delay_s = 0.0
        self.is_broken = False
        self._clock = clock

    async def query(self, query: MetricQuery[Any]) -> Any:
        assert isinstance(query, ExternalMetricQuery)
        self.asked.append((query.metric, str(query.metric_selector)))
        await self._clock.sleep(self.delay_s)
        if self.is_broken:
            raise StatusError("broken", code=500)
        return ExternalMetricValueList()


@pytest.fixture
def clock() -> VirtualClock:
    """Virtual time."""
    return VirtualClock()


@pytest.fixture
def queue(clock: VirtualClock) -> Queue:
    """The API."""
    return Queue(clock)


@pytest.fixture
def shared(clock: VirtualClock, queue: Queue) -> SharedMetricsSource:
    """Answers live for 1.5 s."""
    return SharedMetricsSource(LimitedMetricsSource(queue, clock), clock, fresh_s=1.5)


async def _ask(shared: SharedMetricsSource, metric: str = "depth", selector: Selector = BLUE) -> None:
    await shared.query(ExternalMetricQuery("shop", metric, selector))


@pytest.mark.parametrize(("after_s", "requests"), [(0, 1), (1.4, 1), (1.5, 2), (15, 2)])
async def test_equal_questions_within_a_tick(
    shared: SharedMetricsSource, queue: Queue, clock: VirtualClock, after_s: float, requests: int
) -> None:
    """An answer is given to others until it is as old as a tick."""
    await _ask(shared)
    await clock.advance(after_s)
    await _ask(shared)
    assert len(queue.asked) == requests


async def test_other_questions_are_asked(shared: SharedMetricsSource, queue: Queue) -> None:
    """Another metric or another selector is another question."""
    await _ask(shared)
    await _ask(shared, "length")
    await _ask(shared, selector=selectors.EVERYTHING)
    assert queue.asked == [("depth", "color=blue"), ("length", "color=blue"), ("depth", "")]


async def test_failures_are_not_kept(shared: SharedMetricsSource, queue: Queue) -> None:
    """Who asks after a failure asks the API."""
    queue.is_broken = True
    with pytest.raises(StatusError):
        await _ask(shared)
    queue.is_broken = False
    await _ask(shared)
    assert len(queue.asked) == 2


async def test_age_counts_from_the_question(shared: SharedMetricsSource, queue: Queue, clock: VirtualClock) -> None:
    """A slow answer is as old as its question: it may describe that moment."""
    queue.delay_s = 1.0
    first = asyncio.ensure_future(_ask(shared))
    await clock.advance(1.0)
    await first
    await clock.advance(0.5)
    second = asyncio.ensure_future(_ask(shared))
    await clock.advance(1.0)
    await second
    assert len(queue.asked) == 2
