"""Histories that one process hands over and another takes up, in the ConfigMaps between them."""

import asyncio
import json

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controller.history import history_maps
from podscaler.controller.history.config_map_store import ConfigMapHistoryStore
from podscaler.controller.history.history_maps import HistoryMaps, map_of
from podscaler.controller.history.store import HistorySnapshot
from podscaler.core.model.history import History, Recommendation
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing import VirtualClock
from podscaler.testing.cluster import CONFIG_MAPS, FakeCluster, refusal

WEB = ("shop", "web")
OTHER = next(key for key in (("shop", f"n{number}") for number in range(1000)) if map_of(key) == map_of(WEB))
"""One whose history is in the same ConfigMap."""
MINUTE_NS = 60 * NANOSECONDS


class LateCluster(FakeCluster):
    """A cluster that gets some requests late.

    Attributes:
        holds: whether the next change of a history is held back until `arrives` is set.
        answers_late: whether the answer to the next read of a history is held back until `arrives` is set.
        changes: how many changes of histories were sent.
    """

    def __init__(self) -> None:
        super().__init__()
        self.arrives = asyncio.Event()
        self.holds = False
        self.answers_late = False
        self.changes = 0

    async def request(self, request: Request) -> Response:
        """As FakeCluster; a request that is held arrives even if nobody waits for its answer any more."""
        if request.path.startswith(CONFIG_MAPS) and request.method in {"PATCH", "POST"}:
            self.changes += not request.path.endswith(history_maps.NAME)
            if self.holds:
                self.holds = False
                late = asyncio.ensure_future(self._arrive_late(request))
                return await asyncio.shield(late)
        answer = await super().request(request)
        if self.answers_late and request.method == "GET" and request.path.startswith(CONFIG_MAPS):
            self.answers_late = False
            await self.arrives.wait()
        return answer

    async def _arrive_late(self, request: Request) -> Response:
        await self.arrives.wait()
        return await super().request(request)


class World:
    """A cluster, and archives of two processes."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.cluster = LateCluster()
        self.first, self.second = self.archive("aaaa"), self.archive("bbbb")

    def archive(self, writer: str) -> ConfigMapHistoryStore:
        maps = HistoryMaps(Client(self.cluster, self.clock))
        return ConfigMapHistoryStore(maps, self.clock, writer=writer, flag_window_ns=300 * NANOSECONDS)

    def latest(self, *replicas: int) -> HistorySnapshot:
        """What a sync leaves now; the last recommendation is of now."""
        now_ns = self.clock.now_ns()
        ages = reversed(range(len(replicas)))
        history = History(
            recommendations=tuple(
                Recommendation(count, now_ns - age * 60 * NANOSECONDS)
                for count, age in zip(replicas, ages, strict=True)
            )
        )
        return HistorySnapshot("uid", history, replicas[-1], now_ns)

    def entry(self, key: tuple[str, str]) -> dict[str, object] | None:
        """What is kept of an autoscaler."""
        text = self.cluster.config_maps.get(map_of(key), {}).get("data", {}).get(".".join(key))
        return None if text is None else json.loads(text)


@pytest.fixture
async def world() -> World:
    """Both archives have looked for `web` before there was anything."""
    made = World()
    for archive in (made.first, made.second):
        await archive.find(WEB, "uid")
    return made


async def test_what_is_handed_over_is_found_as_it_was(world: World) -> None:
    """Minutes later the other process finds the instants as they were: nothing counts as younger."""
    latest = world.latest(5, 1)
    world.first.keep(WEB, latest)
    await world.first.hand_over([WEB])
    world.first.drop(WEB)
    await world.clock.advance(30)
    world.second.expect_changes()
    found = await world.second.find(WEB, "uid")
    assert found is not None
    assert (found.history, found.replicas) == (latest.history, 1)


async def test_without_being_told_it_does_not_look_again(world: World) -> None:
    """A ConfigMap is read once, unless another process may have written."""
    world.first.keep(WEB, world.latest(5))
    await world.first.hand_over([WEB])
    assert await world.second.find(WEB, "uid") is None


async def _late_read(world: World) -> tuple[ConfigMapHistoryStore, "asyncio.Task[object]"]:
    """An archive whose first read was answered before another process handed over, and its task; the answer is late."""
    archive = world.archive("cccc")
    world.cluster.answers_late = True
    reading: asyncio.Task[object] = asyncio.ensure_future(archive.find(OTHER, "uid"))
    await world.clock.advance(0)
    world.first.keep(WEB, world.latest(5))
    await world.first.hand_over([WEB])
    archive.expect_changes()
    return archive, reading


async def test_an_answer_from_before_a_hand_over_does_not_count(world: World) -> None:
    """What is asked for after it is read again, though a read is under way; the late answer replaces nothing."""
    archive, reading = await _late_read(world)
    finding = asyncio.ensure_future(archive.find(WEB, "uid"))
    await world.clock.advance(0)
    world.cluster.arrives.set()
    found = await finding
    await reading
    assert found is not None
    archive.keep(WEB, world.latest(3))
    await archive.hand_over([WEB])
    web = world.entry(WEB)
    assert web is not None
    assert (found.replicas, web["replicas"]) == (5, 3)


async def test_a_read_from_before_a_hand_over_is_repeated(world: World) -> None:
    """Nobody asked in between: the answer that came late is not taken for what is there now."""
    archive, reading = await _late_read(world)
    world.cluster.arrives.set()
    await reading
    found = await archive.find(WEB, "uid")
    assert found is not None
    assert found.replicas == 5


async def test_a_failure_from_before_a_hand_over_does_not_count(world: World) -> None:
    """What failed then is asked for at once."""
    world.cluster.interfere("GET", f"{CONFIG_MAPS}/{map_of(WEB)}", refusal(500, "InternalError", "no"))
    archive, reading = await _late_read(world)
    world.cluster.arrives.set()
    with pytest.raises(StatusError):
        await reading
    found = await archive.find(WEB, "uid")
    assert found is not None
    assert found.replicas == 5


async def test_what_was_dropped_is_not_written(world: World) -> None:
    """A part that was lost is another's: its changes are forgotten, and what is kept of it stays."""
    world.first.keep(WEB, world.latest(5))
    world.first.drop(WEB)
    await world.first.close()
    assert world.cluster.config_maps == {}


