"""The work queue's rules, in virtual time."""

import asyncio

import pytest

from podscaler.base.workqueue import ShutDown, WorkQueue
from podscaler.testing import VirtualClock


async def drained(queue: WorkQueue[str]) -> list[str]:
    """Every key that is due now, worked on at once."""
    await asyncio.sleep(0)
    keys = []
    while len(queue):
        key = await queue.get()
        keys.append(key)
        queue.done(key)
    return keys


async def test_keys_come_in_the_order_in_which_they_were_added() -> None:
    """First in, first out."""
    queue: WorkQueue[str] = WorkQueue(VirtualClock())
    for key in ("b", "a", "c"):
        queue.add(key)
    assert await drained(queue) == ["b", "a", "c"]


async def test_a_waiting_key_is_not_queued_twice() -> None:
    """Two additions of one key are one piece of work."""
    queue: WorkQueue[str] = WorkQueue(VirtualClock())
    queue.add("a")
    queue.add("a")
    assert await drained(queue) == ["a"]


async def test_a_key_added_while_it_is_worked_on_comes_again_afterwards() -> None:
    """No key is worked on twice at once, and no addition is lost."""
    queue: WorkQueue[str] = WorkQueue(VirtualClock())
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    assert len(queue) == 0
    queue.done(key)
    assert await drained(queue) == ["a"]


async def test_a_delayed_key_comes_when_it_is_due() -> None:
    """Nothing before the delay has passed, the key right after."""
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", 15)
    await clock.advance(14.999)
    assert await drained(queue) == []
    await clock.advance(0.001)
    assert await drained(queue) == ["a"]
    queue.shut_down()


@pytest.mark.parametrize(("first_s", "second_s"), [(5, 15), (15, 5)], ids=["later second", "earlier second"])
async def test_of_two_delays_of_one_key_the_earlier_wins(first_s: float, second_s: float) -> None:
    """Delayed additions of one key merge."""
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", first_s)
    await clock.advance(0)
    queue.add_after("a", second_s)
    await clock.advance(5)
    assert await drained(queue) == ["a"]
    await clock.advance(60)
    assert await drained(queue) == []
    queue.shut_down()


async def test_an_immediate_addition_leaves_a_delayed_one_in_place() -> None:
    """The key comes now, and again at its time."""
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", 15)
    queue.add("a")
    assert await drained(queue) == ["a"]
    await clock.advance(15)
    assert await drained(queue) == ["a"]
    queue.shut_down()


async def test_a_later_shorter_delay_of_another_key_overtakes() -> None:
    """The timer follows the earliest due time, whichever key it belongs to."""
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("slow", 60)
    await clock.advance(1)
    queue.add_after("fast", 1)
    await clock.advance(1)
    assert await drained(queue) == ["fast"]
    await clock.advance(58)
    assert await drained(queue) == ["slow"]
    queue.shut_down()


async def test_a_shut_down_queue_gives_no_more_keys() -> None:
    """Whoever waits for a key learns that there will be none."""
    queue: WorkQueue[str] = WorkQueue(VirtualClock())
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.shut_down()
    with pytest.raises(ShutDown):
        await waiting
    with pytest.raises(ShutDown):
        await queue.get()
