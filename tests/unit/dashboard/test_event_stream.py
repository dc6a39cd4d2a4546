"""Server-sent events: what a viewer gets, where a stream goes on after a reconnection, and viewers that do not read."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from dashboard_world import DashboardWorld, EventReader
from observed_world import ObservedWorld
from podscaler.base.clock import SystemClock
from podscaler.dashboard import event_stream, sessions
from podscaler.dashboard.event_stream import EventStream, Position, parse_position
from podscaler.dashboard.sessions import STREAMS_MAX, Session, Sessions
from podscaler.dashboard.viewers import LocalViewer
from podscaler.testing.autoscaling import spec
from podscaler.testing.cluster import HPAS
from podscaler.testing.transport import TransportFailure


async def _until(world: DashboardWorld, events: EventReader, name: str) -> Any:
    """The data of the next event of that name, while time advances."""
    moving = asyncio.ensure_future(_move(world))
    try:
        while True:
            found, data = await events.next()
            if found == name:
                return data
    finally:
        moving.cancel()


async def _move(world: DashboardWorld) -> None:
    while True:
        await world.cluster.advance(0.5)
        await asyncio.sleep(0.001)


async def test_rows_first() -> None:
    """A stream begins with all rows."""
    async with DashboardWorld.open() as world, world.viewer.events() as events:
        rows = await _until(world, events, "rows")
    assert [row["name"] for row in rows] == ["web"]


async def test_changes() -> None:
    """A change of an autoscaler is sent, and that it is gone."""
    async with DashboardWorld.open() as world, world.viewer.events() as events:
        await _until(world, events, "rows")
        world.cluster.cluster.put_autoscaler("web", spec(maximum=20))
        changed = await _until(world, events, "rows")
        world.cluster.cluster.delete(HPAS, "web")
        gone = await _until(world, events, "gone")
    assert (changed[0]["max"], gone) == (20, {"namespace": "shop", "name": "web"})


async def test_the_time_line() -> None:
    """The points and marks of the shown autoscaler come as they are decided, each once."""
    async with DashboardWorld.open() as world, world.viewer.events("?namespace=shop&name=web") as events:
        first = await _until(world, events, "timeline")
        second = await _until(world, events, "timeline")
    assert (first["name"], second["timeline"]["at"][0] - first["timeline"]["at"][-1]) == ("web", 15_000)
    assert [mark["kind"] for mark in second["decisions"]] == ["same"]


async def test_a_reconnection_goes_on() -> None:
    """With Last-Event-ID only what changed since is sent."""
    async with DashboardWorld.open() as world:
        world.cluster.cluster.put_autoscaler("other", spec("other"))
        await world.cluster.advance(1)
        async with world.viewer.events() as events:
            await _until(world, events, "rows")
            last = events.last_id
        world.cluster.cluster.put_autoscaler("other", spec("other", maximum=7))
        await world.cluster.advance(0)
        async with world.viewer.events(**{"Last-Event-ID": last}) as events:
            rows = await _until(world, events, "rows")
    assert [(row["name"], row["max"]) for row in rows] == [("other", 7)]


async def test_from_the_list_on() -> None:
    """A stream after the list's position repeats no row of it."""
    async with DashboardWorld.open(sync_period_ns=3600 * 10**9) as world:
        position = (await world.viewer.get("/api/autoscalers"))[1]["eventId"]
        async with world.viewer.events(f"?after={position}") as events:
            world.cluster.cluster.put_autoscaler("other", spec("other"))
            rows = await _until(world, events, "rows")
    assert [row["name"] for row in rows] == ["other"]


@pytest.mark.parametrize("text", ["", "x", "other.1.2", "boot.1", "boot.-1.2", "boot.a.b", "boot.1.2.3"])
def test_positions_of_others(text: str) -> None:
    """The id of another process, or anything else, is no position."""
    assert parse_position(text, "boot") is None
    assert parse_position("boot.1.2", "boot") == Position(1, 2)


async def test_notices_of_the_connection() -> None:
    """A viewer is told that the API server is lost, and that it is back."""
    async with DashboardWorld.open() as world, world.viewer.events() as events:
        world.cluster.cluster.fail(TransportFailure("connection refused"))
        lost = await _until(world, events, "notice")
        world.cluster.cluster.recover()
        found = await _until(world, events, "notice")
    assert (lost["level"], "does not respond" in lost["text"]) == ("error", True)
    assert found == {"level": "info", "text": "the API server responds again"}


async def test_comments_keep_the_connection() -> None:
    """Without changes a comment is sent every 15 s."""
    async with DashboardWorld.open(sync_period_ns=3600 * 10**9) as world, world.viewer.events() as events:
        assert await _until(world, events, "comment") == "stream"
        begun_s = world.cluster.clock.monotonic_s()
        assert await _until(world, events, "comment") == "keep-alive"
    assert world.cluster.clock.monotonic_s() - begun_s >= 14


async def test_a_session_that_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream ends with a notice."""
    monkeypatch.setattr(sessions, "SESSION_IDLE_S", 30.0)
    async with DashboardWorld.open(sync_period_ns=3600 * 10**9) as world, world.viewer.events() as events:
        await _until(world, events, "rows")
        await world.cluster.advance(30)
        assert (await _until(world, events, "notice"))["text"] == "the session has expired: log in again"
        with pytest.raises(EOFError):
            await _until(world, events, "rows")


async def test_streams_of_a_session_are_bounded() -> None:
    """A session has at most so many streams."""
    async with DashboardWorld.open() as world:
        opened = [world.viewer.events() for _ in range(STREAMS_MAX)]
        for each in opened:
            await each.__aenter__()
        assert (await world.viewer.get("/api/stream"))[0] == 429
        for each in opened:
            await each.__aexit__(None, None, None)


class _StalledResponse(web.StreamResponse):
    """A response whose client reads nothing after the first event."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[bytes] = []
        self.written = asyncio.Event()

    async def write(self, data: Any) -> None:
        if self.texts:
            await asyncio.Event().wait()
        self.texts.append(bytes(data))
        self.written.set()


async def test_a_viewer_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is disconnected, and its next stream begins with a notice."""
    monkeypatch.setattr(event_stream, "STALLED_S", 0.01)
    monkeypatch.setattr(event_stream, "ROUND_S", 0.0)
    world = ObservedWorld()
    world.add_web()
    await world.start()
    session = Session(LocalViewer(), 0.0)
    clock = SystemClock()
    session.last_used_s = clock.monotonic_s()
    stalled = _StalledResponse()
    stream = EventStream(world.live, Sessions(clock), session, clock, boot_id="b", detail_key=None)
    running = asyncio.ensure_future(stream.run(stalled, None))
    while not running.done():
        world.live.changes.touch(("shop", "web"))
        await asyncio.sleep(0.001)
    was_slow = session.was_slow
    again = _StalledResponse()
    other = asyncio.ensure_future(
        EventStream(world.live, Sessions(clock), session, clock, boot_id="b", detail_key=None).run(again, None)
    )
    async with asyncio.timeout(10):
        await again.written.wait()
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    await world.close()
    first = again.texts[0].decode().splitlines()[2:]
    assert (was_slow, session.stream_count, first[1]) == (True, 0, "event: notice")
    assert "too slow" in json.loads(first[2].removeprefix("data: "))["text"]