async def test_there_and_back(world: World) -> None:
    """What another process left is found when the autoscaler comes back, and not what was known before."""
    world.first.keep(WEB, world.latest(5))
    await world.first.hand_over([WEB])
    world.first.drop(WEB)
    world.second.expect_changes()
    await world.second.find(WEB, "uid")
    await world.clock.advance(60)
    world.second.keep(WEB, world.latest(7))
    await world.second.hand_over([WEB])
    world.second.drop(WEB)
    world.first.expect_changes()
    found = await world.first.find(WEB, "uid")
    assert found is not None
    assert found.replicas == 7


async def test_what_stays_goes_on(world: World) -> None:
    """Handing over one autoscaler says nothing about the others of the same process."""
    await world.first.find(OTHER, "uid")
    world.first.keep(WEB, world.latest(5))
    world.first.keep(OTHER, world.latest(3))
    await world.first.hand_over([WEB])
    web, other = world.entry(WEB), world.entry(OTHER)
    assert web is not None
    assert web["writer"] == "aaaa-handed-over"
    assert other is None or other["writer"] == "aaaa"


async def test_records_of_others_are_not_taken_for_relics(world: World) -> None:
    """After hours a process that never asked for an autoscaler looks again before it removes what is kept of it."""
    world.first.keep(WEB, world.latest(5))
    await world.first.hand_over([WEB])
    world.second.expect_changes()
    await world.second.find(OTHER, "uid")
    running = asyncio.ensure_future(world.second.run())
    for _ in range(150):
        await world.clock.advance(60)
        world.first.keep(WEB, world.latest(5))
        await world.first.hand_over([WEB])
    running.cancel()
    assert world.entry(WEB) is not None


async def _late_tick(world: World) -> "asyncio.Task[None]":
    """A tick of the first process that has sent what it knew, five replicas, which has yet to arrive; now it is one."""
    world.first.keep(WEB, world.latest(5))
    await world.first.hand_over([WEB])
    world.first.keep(WEB, world.latest(7))
    world.cluster.holds = True
    running = asyncio.ensure_future(world.first.run())
    await world.clock.advance(10)
    world.first.keep(WEB, world.latest(7, 1))
    return running


async def test_a_hand_over_waits_for_a_slow_tick(world: World) -> None:
    """What is written while a hand-over begins is followed by it, and does not come after it."""
    running = await _late_tick(world)
    handing_over = asyncio.ensure_future(world.first.hand_over([WEB]))
    await world.clock.advance(1)
    before = handing_over.done()
    world.cluster.arrives.set()
    await handing_over
    running.cancel()
    web = world.entry(WEB)
    assert web is not None
    assert (before, web["writer"], web["replicas"]) == (False, "aaaa-handed-over", 1)


