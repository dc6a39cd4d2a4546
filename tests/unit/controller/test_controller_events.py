"""Writing events: what is sent, what is tried again, what is dropped."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from podscaler.controller.leaderelection import fence
from podscaler.controller.leaderelection.fence import FencedTransport
from podscaler.controller.leaderelection.write_lease import WriteLease
from podscaler.controller.leaderelection.write_lease import now as tenure_now
from podscaler.controller.reconcile.event_recorder import BUFFER_EVENTS, AutoscalerEventRecorder, Subject
from podscaler.kube.client.client import Client
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, TransportFailure, json_answer

WEB = Subject("shop", "web", "u1", "7")
PATH = "/api/v1/namespaces/shop/events"
REFUSED = TransportFailure("dial tcp 10.0.0.1:443: connect: connection refused")


class Half(random.Random):
    """Randomness whose fractions are one half."""

    def random(self) -> float:
        return 0.5


class World:
    """A recorder at work on a script."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.transport = ScriptedTransport()
        self.recorder = AutoscalerEventRecorder(Client(self.transport, self.clock), self.clock, Half())
        self.transport.on("POST", PATH, json_answer({}, 201))

    def record(self, message: str = "m") -> None:
        self.recorder.record(WEB, "Normal", "R", message)

    def sent(self) -> list[tuple[str, str, Any]]:
        return [
            (request.method, request.path.removeprefix(PATH), msgspec.json.decode(request.body or b"null"))
            for request in self.transport.requests
        ]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A world whose recorder runs until the test ends."""
    made = World()
    task = asyncio.ensure_future(made.recorder.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_new_event_is_created(world: World) -> None:
    """The whole object, as upstream writes it."""
    world.record()
    await world.clock.advance(0)
    assert world.sent() == [
        (
            "POST",
            "",
            {
                "kind": "Event",
                "apiVersion": "v1",
                "metadata": {"name": world.sent()[0][2]["metadata"]["name"], "namespace": "shop"},
                "involvedObject": {
                    "kind": "HorizontalPodAutoscaler",
                    "namespace": "shop",
                    "name": "web",
                    "uid": "u1",
                    "apiVersion": "autoscaling/v2",
                    "resourceVersion": "7",
                },
                "reason": "R",
                "message": "m",
                "source": {"component": "horizontal-pod-autoscaler"},
                "firstTimestamp": "2026-01-01T00:00:00Z",
                "lastTimestamp": "2026-01-01T00:00:00Z",
                "count": 1,
                "type": "Normal",
                "eventTime": None,
                "reportingComponent": "horizontal-pod-autoscaler",
                "reportingInstance": "",
            },
        )
    ]


async def test_a_repeat_is_a_patch(world: World) -> None:
    """A repeat patches count, last time and message of the first; one that is gone is created with the count so far."""
    world.record()
    await world.clock.advance(60)
    name = world.sent()[0][2]["metadata"]["name"]
    world.transport.on("PATCH", f"{PATH}/{name}", json_answer({}))
    world.record()
    await world.clock.advance(60)
    world.transport.on("PATCH", f"{PATH}/{name}")
    world.record()
    await world.clock.advance(0)
    *_, patch, missed, created = world.sent()
    assert patch == (
        "PATCH",
        f"/{name}",
        {"count": 2, "lastTimestamp": "2026-01-01T00:01:00Z", "message": "m"},
    )
    assert (missed[0], created[0], created[2]["count"], created[2]["firstTimestamp"]) == (
        "PATCH",
        "POST",
        3,
        "2026-01-01T00:00:00Z",
    )


async def test_a_rejected_event_is_dropped(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """What the server refuses is logged and not sent again; the next event goes out."""
    forbidden = {"kind": "Status", "status": "Failure", "message": "no", "reason": "Forbidden", "code": 403}
    world.transport.on("POST", PATH, json_answer(forbidden, 403), json_answer({}, 201))
    world.record("a")
    world.record("b")
    await world.clock.advance(0)
    assert ([body["message"] for _, _, body in world.sent()], "rejected" in caplog.text) == (["a", "b"], True)


async def test_an_unreachable_server_is_tried_again(world: World) -> None:
    """Transport errors: the first wait is a random part of 10 s, the others 10 s, twelve tries in all."""
    world.transport.on("POST", PATH, REFUSED)
    world.record()
    times: list[float] = []
    for tenths in range(1300):
        await world.clock.advance(0)
        if len(world.transport.requests) > len(times):
            times.append(tenths / 10)
        await world.clock.advance(0.1)
    assert times == [0.0, 5.0, *(5.0 + 10 * number for number in range(1, 11))]


async def test_events_after_an_outage_arrive_in_order(world: World) -> None:
    """Events wait while the server is away and are written in order when it is back."""
    world.transport.on("POST", PATH, REFUSED, json_answer({}, 201))
    for message in "abc":
        world.record(message)
    await world.clock.advance(5)
    assert [body["message"] for _, _, body in world.sent()] == ["a", "a", "b", "c"]


async def test_a_full_buffer_drops_new_events() -> None:
    """When a thousand events wait, new ones are dropped and counted; recording never waits."""
    world = World()
    for number in range(BUFFER_EVENTS + 3):
        world.record(str(number))
    assert world.recorder.dropped == 3


async def test_names_differ_within_an_instant(world: World) -> None:
    """Two events of one object at the same time have different names."""
    world.record("a")
    world.record("b")
    await world.clock.advance(0)
    names = [body["metadata"]["name"] for _, _, body in world.sent()]
    assert len(set(names)) == 2


async def test_another_version_of_the_autoscaler_is_the_same_autoscaler(world: World) -> None:
    """Its resourceVersion is no part of an event's identity: the second event raises the count of the first."""
    world.record()
    world.recorder.record(Subject("shop", "web", "u1", "8"), "Normal", "R", "m")
    await world.clock.advance(0)
    assert [(method, body.get("count")) for method, _, body in world.sent()][:2] == [("POST", 1), ("PATCH", 2)]


