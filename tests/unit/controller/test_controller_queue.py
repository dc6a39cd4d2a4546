"""Turns keep their phases: a period is counted from when a turn was due."""

import pytest

from podscaler.controller.queue import MeteredQueue
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.testing import VirtualClock

KEY = ("shop", "web")
PERIOD_S = 15.0


@pytest.fixture
def clock() -> VirtualClock:
    """Time of the test."""
    return VirtualClock()


@pytest.fixture
def queue(clock: VirtualClock) -> MeteredQueue:
    """An empty queue."""
    return MeteredQueue(clock, Telemetry(clock).queue, period_s=PERIOD_S)


async def _starts(clock: VirtualClock, queue: MeteredQueue, takes_s: list[float]) -> list[float]:
    """When each turn began, if turns take so long."""
    began_s, starts = clock.monotonic_s(), []
    queue.add(KEY)
    for each_s in takes_s:
        while not len(queue):
            await clock.advance(0.25)
        assert await queue.get() == KEY
        starts.append(clock.monotonic_s() - began_s)
        await clock.advance(each_s)
        queue.add_next(KEY)
        queue.done(KEY)
    queue.shut_down()
    return starts


@pytest.mark.parametrize(
    ("takes_s", "starts"),
    [
        pytest.param([0, 0, 0], [0, 15, 30], id="no time"),
        pytest.param([5, 1, 10, 0], [0, 15, 30, 45], id="less than a period"),
        pytest.param([13.5, 0, 0], [0, 15, 30], id="a tenth less than a period"),
        pytest.param([14, 0, 0], [0, 15.5, 30.5], id="a pause of a tenth of a period"),
        pytest.param([40, 0, 0], [0, 41.5, 56.5], id="more than two periods"),
    ],
)
async def test_a_turn_that_takes_long(
    clock: VirtualClock, queue: MeteredQueue, takes_s: list[float], starts: list[float]
) -> None:
    """The next turn comes a period after this one was due, and a tenth of a period after its end at least."""
    assert await _starts(clock, queue, takes_s) == starts


async def test_a_turn_that_waits_long(clock: VirtualClock, queue: MeteredQueue) -> None:
    """A turn that is taken late does not shift the phase."""
    queue.add_after(KEY, 3)
    await clock.advance(9)
    await queue.get()
    queue.add_next(KEY)
    queue.done(KEY)
    await clock.advance(8.5)
    before = len(queue)
    await clock.advance(0.5)
    assert (before, len(queue)) == (0, 1)
    queue.shut_down()


async def test_turns_that_are_due_one_shortly_after_the_other(clock: VirtualClock, queue: MeteredQueue) -> None:
    """They are taken together: in fifteen seconds the queue wakes up 75 times at most."""
    keys = [("shop", f"web-{number}") for number in range(1000)]
    for number, key in enumerate(keys):
        queue.add_after(key, 5 + number * PERIOD_S / 1000)
    taken, sizes = [], []
    for _ in range(2200):
        await clock.advance(0.01)
        if len(queue):
            sizes.append(len(queue))
        while len(queue):
            taken.append(await queue.get())
    assert taken == keys
    assert len(sizes) <= 76
    queue.shut_down()
