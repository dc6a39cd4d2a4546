"""The loop that controllers run in."""

import asyncio

import pytest

from podscaler.base.errors import Cause, PodscalerError, StatusError
from podscaler.controlplane.controllers.framework.control_loop import (
    ControlLoop,
    ExponentialFailureRateLimiter,
    Watched,
)
from podscaler.controlplane.registry.registry import ObjectEvent
from podscaler.testing import VirtualClock

CONFLICT = StatusError("modified", code=409, reason="Conflict")
REFUSED = StatusError("no", code=403, reason="Forbidden")
TERMINATING = StatusError(
    "unable to create new content", code=403, reason="Forbidden", causes=(Cause("NamespaceTerminating", "", ""),)
)
EXPIRED = StatusError("too old", code=410, reason="Expired")


class Watches:
    """A registry of which only `watch` is used: changes come from the test, one stream after the other."""

    def __init__(self):
        self.streams = []

    def watch(self, resource, *, initial=True):
        queue = asyncio.Queue()
        self.streams.append(queue)
        return self._changes(queue)

    async def _changes(self, queue):
        while True:
            item = await queue.get()
            if isinstance(item, Exception):
                raise item
            yield item

    def tell(self, name):
        self.streams[-1].put_nowait(ObjectEvent("MODIFIED", {"metadata": {"name": name}}))

    def fail(self, error):
        self.streams[-1].put_nowait(error)


class Scripted:
    """A controller whose syncs end as the test says; notes when they happened (seconds)."""

    name = "scripted"

    def __init__(self, clock, *outcomes, primed=()):
        self._clock = clock
        self._outcomes = list(outcomes)
        self._primed = primed
        self.log, self.reports, self.busy, self.most_busy = [], [], {}, 0
        self.sync_s = 0.0

    def watches(self):
        return [Watched("things", self._keys)]

    def _keys(self, change):
        name = change.object["metadata"]["name"]
        if name == "defect":
            raise ValueError(name)
        return [name]

    def prime(self):
        return self._primed

    async def sync(self, key):
        self.log.append((key, round(self._clock.monotonic_s(), 3)))
        self.busy[key] = self.busy.get(key, 0) + 1
        self.most_busy = max(self.most_busy, self.busy[key])
        await self._clock.sleep(self.sync_s)
        self.busy[key] -= 1
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def report(self, key, error):
        self.reports.append((key, str(error)))


class World:
    """One loop that runs."""

    def __init__(self, *outcomes, primed=(), workers=2):
        self.clock, self.watches = VirtualClock(), Watches()
        self.controller = Scripted(self.clock, *outcomes, primed=primed)
        self.loop = ControlLoop(self.controller, self.watches, self.clock, workers=workers)

    async def __aenter__(self):
        self.task = asyncio.create_task(self.loop.run())
        await self.clock.advance(0)
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_a_change_is_synced():
    """Its key is worked on at once, and only once."""
    async with World() as world:
        world.watches.tell("a")
        await world.clock.advance(100)
        assert world.controller.log == [("a", 0.0)]


async def test_what_is_there_is_synced_at_the_start():
    """`prime` names it."""
    async with World(primed=("a", "b")) as world:
        await world.clock.advance(1)
        assert world.controller.log == [("a", 0.0), ("b", 0.0)]


async def test_a_sync_may_ask_to_be_repeated():
    """The returned seconds later."""
    async with World(2.5) as world:
        world.watches.tell("a")
        await world.clock.advance(10)
        assert world.controller.log == [("a", 0.0), ("a", 2.5)]


async def test_a_failed_sync_is_repeated_with_back_off_and_reported():
    """10 ms, 20 ms, 40 ms, ...; a success forgets the failures."""
    async with World(REFUSED, REFUSED, REFUSED, None, REFUSED) as world:
        world.watches.tell("a")
        await world.clock.advance(1)
        world.watches.tell("a")
        await world.clock.advance(1)
        assert world.controller.log == [("a", at) for at in (0.0, 0.01, 0.03, 0.07, 1.0, 1.01)]
        assert world.controller.reports == [("a", "no")] * 4