async def test_an_error_that_is_a_bug_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that fails in an unexpected way is over: `flush` returns, and the next run goes on with the rest."""
    world = World()

    def correlate(_: object) -> None:
        raise KeyError("bug")

    world.record("a")
    world.record("b")
    with monkeypatch.context() as patched:
        patched.setattr(world.recorder._correlator, "correlate", correlate)
        with pytest.raises(KeyError):
            await world.recorder.run()
    running = asyncio.ensure_future(world.recorder.run())
    flushing = asyncio.ensure_future(world.recorder.flush())
    await world.clock.advance(1)
    is_flushed = flushing.done()
    await asyncio.gather(_cancelled(running), _cancelled(flushing))
    assert (is_flushed, [body["message"] for _, _, body in world.sent()]) == (True, ["b"])


async def _cancelled(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Fenced(World):
    """A recorder behind a fence, in a process that holds two leases."""

    def __init__(self) -> None:
        super().__init__()
        self.tenures = [WriteLease(self.clock), WriteLease(self.clock)]
        for write_lease in self.tenures:
            write_lease.renew(tenure_now(self.clock), 10)
        fenced = FencedTransport(self.transport, lambda: min(self.tenures, key=WriteLease.remaining_s))
        self.recorder = AutoscalerEventRecorder(Client(fenced, self.clock), self.clock, Half())
        self.transport.on("POST", "/api/v1/namespaces/other/events", json_answer({}, 201))

    async def record_by(self, write_lease: WriteLease, namespace: str) -> None:
        """A sync by that tenure records an event."""

        async def sync() -> None:
            fence.enter(write_lease)
            self.recorder.record(Subject(namespace, "web", "u1", "7"), "Normal", "R", namespace)

        await asyncio.ensure_future(sync())

    def messages(self) -> list[str]:
        return [body["message"] for _, _, body in self.sent()]


async def test_a_hand_over_keeps_events_of_other_shards() -> None:
    """While the lease of one shard is released, the events of the others are written by the leases of those."""
    world = Fenced()
    for write_lease, namespace in zip(world.tenures, ("shop", "other"), strict=True):
        await world.record_by(write_lease, namespace)
    world.tenures[0].end()
    running = asyncio.ensure_future(world.recorder.run())
    await world.clock.advance(0)
    await _cancelled(running)
    assert world.messages() == ["other"]


async def test_a_flush_of_one_shard_waits_for_nothing_else() -> None:
    """What is recorded about other shards, and what comes later, does not hold up a hand-over."""
    world = Fenced()
    await world.record_by(world.tenures[0], "shop")
    await world.record_by(world.tenures[1], "other")
    world.transport.on("POST", "/api/v1/namespaces/other/events", REFUSED)
    running = asyncio.ensure_future(world.recorder.run())
    flushing = asyncio.ensure_future(world.recorder.flush(lambda key: key[0] == "shop"))
    await world.clock.advance(0)
    is_flushed = flushing.done()
    await asyncio.gather(_cancelled(running), _cancelled(flushing))
    assert (is_flushed, world.messages()[0]) == (True, "shop")


async def test_events_of_a_lost_lease(caplog: pytest.LogCaptureFixture) -> None:
    """However many wait when a lease is lost, none is written, and the log has no line for each."""
    world = Fenced()
    caplog.set_level("INFO")
    for number in range(40):
        await world.record_by(world.tenures[0], f"shop-{number}")
    world.tenures[0].end()
    running = asyncio.ensure_future(world.recorder.run())
    flushing = asyncio.ensure_future(world.recorder.flush())
    await world.clock.advance(1)
    is_flushed = flushing.done()
    await asyncio.gather(_cancelled(running), _cancelled(flushing))
    assert (is_flushed, world.messages(), caplog.messages) == (True, [], [])
