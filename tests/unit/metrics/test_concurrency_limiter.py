"""How many requests a metrics API has to answer at once: few, unless it takes its time by nature."""

import asyncio
from collections.abc import Callable

import pytest

from podscaler.metrics.concurrency_limiter import LIMIT_MAX, LIMIT_MIN, ConcurrencyLimiter
from podscaler.testing import VirtualClock


class Api:
    """An API that takes as long as it is told for each answer.

    Args:
        clock: its time.
        takes_s: for each request, by its number.
    """

    def __init__(self, clock: VirtualClock, takes_s: Callable[[int], float]) -> None:
        self._clock = clock
        self._takes_s = takes_s
        self._allowance = ConcurrencyLimiter(clock)
        self._tasks: list[asyncio.Task[None]] = []
        self.begun: list[int] = []
        self.answered: list[int] = []

    @property
    def active(self) -> int:
        """How many it has to answer now."""
        return len(self.begun) - len(self.answered)

    async def ask(self, *numbers: int) -> None:
        """Send requests; returns when those that may have begun."""
        self._tasks += [asyncio.ensure_future(self._one(number)) for number in numbers]
        await self._clock.advance(0)

    async def watched(self, times: int, step_s: float) -> list[int]:
        """How many it had to answer, each time after a step."""
        found = []
        for _ in range(times):
            await self._clock.advance(step_s)
            found.append(self.active)
        return found

    async def cancel(self, *numbers: int) -> None:
        """Stop waiting."""
        for number in numbers:
            self._tasks[number].cancel()
        await asyncio.gather(*[self._tasks[number] for number in numbers], return_exceptions=True)

    async def close(self) -> None:
        """Stop everything."""
        await self.cancel(*range(len(self._tasks)))

    async def _one(self, number: int) -> None:
        async with self._allowance.slot():
            self.begun.append(number)
            await self._clock.sleep(self._takes_s(number))
            self.answered.append(number)


class Busy:
    """A server that answers one after the other, in 10 ms each.

    Args:
        clock: its time.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._free_at_s = clock.monotonic_s()

    def takes_s(self) -> float:
        """How long a request that comes now takes."""
        now_s = self._clock.monotonic_s()
        self._free_at_s = max(self._free_at_s, now_s) + 0.01
        return self._free_at_s - now_s


@pytest.mark.parametrize(
    ("takes_s", "active"),
    [
        pytest.param(0.005, [12, 12, 12, 12, 12, 12, 12, 12], id="fast"),
        pytest.param(0.012, [12, 12, 12, 12, 12, 12, 12, 12], id="as fast as few can be"),
        pytest.param(0.02, [12, 12, 12, 20, 20, 20, 20, 20], id="20 ms"),
        pytest.param(0.2, [12, 12, 12, 24, 24, 48, 72, 72], id="200 ms"),
    ],
)
async def test_what_an_api_needs(takes_s: float, active: list[int]) -> None:
    """From 12 up to as many as give 1,000 answers a second, step by step, and 72 at most."""
    clock = VirtualClock()
    api = Api(clock, lambda _: takes_s)
    await api.ask(*range(400))
    found = [api.active]
    for _ in range(7):
        await clock.advance(takes_s)
        found.append(api.active)
    assert found == active
    await api.close()


async def test_one_fast_answer_shows_that_the_others_waited_for_each_other() -> None:
    """Many slow answers allow no more where one of them was fast."""
    clock = VirtualClock()
    api = Api(clock, lambda number: 0.01 if number % 20 == 5 else 0.5)
    await api.ask(*range(100))
    active = await api.watched(40, 0.1)
    assert max(active) == LIMIT_MIN
    await api.close()


async def test_more_are_not_allowed_where_they_slow_each_other_down() -> None:
    """An API that does so much and no more gets one step more than few, for two seconds every ten."""
    clock = VirtualClock()
    api = Api(clock, lambda _: busy.takes_s())
    busy = Busy(clock)
    await api.ask(*range(3000))
    active = await api.watched(280, 0.1)
    assert (max(active), 0 < active.count(24) < 70) == (24, True)
    await api.close()


async def test_an_api_that_is_overrun_gets_few_again() -> None:
    """Where 72 were allowed because it was slow by nature, and then it cannot do as much as it did."""
    clock = VirtualClock()
    api = Api(clock, lambda number: 0.2 if number < 1000 else busy.takes_s())
    busy = Busy(clock)
    await api.ask(*range(2000))
    active = await api.watched(20, 0.5)
    assert (max(active), active[-1]) == (LIMIT_MAX, LIMIT_MIN)
    await api.close()


async def test_a_moment_of_delay_changes_nothing() -> None:
    """An API that is slow by nature keeps its 72 where all answers of one second are late."""
    clock = VirtualClock()
    api = Api(clock, lambda _: 1.2 if 5 <= clock.monotonic_s() - began_s < 6 else 0.2)
    began_s = clock.monotonic_s()
    await api.ask(*range(5000))
    active = await api.watched(20, 0.5)
    assert set(active[6:]) == {LIMIT_MAX}
    await api.close()


async def test_an_api_that_becomes_slow_is_allowed_more() -> None:
    """What was fast is forgotten with the next 24 answers."""
    clock = VirtualClock()
    api = Api(clock, lambda number: 0.01 if number < 100 else 0.2)
    await api.ask(*range(100))
    await clock.advance(0.2)
    before = api.active
    await api.ask(*range(100, 1000))
    for _ in range(8):
        await clock.advance(0.2)
    assert (before, api.active) == (0, LIMIT_MAX)
    await api.close()


async def test_hanging_requests_make_room() -> None:
    """After each second what hangs is replaced by others, until 72 hang."""
    clock = VirtualClock()
    api = Api(clock, lambda _: 1000.0)
    await api.ask(*range(100))
    active = [api.active]
    for _ in range(7):
        await clock.advance(1)
        active.append(api.active)
    assert active == [12, 24, 36, 48, 60, 72, 72, 72]
    await api.close()


async def test_places_are_given_in_order() -> None:
    """First come, first served, past those that stopped waiting."""
    clock = VirtualClock()
    api = Api(clock, lambda _: 0.01)
    await api.ask(*range(30))
    await api.cancel(12, 13, 20)
    for _ in range(3):
        await clock.advance(0.01)
    assert api.answered == [number for number in range(30) if number not in (12, 13, 20)]
    await api.close()


async def test_a_cancelled_request_gives_its_place_back() -> None:
    """Whoever waits gets it."""
    clock = VirtualClock()
    api = Api(clock, lambda _: 0.5)
    await api.ask(*range(13))
    await api.cancel(3)
    await clock.advance(0)
    assert api.begun == [*range(13)]
    await api.close()