async def test_a_lost_race_is_repeated_but_not_reported():
    """409 Conflict is nobody's fault."""
    async with World(CONFLICT) as world:
        world.watches.tell("a")
        await world.clock.advance(1)
        assert (len(world.controller.log), world.controller.reports) == (2, [])


async def test_a_sync_in_a_terminating_namespace_is_not_repeated(caplog):
    """Nothing can be created there any more, and a warning would help nobody."""
    async with World(TERMINATING) as world:
        world.watches.tell("a")
        await world.clock.advance(100)
        assert (world.controller.log, world.controller.reports) == ([("a", 0.0)], [])
    assert caplog.records == []


async def test_a_defect_in_a_sync_is_logged_and_repeated(caplog):
    """One object that cannot be handled does not stop the others."""
    async with World(KeyError("spec"), None) as world:
        world.watches.tell("a")
        world.watches.tell("b")
        await world.clock.advance(1)
        assert [key for key, _ in world.controller.log] == ["a", "b", "a"]
        assert "sync of a failed" in caplog.text


async def test_what_cannot_be_had_is_one_line_in_the_log(caplog):
    """A failure that is foreseen (a port in use) is no defect: it has no traceback."""
    async with World(PodscalerError("port 80 is in use"), None) as world:
        world.watches.tell("a")
        await world.clock.advance(1)
    assert [(r.levelname, r.getMessage(), r.exc_info) for r in caplog.records] == [
        ("WARNING", f"{world.controller.name}: a: port 80 is in use", None)
    ]


async def test_a_key_is_never_synced_twice_at_once():
    """A change during a sync is another sync afterwards."""
    async with World() as world:
        world.controller.sync_s = 5
        for _ in range(3):
            world.watches.tell("a")
            await world.clock.advance(1)
        await world.clock.advance(20)
        assert world.controller.log == [("a", 0.0), ("a", 5.0)]
        assert world.controller.most_busy == 1


@pytest.mark.parametrize("breaking", [lambda w: w.fail(EXPIRED), lambda w: w.tell("defect")], ids=["410", "a defect"])
async def test_a_broken_watch_starts_anew_and_everything_is_synced(breaking):
    """It fell too far behind, or a handler failed: after a pause there is a new watch, and nothing was missed."""
    async with World(primed=("a",)) as world:
        await world.clock.advance(1)
        breaking(world.watches)
        await world.clock.advance(1)
        assert len(world.watches.streams) == 2
        world.watches.tell("b")
        await world.clock.advance(1)
        assert world.controller.log == [("a", 0.0), ("a", 1.01), ("b", 2.0)]


async def test_a_watch_that_breaks_again_and_again_is_not_hurried():
    """Back-off between the attempts."""
    async with World() as world:
        for _ in range(20):
            world.watches.fail(EXPIRED)
            await world.clock.advance(0.1)
        assert len(world.watches.streams) < 10


async def test_a_key_that_is_due_at_once_leaves_time_for_others():
    """A controller whose syncs never wait, and want to be repeated at once, does not stop the process."""
    clock, watches = VirtualClock(), Watches()
    controller = Scripted(clock, primed=("a",))
    outcomes = [0.0] * 100

    async def sync(key):
        del key
        return outcomes.pop() if outcomes else None

    controller.sync = sync
    task = asyncio.create_task(ControlLoop(controller, watches, clock, workers=1).run())
    for _ in range(10):
        await asyncio.sleep(0)
    assert 0 < len(outcomes) < 100
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_cancelling_ends_everything():
    """No task is left behind."""
    world = World()
    async with world:
        world.watches.tell("a")
        await world.clock.advance(1)
    assert world.task.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_back_off_is_capped():
    """No key waits for more than a minute."""
    backoff = ExponentialFailureRateLimiter()
    delays = [backoff.failed("a") for _ in range(40)]
    assert (delays[:3], delays[-1]) == ([0.01, 0.02, 0.04], 60.0)
    backoff.succeeded("a")
    assert backoff.failed("a") == 0.01
