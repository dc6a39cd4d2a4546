"""Keeping a cache equal to the server: lists, watches, and everything that can go wrong in between."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Cache
from podscaler.kube.informers.reflector import Reflector, WatchSource
from podscaler.kube.transport.transport import Response
from podscaler.testing import VirtualClock
from podscaler.testing.transport import Feed, ScriptedTransport, TransportFailure, json_answer

PATH = "/api/v1/things"


class Meta(msgspec.Struct, rename="camel"):
    """Metadata of a test object."""

    name: str
    resource_version: str
    uid: str = "u"
    namespace: str = "ns"
    labels: dict[str, str] | None = None


class Thing(msgspec.Struct):
    """A test object."""

    metadata: Meta


class Fixed(random.Random):
    """No randomness: every delay is the shortest, every watch asks for 300 s."""

    def random(self) -> float:
        return 0.0

    def randrange(self, *_: Any) -> int:
        return 0


def _thing(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version), "namespace": "ns", "uid": "u"}}


def _list(version: int, *things: dict[str, Any], token: str = "") -> Any:
    return json_answer({"metadata": {"resourceVersion": str(version), "continue": token}, "items": list(things)})


def _event(kind: str, thing: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": kind, "object": thing})


def _status(code: int, reason: str, message: str = "m") -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


class World:
    """A reflector at work on a script."""

    def __init__(self, *, streams_lists: bool = False) -> None:
        self.clock = VirtualClock()
        self.transport = ScriptedTransport()
        self.cache: Cache[Thing] = Cache()
        source = WatchSource(PATH, "things", msgspec.json.Decoder(Thing).decode)
        client = Client(self.transport, self.clock, streams_lists=streams_lists)
        self.reflector = Reflector(client, source, cache=self.cache, clock=self.clock, rng=Fixed())
        self.task: asyncio.Task[None] | None = None

    async def start(self, *scripts: Any) -> None:
        self.transport.on("GET", PATH, *scripts)
        self.task = asyncio.ensure_future(self.reflector.run())
        await self.clock.advance(0)

    def held(self) -> list[str]:
        return [f"{thing.metadata.name}@{thing.metadata.resource_version}" for thing in self.cache]

    def asked(self) -> list[str]:
        return [
            target.removeprefix(PATH + "?").replace("&timeoutSeconds=300&watch=true", " WATCH")
            for target in self.transport.asked()
        ]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A world whose reflector ends with the test."""
    made = World()
    yield made
    if made.task is not None:
        made.task.cancel()
        await asyncio.gather(made.task, return_exceptions=True)


@pytest.fixture
async def streaming() -> AsyncIterator[World]:
    """A world whose reflector asks for lists as events."""
    made = World(streams_lists=True)
    yield made
    if made.task is not None:
        made.task.cancel()
        await asyncio.gather(made.task, return_exceptions=True)


STREAMED = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true WATCH"
LISTED = "limit=500&resourceVersion=0"


def _end(version: int) -> bytes:
    meta = {"resourceVersion": str(version), "annotations": {"k8s.io/initial-events-end": "true"}}
    return _event("BOOKMARK", {"metadata": meta})


async def test_a_list_as_events(streaming: World) -> None:
    """What is there comes as events, shows once it is complete, and the same watch goes on."""
    feed, second = Feed(), Feed()
    await streaming.start(feed, second)
    feed.send(
        _event("ADDED", _thing("a", 3)),
        _event("ADDED", _thing("b", 4)),
        _event("BOOKMARK", _thing("", 4)),
        _event("DELETED", _thing("a", 5)),
    )
    await streaming.clock.advance(0)
    before = (streaming.held(), streaming.cache.synced)
    feed.send(_end(7), _event("ADDED", _thing("c", 8)))
    feed.end()
    await streaming.clock.advance(0)
    assert (before, streaming.held(), streaming.cache.version) == (([], False), ["b@4", "c@8"], "8")
    assert streaming.asked() == [STREAMED, "allowWatchBookmarks=true&resourceVersion=8 WATCH"]


@pytest.mark.parametrize("code", [400, 422])
async def test_a_server_without_lists_as_events(streaming: World, code: int) -> None:
    """A refusal leads to pages at once, and is remembered."""
    refusal = json_answer(_status(code, "Invalid", "sendInitialEvents: Forbidden: is forbidden for watch"), code)
    gone = json_answer(_status(410, "Expired"), 410)
    await streaming.start(refusal, _list(7, _thing("a", 3)), gone, _list(9), Feed())
    await streaming.clock.advance(0)
    assert streaming.asked() == [
        STREAMED,
        LISTED,
        "allowWatchBookmarks=true&resourceVersion=7 WATCH",
        "limit=500",
        "allowWatchBookmarks=true&resourceVersion=9 WATCH",
    ]