async def test_a_tick_that_arrives_after_the_next_process_has_written(world: World) -> None:
    """Where a hand-over could not wait, what arrives too late does not replace what the next process has written."""
    running = await _late_tick(world)
    world.first.drop(WEB)
    world.second.expect_changes()
    await world.second.find(WEB, "uid")
    world.second.keep(WEB, world.latest(3))
    await world.second.hand_over([WEB])
    world.cluster.arrives.set()
    await world.clock.advance(1)
    running.cancel()
    web = world.entry(WEB)
    assert web is not None
    assert (web["writer"], web["replicas"]) == ("bbbb-handed-over", 3)


async def test_a_config_map_that_another_process_has_changed(world: World) -> None:
    """What both have written since is in it, whoever came first."""
    await world.first.find(OTHER, "uid")
    await world.second.find(OTHER, "uid")
    world.first.keep(WEB, world.latest(5))
    world.second.keep(OTHER, world.latest(3))
    await asyncio.gather(world.first.hand_over([WEB]), world.second.hand_over([OTHER]))
    world.first.keep(WEB, world.latest(6))
    await world.first.hand_over([WEB])
    found = [entry and entry["replicas"] for entry in map(world.entry, (WEB, OTHER))]
    assert found == [6, 3]


async def test_a_config_map_that_was_deleted_is_made_again(world: World) -> None:
    """What is written next makes it."""
    world.first.keep(WEB, world.latest(5))
    await world.first.hand_over([WEB])
    world.cluster.config_maps.clear()
    world.first.keep(WEB, world.latest(6))
    await world.first.hand_over([WEB])
    web = world.entry(WEB)
    assert web is not None
    assert web["replicas"] == 6


async def test_a_rescale_is_stored_at_once(world: World) -> None:
    """`store` returns when another process would find it."""
    await world.first.store(WEB, world.latest(5))
    web = world.entry(WEB)
    assert web is not None
    assert web["replicas"] == 5


async def test_rescales_of_a_moment_are_one_request(world: World) -> None:
    """Those that come while a request is on its way, or right after it, share the next one."""
    keys = [key for key in (("shop", f"n{number}") for number in range(1000)) if map_of(key) == map_of(WEB)]
    world.cluster.holds = True
    first = asyncio.ensure_future(world.first.store(keys[0], world.latest(5)))
    await world.clock.advance(0)
    others = [asyncio.ensure_future(world.first.store(key, world.latest(5))) for key in keys[1:]]
    await world.clock.advance(0.5)
    world.cluster.arrives.set()
    await asyncio.gather(first, *others)
    assert (world.cluster.changes, all(map(world.entry, keys))) == (2, True)


async def test_a_rescale_does_not_wait_for_long(world: World) -> None:
    """Where the API server does not answer, the rescale goes on after two seconds, and is stored later."""
    world.cluster.holds = True
    storing = asyncio.ensure_future(world.first.store(WEB, world.latest(5)))
    await world.clock.advance(1.9)
    before = storing.done()
    await world.clock.advance(0.1)
    after = storing.done()
    world.cluster.arrives.set()
    await world.clock.advance(0)
    assert (before, after, world.entry(WEB) is not None) == (False, True, True)


async def test_no_rescale_waits_while_histories_cannot_be_kept(world: World) -> None:
    """After a refusal the memory serves; a tick tries again, and from then on rescales are stored first."""
    refused = refusal(403, "Forbidden", "no")
    world.cluster.interfere("POST", CONFIG_MAPS, refused)
    await world.first.store(WEB, world.latest(5))
    sent = world.cluster.changes
    await world.first.store(WEB, world.latest(6))
    assert (sent, world.cluster.changes) == (1, 1)
    running = asyncio.ensure_future(world.first.run())
    await world.clock.advance(10)
    await world.first.store(WEB, world.latest(7))
    running.cancel()
    web = world.entry(WEB)
    assert web is not None
    assert web["replicas"] == 7


async def test_what_was_dropped_while_it_waited_is_not_stored(world: World) -> None:
    """A part that is lost while a rescale waits to be stored is another process's, whatever comes of the rescale."""
    await world.first.store(WEB, world.latest(5))
    storing = asyncio.ensure_future(world.first.store(WEB, world.latest(6)))
    await world.clock.advance(0)
    world.first.drop(WEB)
    await world.clock.advance(1)
    await storing
    web = world.entry(WEB)
    assert web is not None
    assert web["replicas"] == 5
