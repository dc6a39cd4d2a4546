"""Whatever happens to processes and to their ways to the API server: one writer at most, and none missed for long."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

import sampling
from election_world import PERIOD_S, ElectionWorld, Process
from podscaler.controller.leaderelection.election import Timing

TIMING = Timing(6, 4, 1)
SPAN_S = 150.0
HEALTHY_S = 10.0
"""A process is left alone for so long after each fault: one that is hit again and again does nothing for ever."""
SLACK_S = 3.0
"""Two retry periods, and the time to take over."""


class Faults:
    """What happens to one process, one thing after the other.

    Args:
        world: where it is.
        name: its name; a process of that name is started anew where it was ended.
        shards: as the flag.
        rng: what happens, and when.
        turn: held from a fault until its consequences are over; faults that have one each may come together.
    """

    def __init__(self, world: ElectionWorld, name: str, *, shards: int, rng: random.Random, turn: asyncio.Lock) -> None:
        self._world = world
        self._name = name
        self._shards = shards
        self._rng = rng
        self._turn = turn
        self._start()

    async def run(self) -> None:
        """Until cancelled."""
        kinds: list[Callable[[Process], Awaitable[None]]] = [self._pause, self._cut, self._kill, self._stop, self._jump]
        while True:
            await self._wait(0, HEALTHY_S * 2)
            async with self._turn:
                await self._rng.choice(kinds)(self._process)
                await self._wait(HEALTHY_S, HEALTHY_S)

    def _start(self) -> None:
        skew_s = self._rng.uniform(-1000, 1000)
        self._process = self._world.start(self._name, shards=self._shards, skew_s=skew_s)

    async def _wait(self, least_s: float, most_s: float) -> None:
        await self._world.clock.sleep(self._rng.uniform(least_s, most_s))

    async def _pause(self, process: Process) -> None:
        process.pause()
        await self._wait(0.1, 15)
        process.resume()

    async def _cut(self, process: Process) -> None:
        process.line.is_cut = True
        await self._wait(0.1, 15)
        process.line.is_cut = False

    async def _jump(self, process: Process) -> None:
        process.clock.skew_s += self._rng.uniform(-20, 20)

    async def _kill(self, process: Process) -> None:
        await process.kill()
        await self._wait(0.1, 10)
        self._start()

    async def _stop(self, process: Process) -> None:
        process.share.stop()
        await self._wait(3, 10)
        await process.kill()
        self._start()


async def played(seed: int, shards: int, *turns: asyncio.Lock) -> ElectionWorld:
    """A world in which one process was healthy, and faults came to others, each with its turn."""
    rng = random.Random(f"{seed}/{shards}")
    world = ElectionWorld(TIMING, namespaces=8)
    world.start("healthy", shards=shards)
    faults = [Faults(world, name, shards=shards, rng=rng, turn=turn) for name, turn in zip("abc", turns, strict=True)]
    tasks = [asyncio.ensure_future(each.run()) for each in faults]
    await world.advance(SPAN_S)
    for task in tasks:
        task.cancel()
    await world.close()
    return world


@pytest.mark.parametrize("shards", [0, 4])
@pytest.mark.parametrize("seed", sampling.one_in(3, range(6)))
async def test_one_writer(seed: int, shards: int) -> None:
    """Whatever comes together, at every write no other process could have written; and work goes on."""
    world = await played(seed, shards, asyncio.Lock(), asyncio.Lock(), asyncio.Lock())
    assert world.overlaps == []
    assert len(world.writes) > 8 * SPAN_S * 0.5


@pytest.mark.parametrize("shards", [0, 4])
@pytest.mark.parametrize("seed", sampling.one_in(3, range(100, 103)))
async def test_no_long_gap(seed: int, shards: int) -> None:
    """With faults that come one after the other no autoscaler is left alone for longer than promised."""
    turn = asyncio.Lock()
    world = await played(seed, shards, turn, turn, turn)
    gaps_s = world.gaps_s(SPAN_S)
    assert world.overlaps == []
    assert max(gaps_s.values()) <= TIMING.lease_duration_s + PERIOD_S + SLACK_S, gaps_s