async def test_lists_as_events_that_never_complete(streaming: World) -> None:
    """A server that ends them early twice is asked for pages; what had arrived counts for nothing."""
    feeds = [Feed(_event("ADDED", _thing("x", 3))) for _ in range(2)]
    for feed in feeds:
        feed.end()
    await streaming.start(*feeds, _list(7, _thing("a", 3)), Feed())
    await streaming.clock.advance(1)
    assert (streaming.held(), streaming.asked()[:3]) == (["a@3"], [STREAMED, STREAMED, LISTED])


async def test_a_list_as_events_that_stands_still(streaming: World) -> None:
    """A server that leaves out the end is asked for pages long before the watch would end."""
    feed = Feed(_event("ADDED", _thing("x", 3)))
    await streaming.start(feed, _list(7, _thing("a", 3)), Feed())
    await streaming.clock.advance(10)
    feed.send(_event("ADDED", _thing("y", 3)))
    await streaming.clock.advance(19)
    before = len(streaming.asked())
    await streaming.clock.advance(1)
    assert (before, streaming.held(), streaming.asked()[:2]) == (1, ["a@3"], [STREAMED, LISTED])


async def test_an_expired_version_is_streamed_anew(streaming: World) -> None:
    """After 410 the newest list comes as events too; what is gone since is dropped."""
    feed, second = Feed(_event("ADDED", _thing("a", 3)), _end(7)), Feed()
    await streaming.start(feed, second)
    feed.send(_event("ERROR", _status(410, "Expired", "too old resource version")))
    await streaming.clock.advance(0)
    second.send(_event("ADDED", _thing("b", 9)), _end(12))
    await streaming.clock.advance(0)
    assert (streaming.held(), streaming.asked()) == (["b@9"], [STREAMED, STREAMED])


async def test_a_cut_within_a_list_as_events(streaming: World) -> None:
    """A connection that breaks in the middle of the list begins it anew after a delay."""
    feed, second = Feed(_event("ADDED", _thing("a", 3))), Feed()
    await streaming.start(feed, second)
    feed.cut()
    await streaming.clock.advance(0.5)
    second.send(_event("ADDED", _thing("b", 4)), _end(7))
    await streaming.clock.advance(0)
    assert (streaming.held(), streaming.asked()) == (["b@4"], [STREAMED, STREAMED])


async def test_list_then_watch(world: World) -> None:
    """The first list may be the server's cached one; the watch goes on where the list ended."""
    feed = Feed()
    await world.start(_list(7, _thing("a", 3), _thing("b", 4)), feed)
    feed.send(_event("ADDED", _thing("c", 8)), _event("MODIFIED", _thing("a", 9)), _event("DELETED", _thing("b", 10)))
    await world.clock.advance(0)
    assert (world.held(), world.cache.version) == (["a@9", "c@8"], "10")
    assert world.asked() == [
        "limit=500&resourceVersion=0",
        "allowWatchBookmarks=true&resourceVersion=7 WATCH",
    ]


async def test_pages(world: World) -> None:
    """A list in pages is complete before the cache shows any of it."""
    await world.start(_list(7, _thing("a", 3), token="t/1"), _list(7, _thing("b", 4)), Feed())
    assert (world.held(), world.asked()[:2]) == (
        ["a@3", "b@4"],
        ["limit=500&resourceVersion=0", "continue=t%2F1&limit=500"],
    )


async def test_a_watch_that_ends_is_resumed(world: World) -> None:
    """A watch goes on at the version of the last event or bookmark."""
    feed, second = Feed(), Feed()
    await world.start(_list(7), feed, second)
    feed.send(_event("ADDED", _thing("a", 8)), _event("BOOKMARK", _thing("", 20)))
    feed.end()
    await world.clock.advance(0)
    second.send(_event("MODIFIED", _thing("a", 21)))
    await world.clock.advance(0)
    assert (world.held(), world.asked()[-1]) == (["a@21"], "allowWatchBookmarks=true&resourceVersion=20 WATCH")


async def test_a_cut_watch_is_resumed_after_a_delay(world: World) -> None:
    """A broken connection is no reason to list again."""
    feed = Feed()
    await world.start(_list(7), feed, Feed())
    feed.cut()
    await world.clock.advance(0.49)
    before = len(world.asked())
    await world.clock.advance(0.01)
    assert (before, world.asked()[2:]) == (2, ["allowWatchBookmarks=true&resourceVersion=7 WATCH"])


async def test_a_busy_server_says_when_to_watch_again(world: World) -> None:
    """A watch that is refused with Retry-After is resumed no sooner, and nothing is listed anew."""
    busy = Response(429, {"retry-after": "7"}, b"")
    await world.start(_list(7), busy, Feed())
    await world.clock.advance(6.9)
    before = len(world.asked())
    await world.clock.advance(0.1)
    assert (before, world.asked()[2:]) == (2, ["allowWatchBookmarks=true&resourceVersion=7 WATCH"])


