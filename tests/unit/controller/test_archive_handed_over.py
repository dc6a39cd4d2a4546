"""Histories that one process hands over and another takes up, in the ConfigMaps between them."""

import asyncio
import json

import pytest

from podscaler.clock import NANOSECONDS
from podscaler.controller.archive import Latest
from podscaler.controller.config_map_archive import ConfigMapArchive
from podscaler.controller.history_maps import HistoryMaps, map_of
from podscaler.core.history import History, Recommendation
from podscaler.kube.client import Client
from podscaler.testing import VirtualClock
from podscaler.testing.cluster import FakeCluster

WEB = ("shop", "web")
OTHER = next(key for key in (("shop", f"n{number}") for number in range(1000)) if map_of(key) == map_of(WEB))
"""One whose history is in the same ConfigMap."""
MINUTE_NS = 60 * NANOSECONDS


class World:
    """A cluster, and archives of two processes."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.cluster = FakeCluster()
        self.first, self.second = self.archive("aaaa"), self.archive("bbbb")

    def archive(self, writer: str) -> ConfigMapArchive:
        maps = HistoryMaps(Client(self.cluster, self.clock))
        return ConfigMapArchive(maps, self.clock, writer=writer, flag_window_ns=300 * NANOSECONDS)

    def latest(self, *replicas: int) -> Latest:
        """What a sync leaves now; the last recommendation is of now."""
        now_ns = self.clock.now_ns()
        ages = reversed(range(len(replicas)))
        history = History(
            recommendations=tuple(
                Recommendation(count, now_ns - age * 60 * NANOSECONDS)
                for count, age in zip(replicas, ages, strict=True)
            )
        )
        return Latest("uid", history, replicas[-1], now_ns)

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
    world.first.keep(WEB, latest, is_urgent=False)
    await world.first.hand_over([WEB])
    world.first.drop(WEB)
    await world.clock.advance(30)
    world.second.expect_changes()
    found = await world.second.find(WEB, "uid")
    assert found is not None
    assert (found.history, found.replicas) == (latest.history, 1)


async def test_without_being_told_it_does_not_look_again(world: World) -> None:
    """A ConfigMap is read once, unless another process may have written."""
    world.first.keep(WEB, world.latest(5), is_urgent=False)
    await world.first.hand_over([WEB])
    assert await world.second.find(WEB, "uid") is None


async def test_what_was_dropped_is_not_written(world: World) -> None:
    """A part that was lost is another's: its changes are forgotten, and what is kept of it stays."""
    world.first.keep(WEB, world.latest(5), is_urgent=True)
    world.first.drop(WEB)
    await world.first.close()
    assert world.cluster.config_maps == {}


async def test_there_and_back(world: World) -> None:
    """What another process left is found when the autoscaler comes back, and not what was known before."""
    world.first.keep(WEB, world.latest(5), is_urgent=True)
    await world.first.hand_over([WEB])
    world.first.drop(WEB)
    world.second.expect_changes()
    await world.second.find(WEB, "uid")
    await world.clock.advance(60)
    world.second.keep(WEB, world.latest(7), is_urgent=True)
    await world.second.hand_over([WEB])
    world.second.drop(WEB)
    world.first.expect_changes()
    found = await world.first.find(WEB, "uid")
    assert found is not None
    assert found.replicas == 7


async def test_what_stays_goes_on(world: World) -> None:
    """Handing over one autoscaler says nothing about the others of the same process."""
    await world.first.find(OTHER, "uid")
    world.first.keep(WEB, world.latest(5), is_urgent=True)
    world.first.keep(OTHER, world.latest(3), is_urgent=True)
    await world.first.hand_over([WEB])
    web, other = world.entry(WEB), world.entry(OTHER)
    assert web is not None
    assert web["writer"] == "aaaa-handed-over"
    assert other is None or other["writer"] == "aaaa"


async def test_records_of_others_are_not_taken_for_relics(world: World) -> None:
    """After hours a process that never asked for an autoscaler looks again before it removes what is kept of it."""
    world.first.keep(WEB, world.latest(5), is_urgent=True)
    await world.first.hand_over([WEB])
    world.second.expect_changes()
    await world.second.find(OTHER, "uid")
    running = asyncio.ensure_future(world.second.run())
    for _ in range(150):
        await world.clock.advance(60)
        world.first.keep(WEB, world.latest(5), is_urgent=True)
        await world.first.hand_over([WEB])
    running.cancel()
    assert world.entry(WEB) is not None
