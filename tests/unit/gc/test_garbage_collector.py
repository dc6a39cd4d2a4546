"""The garbage collector on a real registry, in virtual time."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from podscaler.api.kinds import catalog
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.controlplane.controllers.framework.ownership import controller_reference
from podscaler.controlplane.controllers.gc.collector import GarbageCollector
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

MAPS = "configmaps"


class World:
    """ConfigMaps that own one another, and the collector."""

    def __init__(self, registry, clock):
        self.registry, self.clock = registry, clock

    async def pass_time(self, span_s=0.0):
        for _ in range(4):
            await self.clock.advance(span_s / 4 + 0.001, turns=60)

    async def make(self, name, *owners, **metadata):
        """A ConfigMap with these owners (objects, or references)."""
        references = [controller_reference(owner) if "metadata" in owner else owner for owner in owners]
        for reference in references[1:]:
            reference["controller"] = False
        metadata = {"name": name, "namespace": "default", "ownerReferences": references, **metadata}
        return await self.registry.create(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    async def delete(self, name, propagation=None):
        await self.registry.delete(MAPS, "default", name, propagation=propagation)

    async def change(self, name, function):
        await self.registry.mutate(MAPS, "default", name, function)

    def names(self):
        return [one["metadata"]["name"] for one in self.registry.list(MAPS)]

    def owners(self, name):
        metadata = self.registry.get(MAPS, "default", name)["metadata"]
        return [one["name"] for one in metadata.get("ownerReferences", [])]


@asynccontextmanager
async def running(coroutine):
    task = asyncio.create_task(coroutine)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def still_world(tmp_path):
    """Without a collector yet."""
    clock = VirtualClock()
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened:
        yield World(opened.registry, clock)


def collecting(world):
    collector = GarbageCollector(world.registry, catalog.RESOURCES)
    return running(ControlLoop(collector, world.registry, world.clock).run())


@pytest.fixture
async def world(still_world):
    async with collecting(still_world):
        yield still_world


def ghost(name="ghost", uid="00000000-0000-0000-0000-000000000000", **extra):
    """A reference to nobody."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, **extra}


async def test_dependents_follow_their_owner(world):
    """In the background, over generations."""
    top = await world.make("top")
    middle = await world.make("middle", top)
    await world.make("bottom", middle)
    await world.make("other")
    await world.delete("top")
    await world.pass_time()
    assert world.names() == ["other"]


async def test_what_happened_while_nobody_collected_is_made_up_for(still_world):
    """The owner was deleted while `up` was down."""
    top = await still_world.make("top")
    await still_world.make("dependent", top)
    await still_world.delete("top")
    async with collecting(still_world):
        await still_world.pass_time()
        assert still_world.names() == []


async def test_an_owner_that_never_was_is_gone(world):
    """No object with that uid: deleted like the dependent of a deleted owner."""
    await world.make("dependent", ghost())
    await world.pass_time()
    assert world.names() == []


async def test_an_owner_of_the_same_name_is_another_one(world):
    """The uid decides."""
    top = await world.make("top")
    await world.make("dependent", ghost("top"))
    await world.make("mine", top)
    await world.pass_time()
    assert world.names() == ["mine", "top"]


async def test_one_owner_left_is_enough(world):
    """Only the reference to the owner that is gone is taken off."""
    first, second = await world.make("first"), await world.make("second")
    await world.make("dependent", first, second)
    await world.delete("first")
    await world.pass_time()
    assert (world.names(), world.owners("dependent")) == (["dependent", "second"], ["second"])


async def test_an_owner_of_an_unknown_kind_deletes_nothing(world):
    """What cannot be looked up is not known to be gone."""
    await world.make("dependent", {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "u"})
    await world.pass_time(10)
    assert world.names() == ["dependent"]


async def test_orphaning(world):
    """Dependents stay and lose their reference, then the owner goes."""
    top = await world.make("top")
    await world.make("dependent", top)
    await world.delete("top", "Orphan")
    await world.pass_time()
    assert (world.names(), world.owners("dependent")) == (["dependent"], [])


async def test_foreground_the_owner_goes_last(world):
    """It waits for dependents that block it, here for one with a finalizer, over generations."""
    top = await world.make("top")
    middle = await world.make("middle", top)
    await world.make("bottom", middle, finalizers=["example.com/wait"])
    await world.delete("top", "Foreground")
    await world.pass_time(1)
    assert world.names() == ["bottom", "middle", "top"]
    await world.change("bottom", lambda one: one["metadata"].pop("finalizers"))
    await world.pass_time(1)
    assert world.names() == []


async def test_foreground_does_not_wait_for_those_that_do_not_block(world):
    """They follow in the background."""
    top = await world.make("top")
    reference = {**controller_reference(top), "blockOwnerDeletion": False}
    await world.make("dependent", reference, finalizers=["example.com/wait"])
    await world.delete("top", "Foreground")
    await world.pass_time(1)
    assert world.names() == ["dependent"]
    assert "deletionTimestamp" in world.registry.get(MAPS, "default", "dependent")["metadata"]


async def test_a_dependent_that_is_given_up_no_longer_blocks(world):
    """Its reference is taken off while the owner waits."""
    top = await world.make("top")
    await world.make("dependent", top, finalizers=["example.com/wait"])
    await world.delete("top", "Foreground")
    await world.pass_time(0.5)
    await world.change("dependent", lambda one: one["metadata"].pop("ownerReferences"))
    await world.pass_time(0.5)
    assert world.names() == ["dependent"]


async def test_a_circle_is_broken(world):
    """Two that own each other and are deleted in the foreground do not wait for ever."""
    first = await world.make("first")
    second = await world.make("second", first)
    reference = controller_reference(second)
    await world.change("first", lambda one: one["metadata"].update(ownerReferences=[reference]))
    await world.pass_time()
    await world.delete("first", "Foreground")
    await world.pass_time(20)
    assert world.names() == []


async def test_many_dependents(world):
    """Two hundred, each looked at once."""
    top = await world.make("top")
    for number in range(200):
        await world.make(f"dependent-{number}", top)
    await world.pass_time()
    await world.delete("top")
    await world.pass_time()
    assert world.names() == []