@pytest.mark.parametrize("how", ["event", "answer"])
async def test_expired_versions_are_listed_anew(world: World, how: str) -> None:
    """After 410, as an answer or as an event, the newest list is asked for at once, and what is gone is dropped."""
    gone = _status(410, "Expired", "too old resource version: 7 (9)")
    refusal: Any = Feed(_event("ERROR", gone)) if how == "event" else json_answer(gone, 410)
    await world.start(_list(7, _thing("a", 3), _thing("b", 4)), refusal, _list(12, _thing("b", 4)), Feed())
    await world.clock.advance(0)
    assert (world.held(), world.asked()[2:]) == (
        ["b@4"],
        ["limit=500", "allowWatchBookmarks=true&resourceVersion=12 WATCH"],
    )


async def test_delays_grow_while_the_server_is_away(world: World) -> None:
    """Failures in a row are tried again after 0.5, 1, 2, 4, 5, 5 s; the cache keeps what it has; then it heals."""
    feed = Feed()
    await world.start(_list(7, _thing("a", 3)), feed, *[TransportFailure("connection refused")] * 5, Feed())
    feed.cut()
    times, start = [], len(world.transport.requests)
    for tenths in range(200):
        if len(world.transport.requests) > start:
            start = len(world.transport.requests)
            times.append(tenths / 10)
        await world.clock.advance(0.1)
    assert (times, world.held(), world.reflector.last_error) == (
        [0.5, 1.5, 3.5, 7.5, 12.5, 17.5],
        ["a@3"],
        'Get "https://10.0.0.1:443/api/v1/things?allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300'
        '&watch=true": connection refused',
    )


@pytest.mark.parametrize(
    ("code", "reason", "known"), [(404, "NotFound", (False, False)), (403, "Forbidden", (True, True))]
)
async def test_an_outage_does_not_hide_what_the_server_said(
    world: World, code: int, reason: str, known: tuple[bool, bool]
) -> None:
    """A resource that is not served, or is forbidden, stays so while nothing answers; a list that works ends it."""
    refused = json_answer(_status(code, reason), code)
    outage = [TransportFailure("refused"), json_answer(_status(503, "ServiceUnavailable"), 503)]
    await world.start(refused, *outage, _list(5), Feed())
    states = []
    for delay_s in (0.5, 1, 30):
        states.append((world.reflector.is_served, world.reflector.is_forbidden))
        await world.clock.advance(delay_s)
    assert (states, len(world.asked())) == ([known] * 3, 5)
    assert (world.reflector.is_served, world.reflector.is_forbidden) == (True, False)


async def test_the_first_list_is_tried_until_it_succeeds(world: World) -> None:
    """A server that is not there yet, or forbids, delays the start and nothing else."""
    await world.start(
        TransportFailure("connection refused"),
        json_answer(_status(403, "Forbidden"), 403),
        _list(7, _thing("a", 3)),
        Feed(),
    )
    assert not world.cache.synced
    await world.clock.advance(2)
    assert (world.cache.synced, world.held()) == (True, ["a@3"])


async def test_a_watch_that_is_refused_lists_again(world: World) -> None:
    """Another refusal of a watch leads to a list at least as new as what is known."""
    await world.start(_list(7), json_answer(_status(400, "BadRequest"), 400), _list(8), Feed())
    await world.clock.advance(1)
    assert world.asked()[2] == "limit=500&resourceVersion=7"


async def test_a_watch_that_ends_at_once_is_a_failure(world: World) -> None:
    """Something that closes every watch immediately is not asked in a tight loop."""
    endings = [Feed() for _ in range(3)]
    for feed in endings:
        feed.end()
    await world.start(_list(7), *endings, Feed())
    await world.clock.advance(0.4)
    assert len(world.transport.requests) == 2


async def test_an_unreadable_object_hides_no_other(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be decoded is left out with an error in the log, in lists and in watches."""
    feed = Feed()
    await world.start(_list(7, {"metadata": {"name": 5}}, _thing("a", 3)), feed)
    feed.send(_event("ADDED", {"metadata": {"name": 5, "resourceVersion": "9"}}), _event("ADDED", _thing("b", 10)))
    await world.clock.advance(0)
    assert (world.held(), caplog.text.count("is skipped")) == (["a@3", "b@10"], 2)


async def test_nonsense_in_a_stream_is_survived(world: World) -> None:
    """A line that is no event ends that watch; the next one goes on."""
    feed, second = Feed(), Feed()
    await world.start(_list(7), feed, second)
    feed.send(b"<html>")
    await world.clock.advance(1)
    second.send(_event("ADDED", _thing("a", 8)))
    await world.clock.advance(0)
    assert world.held() == ["a@8"]
