"""The fence before every write, and the tenure that opens it."""

import asyncio

import pytest

from podscaler.controller.leaderelection import fence, write_lease
from podscaler.controller.leaderelection.fence import FencedTransport, LeadershipLost
from podscaler.controller.leaderelection.write_lease import UnlimitedWriteLease, WriteLease
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Request
from podscaler.testing import VirtualClock
from podscaler.testing.cluster import refusal
from podscaler.testing.transport import ScriptedTransport, json_answer

PATH = "/apis/apps/v1/namespaces/shop/deployments/web/scale"


class World:
    """A fenced client, and the weakest tenure of its process."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.write_lease: WriteLease | None = WriteLease(self.clock)
        self.server = ScriptedTransport()
        self.server.on("PUT", PATH, json_answer({}))
        self.server.on("GET", PATH, json_answer({}))
        self.client = Client(FencedTransport(self.server, lambda: self.write_lease), self.clock)

    def renew(self, span_s: float = 10) -> None:
        assert self.write_lease is not None
        self.write_lease.renew(write_lease.now(self.clock), span_s)


@pytest.fixture
def world() -> World:
    """One that has never held a lease."""
    return World()


async def test_reading_is_for_everybody(world: World) -> None:
    """A GET passes without any lease."""
    assert await world.client.get(PATH, subject="x") == b"{}"


@pytest.mark.parametrize("held", ["never", "ended", "expired", "none"])
async def test_nothing_is_sent_without_a_tenure(world: World, held: str) -> None:
    """A write without a lease, or after it, is refused here: the server hears nothing."""
    if held != "never":
        world.renew()
    if held == "ended" and world.write_lease is not None:
        world.write_lease.end()
    if held == "expired":
        await world.clock.advance(10)
    if held == "none":
        world.write_lease = None
    with pytest.raises(LeadershipLost):
        await world.client.put(PATH, b"{}", subject="x")
    assert world.server.requests == []


async def test_a_write_gets_no_more_time_than_is_left(world: World) -> None:
    """Its time-out is what remains of the tenure."""
    world.renew()
    await world.clock.advance(7)
    await world.client.put(PATH, b"{}", subject="x")
    assert [request.timeout_s for request in world.server.requests] == [3]


async def test_a_repeated_write_is_looked_at_again(world: World) -> None:
    """A server that asked to wait for longer than the tenure gets no second request."""
    busy = refusal(429, "TooManyRequests", "later")
    world.server.on("PUT", PATH, type(busy)(429, busy.headers | {"retry-after": "11"}, busy.body), json_answer({}))
    world.renew()
    writing = asyncio.ensure_future(world.client.put(PATH, b"{}", subject="x"))
    await world.clock.advance(13)
    with pytest.raises(LeadershipLost):
        await writing
    assert len(world.server.requests) == 1


async def test_a_sync_writes_by_its_own_tenure(world: World) -> None:
    """The tenure that a task has entered counts, not the weakest of the process."""
    world.renew()
    mine = WriteLease(world.clock)
    fence.enter(mine)
    with pytest.raises(LeadershipLost):
        await world.client.put(PATH, b"{}", subject="x")
    mine.renew(write_lease.now(world.clock), 5)
    await world.client.put(PATH, b"{}", subject="x")
    assert len(world.server.requests) == 1


async def test_streams_pass(world: World) -> None:
    """Watches only read."""
    world.server.on("GET", PATH, json_answer({}))
    async with FencedTransport(world.server, lambda: None).stream(Request("GET", PATH)) as stream:
        assert stream.status == 200


def test_a_tenure_within_another() -> None:
    """It is worth as much as the one that it depends on."""
    clock = VirtualClock()
    outer = WriteLease(clock)
    inner = WriteLease(clock, outer)
    inner.renew(write_lease.now(clock), 10)
    assert inner.remaining_s() == 0
    outer.renew(write_lease.now(clock), 4)
    assert (inner.remaining_s(), UnlimitedWriteLease().remaining_s()) == (4, float("inf"))
