"""Turns: how many syncs run at once, that those that wait hold up nobody, and that none is lost or made."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context

import pytest

from podscaler.base import concurrency as syncs
from podscaler.base.concurrency import Slots


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def _start(turns: Slots, sync: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Run a sync as the loop does: it takes the turn, and gives it when the task is over, however it ends."""
    turn = await turns.take()

    async def run() -> None:
        await sync()

    task = asyncio.get_running_loop().create_task(run(), context=syncs.enter(turn, copy_context()))
    task.add_done_callback(lambda _: turn.release())
    return task


async def _count_free(turns: Slots) -> int:
    """How many turns can be taken now."""
    taking = [asyncio.ensure_future(turns.take()) for _ in range(10)]
    await _settle()
    taken = [each.result() for each in taking if each.done()]
    for each in taking:
        each.cancel()
    await _settle()
    for turn in taken:
        turn.release()
    return len(taken)


async def _waiting(turns: Slots, answer: asyncio.Event) -> None:
    async with turns.without_slot():
        await answer.wait()


async def test_no_more_than_there_are_turns() -> None:
    """Who finds no turn waits until one is given back."""
    turns = Slots(2)
    order: list[str] = []

    async def sync(name: str, end: asyncio.Event) -> None:
        turn = await turns.take()
        order.append(name)
        await end.wait()
        turn.release()

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
    turns = Slots(1)
    answer, order = asyncio.Event(), []

    async def waiting() -> None:
        await _waiting(turns, answer)
        order.append("waited")

    async def quick() -> None:
        answer.set()
        await _settle()
        order.append("quick")

    await asyncio.gather(await _start(turns, waiting), await _start(turns, quick))
    assert order == ["quick", "waited"]


@pytest.mark.parametrize("is_answered", [False, True], ids=["waiting for the answer", "waiting for its turn"])
async def test_a_sync_that_is_cancelled_gives_one_turn(is_answered: bool) -> None:
    """Cancelled while it is away, or while another has its turn, it leaves as many turns as there were."""
    turns, answer = Slots(1), asyncio.Event()
    sync = await _start(turns, lambda: _waiting(turns, answer))
    await _settle()
    other = await turns.take()
    if is_answered:
        answer.set()
        await _settle()
    sync.cancel()
    await _settle()
    other.release()
    assert (sync.cancelled(), await _count_free(turns)) == (True, 1)


async def test_a_sync_that_waits_for_several_answers_leaves_one_turn() -> None:
    """Each of its metrics is asked for by a task of its own; all of them together have one turn."""
    turns, answers = Slots(2), [asyncio.Event() for _ in range(3)]

    async def sync() -> None:
        await asyncio.gather(*(_waiting(turns, each) for each in answers))

    task = await _start(turns, sync)
    await _settle()
    while_waiting = await _count_free(turns)
    answers[0].set()
    await _settle()
    after_one = await _count_free(turns)
    for each in answers:
        each.set()
    await task
    await _settle()
    assert (while_waiting, after_one, await _count_free(turns)) == (2, 2, 2)


async def test_a_task_that_leaves_again_while_another_comes_back() -> None:
    """While a task waits for the turn of its sync, another one leaves: the turn stays free until that is back too."""
    turns, first, second = Slots(1), asyncio.Event(), asyncio.Event()

    async def twice() -> None:
        await _waiting(turns, first)
        await _waiting(turns, second)

    async def sync() -> None:
        await asyncio.gather(_waiting(turns, first), twice())

    task = await _start(turns, sync)
    await _settle()
    other = await turns.take()
    first.set()
    await _settle()
    other.release()
    await _settle()
    while_waiting = await _count_free(turns)
    second.set()
    await task
    await _settle()
    assert (while_waiting, await _count_free(turns)) == (1, 1)


async def test_a_task_that_outlives_its_sync_takes_no_turn() -> None:
    """What a cancelled sync has started, and others wait for, comes back without a turn."""
    turns, answer = Slots(1), asyncio.Event()
    started: list[asyncio.Task[None]] = []

    async def sync() -> None:
        started.append(asyncio.ensure_future(_waiting(turns, answer)))
        await asyncio.shield(started[0])

    task = await _start(turns, sync)
    await _settle()
    task.cancel()
    await _settle()
    answer.set()
    await started[0]
    assert await _count_free(turns) == 1


async def test_outside_of_syncs_there_is_no_turn_to_leave() -> None:
    """What looks at metrics between syncs waits without letting one more sync run."""
    turns, answer = Slots(1), asyncio.Event()
    looking = asyncio.ensure_future(_waiting(turns, answer))
    await _settle()
    free = await _count_free(turns)
    answer.set()
    await looking
    assert (free, await _count_free(turns)) == (1, 1)
