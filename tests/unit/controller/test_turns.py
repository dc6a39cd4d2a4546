"""Turns: how many syncs run at once, and that those that wait hold up nobody."""

import asyncio

from podscaler.controller.turns import Turns


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_no_more_than_there_are_turns() -> None:
    """Who finds no turn waits until one is given back."""
    turns = Turns(2)
    order: list[str] = []

    async def sync(name: str, end: asyncio.Event) -> None:
        await turns.take()
        order.append(name)
        await end.wait()
        turns.give()

    ends = [asyncio.Event() for _ in range(3)]
    tasks = [asyncio.ensure_future(sync(name, end)) for name, end in zip("abc", ends, strict=True)]
    await _settle()
    before = list(order)
    ends[0].set()
    await _settle()
    for end in ends:
        end.set()
    await asyncio.gather(*tasks)
    assert (before, order) == (["a", "b"], ["a", "b", "c"])


async def test_away_lets_others_run() -> None:
    """While one is away another has its turn, and the first goes on when a turn is free."""
    turns = Turns(1)
    answer, order = asyncio.Event(), []

    async def waiting() -> None:
        await turns.take()
        async with turns.away():
            await answer.wait()
        order.append("waited")
        turns.give()

    async def quick() -> None:
        await turns.take()
        answer.set()
        await _settle()
        order.append("quick")
        turns.give()

    await asyncio.gather(waiting(), quick())
    assert order == ["quick", "waited"]
