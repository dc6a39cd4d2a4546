"""Concurrency slots of reads: which caller gets the next one, and that none is lost."""

import asyncio

import pytest

from podscaler.sources.fair_slots import FairSlots
from podscaler.sources.protocol import ReadTimeout
from podscaler.testing import VirtualClock


class _World:
    """Slots, and the order in which they were taken."""

    def __init__(self, *, total: int, each: int) -> None:
        self.clock = VirtualClock()
        self.slots = FairSlots(self.clock, total=total, group_max=each, wait_max_s=30.0)
        self.taken: list[str] = []

    def take(self, names: str) -> list[asyncio.Task[None]]:
        """Tasks that take slots, one for each letter, which is its group."""
        return [asyncio.create_task(self._take(group)) for group in names]

    async def _take(self, group: str) -> None:
        await self.slots.take(group)
        self.taken.append(group)


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("total", "each", "names", "first"),
    [
        (3, 3, "aaaa", "aaa"),
        (3, 2, "aaab", "aab"),
        (3, 2, "aaabbb", "aab"),
        (1, 2, "ab", "a"),
    ],
)
async def test_how_many_slots_are_taken(total: int, each: int, names: str, first: str) -> None:
    """As many as there are, and as a group may have."""
    world = _World(total=total, each=each)
    tasks = world.take(names)
    await _settle()
    assert "".join(world.taken) == first
    for task in tasks:
        task.cancel()


async def test_groups_take_turns() -> None:
    """One that has many reads waiting gets no more than others."""
    world = _World(total=1, each=1)
    tasks = world.take("aaaabbc")
    for group in "aabcaba":
        await _settle()
        world.slots.release(group)
    await asyncio.gather(*tasks)
    assert "".join(world.taken) == "aabcaba"


async def test_waiting_ends() -> None:
    """The failure says what it waited for, and the slot goes to the next one."""
    world = _World(total=2, each=1)
    await world.slots.take("a")
    waiting = asyncio.create_task(world.slots.take("a"))
    await _settle()
    await world.clock.advance(30.0)
    with pytest.raises(ReadTimeout, match=r"^not read: 1 other sources of the namespace were being read for 30 s"):
        await waiting
    world.slots.release("a")
    world.take("a")
    await _settle()
    assert world.taken == ["a"]


@pytest.mark.parametrize("is_granted", [False, True], ids=["while it waits", "when it was its turn"])
async def test_a_caller_that_is_cancelled(is_granted: bool) -> None:
    """Its slot is not lost."""
    world = _World(total=1, each=1)
    await world.slots.take("a")
    waiting = asyncio.create_task(world.slots.take("b"))
    await _settle()
    if is_granted:
        world.slots.release("a")
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    if not is_granted:
        world.slots.release("a")
    world.take("c")
    await _settle()
    assert world.taken == ["c"]
