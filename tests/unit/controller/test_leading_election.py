"""Leader election in virtual time: who writes when, and what the Lease says."""

from collections.abc import AsyncIterator

import pytest

from election_world import ElectionWorld
from podscaler.base.errors import StatusError
from podscaler.controller.leaderelection.election import Timing
from podscaler.kube.transport.transport import Request, Response

LEASE = "podscaler-controller"


@pytest.fixture
async def world() -> AsyncIterator[ElectionWorld]:
    """A world with upstream's durations."""
    made = ElectionWorld()
    yield made
    await made.close()


async def test_the_first_leads(world: ElectionWorld) -> None:
    """The Lease as client-go writes it: holder, whole seconds, microseconds, no transition; and an event."""
    world.start("a")
    await world.advance(1)
    spec = world.server.leases[LEASE]["spec"]
    assert spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    assert (world.writers(), world.server.events) == ({"a"}, ["a became leader"])


async def test_a_renewal(world: ElectionWorld) -> None:
    """Every retry period one PUT and nothing else; when it was acquired stays."""
    world.start("a")
    await world.advance(1)
    world.server.requests.clear()
    await world.advance(10)
    spec = world.server.leases[LEASE]["spec"]
    assert world.server.requests == [("PUT", LEASE)] * 5
    assert (spec["acquireTime"][17:19], spec["renewTime"][17:19], spec["leaseTransitions"]) == ("00", "10", 0)


async def test_others_stand_by(world: ElectionWorld) -> None:
    """Nobody else writes while the leader renews, whatever their clocks say."""
    world.start("a")
    await world.advance(1)
    for name, skew_s in (("b", 3600.0), ("c", -3600.0), ("d", 0.0)):
        world.start(name, skew_s=skew_s)
    await world.advance(120)
    assert world.writers() == {"a"}


async def test_a_release_is_noticed_at_once(world: ElectionWorld) -> None:
    """The next one writes within a second of the signal, and the transition is counted."""
    first = world.start("a")
    world.start("b")
    await world.advance(30)
    first.share.stop()
    await world.advance(2)
    [(_, _, next_s, _)] = world.changes()["n0", "web"]
    assert (next_s - 30 <= 1.0, first.task.done(), first.told) == (True, True, ["take up", "lay down"])
    assert world.server.leases[LEASE]["spec"]["leaseTransitions"] == 1
    assert world.server.events == ["a became leader", "a stopped leading", "b became leader"]


async def test_a_release_says_nobody(world: ElectionWorld) -> None:
    """A lease that is given back has no holder and a duration of one second, as client-go writes it."""
    process = world.start("a")
    await world.advance(5)
    process.share.stop()
    await world.advance(1)
    spec = world.server.leases[LEASE]["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)


async def test_a_release_after_a_late_renewal(world: ElectionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewal that was cancelled reaches the server between the release's read and its write: it is tried again."""
    process = world.start("a")
    await world.advance(5)
    answer = world.server.answer

    def answer_and_renew(request: Request) -> Response:
        response = answer(request)
        if request.method == "GET":
            monkeypatch.setattr(world.server, "answer", answer)
            world.server.edit(LEASE, renewTime="2026-01-01T00:00:05.500000Z")
        return response

    monkeypatch.setattr(world.server, "answer", answer_and_renew)
    process.share.stop()
    await world.advance(1)
    assert world.server.leases[LEASE]["spec"]["holderIdentity"] == ""


async def test_a_death_is_noticed_by_expiry(world: ElectionWorld) -> None:
    """After a kill another writes once the lease has stood still for its duration: not before, and soon after."""
    first = world.start("a")
    world.start("b")
    await world.advance(30.5)
    renewed_s = 30.0
    await first.kill()
    await world.advance(20)
    [(_, _, next_s, _)] = world.changes()["n0", "web"]
    assert renewed_s + 15 <= next_s <= renewed_s + 15 + 1


async def test_a_leader_that_is_cut_off_stops_in_time(world: ElectionWorld) -> None:
    """It writes for the renew deadline after its last renewal, stands by then, and another leads after the duration."""
    first = world.start("a")
    world.start("b")
    await world.advance(30.5)
    first.line.is_cut = True
    await world.advance(60)
    [(last_s, _, next_s, _)] = world.changes()["n0", "web"]
    assert (last_s <= 40, next_s >= 45, first.told[-1]) == (True, True, "drop")
    first.line.is_cut = False
    world.processes["b"].share.stop()
    await world.advance(30)
    assert world.writers(after_s=100) == {"a"}


async def test_an_outage_for_all(world: ElectionWorld) -> None:
    """While the API server is away nobody writes after the renew deadline; then one leads again."""
    processes = [world.start(name) for name in "abc"]
    await world.advance(30.5)
    for process in processes:
        process.line.is_cut = True
    await world.advance(60)
    quiet_since_s = max(write.at_s for write in world.writes)
    for process in processes:
        process.line.is_cut = False
    await world.advance(20)
    assert quiet_since_s <= 40.5
    assert len(world.writers(after_s=91)) == 1


@pytest.mark.parametrize("pause_s", [9, 11, 14, 16, 60])
async def test_a_process_that_stood_still(world: ElectionWorld, pause_s: float) -> None:
    """Having moved again it writes only what its tenure still allows; never after another one has."""
    first = world.start("a")
    world.start("b")
    await world.advance(30.5)
    first.pause()
    await world.advance(pause_s)
    first.resume()
    await world.advance(60)
    changes = world.changes()["n0", "web"]
    assert [(writer, heir) for _, writer, _, heir in changes] == ([("a", "b")] if pause_s >= 16 else [])


async def test_a_process_that_wakes_is_refused_first(world: ElectionWorld) -> None:
    """A write that was due when the process was paused is refused, before anything is known of the lease."""
    first = world.start("a")
    await world.advance(30.5)
    first.pause()
    await world.advance(12)
    first.resume()
    await world.advance(0)
    assert first.told == ["take up", "refused"]


async def test_a_machine_that_was_suspended(world: ElectionWorld) -> None:
    """A wall clock that went on without the monotonic one ends the tenure too, until it is renewed."""
    first = world.start("a")
    await world.advance(30.5)
    first.clock.skew_s += 11
    write_lease = first.share.find(("n0", "web"))
    assert write_lease is not None
    assert write_lease.remaining_s() <= 0
    await world.advance(2)
    assert write_lease.remaining_s() > 7


async def test_somebody_else_took_the_lease(world: ElectionWorld) -> None:
    """A leader that finds another's name in the Lease stops at once."""
    first = world.start("a")
    await world.advance(30.5)
    world.server.edit(LEASE, holderIdentity="other")
    await world.advance(3)
    assert (first.told, world.writers(after_s=33)) == (["take up", "drop"], set())


async def test_a_lease_that_was_deleted(world: ElectionWorld) -> None:
    """The leader makes it anew; nobody else does before its time is over."""
    world.start("a")
    world.start("b")
    await world.advance(30.5)
    del world.server.leases[LEASE]
    await world.advance(60)
    assert (world.writers(), world.server.holder(LEASE)) == ({"a"}, "a")


async def test_what_others_put_into_the_lease_stays(world: ElectionWorld) -> None:
    """Labels, owners and fields that we do not know survive renewals."""
    world.start("a")
    await world.advance(1)
    world.server.leases[LEASE]["metadata"]["labels"]["team"] = "x"
    world.server.edit(LEASE, strategy="OldestEmulationVersion")
    await world.advance(10)
    lease = world.server.leases[LEASE]
    assert (lease["metadata"]["labels"]["team"], lease["spec"]["strategy"]) == ("x", "OldestEmulationVersion")


async def test_metrics_and_health(world: ElectionWorld) -> None:
    """One process shows 1, the other 0; the slow path counts; a lease that stands still too long is a fault."""
    first, second = world.start("a"), world.start("b")
    await world.advance(30.5)
    status = [
        each.registry.get_sample_value("leader_election_master_status", {"name": LEASE}) for each in (first, second)
    ]
    world.server.edit(LEASE)
    await world.advance(3)
    slow = first.registry.get_sample_value("leader_election_slowpath_total", {"name": LEASE})
    first.pause()
    healthy = first.share.fault()
    await world.advance(40)
    assert (status, slow, healthy) == ([1, 0], 1, "")
    assert first.share.fault() == f"failed election to renew leadership on lease {LEASE}"


async def test_short_durations() -> None:
    """Other durations than upstream's are kept to as well."""
    world = ElectionWorld(Timing(3, 2, 0.5))
    first = world.start("a")
    world.start("b")
    await world.advance(10.2)
    await first.kill()
    await world.advance(5)
    [(_, _, next_s, _)] = world.changes()["n0", "web"]
    assert 13 <= next_s <= 14
    await world.close()


class Bug(Exception):
    """What no code raises on purpose."""


def fail(*_: object) -> None:
    """Raise Bug."""
    raise Bug


async def fail_later(*_: object) -> None:
    """Raise Bug when awaited."""
    raise Bug


async def test_a_bug_in_taking_up(world: ElectionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that cannot begin does not go on renewing: it gives the lease back, says so, and ends with the error."""
    first = world.start("a")
    monkeypatch.setattr(first, "on_started_leading", fail)
    await world.advance(2)
    world.start("b")
    await world.advance(2)
    assert (first.task.done(), type(first.task.exception())) == (True, Bug)
    assert (first.told, world.writers(), world.server.holder(LEASE)) == (["drop"], {"b"}, "b")
    assert first.share.fault() == f"leading by the lease {LEASE} failed: Bug()"


async def test_a_bug_in_laying_down(world: ElectionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be handed over is dropped, and the lease released once nothing is written any more."""
    first = world.start("a")
    world.start("b")
    await world.advance(30)
    monkeypatch.setattr(first, "on_stopped_leading", fail_later)
    first.share.stop()
    await world.advance(2)
    assert (type(first.task.exception()), first.told, world.overlaps) == (Bug, ["take up", "drop"], [])
    assert world.server.holder(LEASE) == "b"


async def test_a_failure_of_the_world_in_laying_down(world: ElectionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the API server prevents is no bug: the part is dropped, the lease released, and the process goes on."""

    async def refuse(_: object) -> None:
        raise StatusError("no", code=500)

    first = world.start("a")
    world.start("b")
    await world.advance(30)
    monkeypatch.setattr(first, "on_stopped_leading", refuse)
    first.share.stop()
    await world.advance(2)
    assert (first.task.exception(), first.told, first.share.fault()) == (None, ["take up", "drop"], "")
    assert world.server.holder(LEASE) == "b"


async def test_a_bug_in_dropping(world: ElectionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where syncs may still run, the lease is not released: it expires, and the process ends with the error."""
    first = world.start("a")
    world.start("b")
    await world.advance(30)
    monkeypatch.setattr(first, "on_stopped_leading", fail_later)
    monkeypatch.setattr(first, "on_lost_lease", fail_later)
    first.share.stop()
    await world.advance(2)
    held_by = world.server.holder(LEASE)
    await world.advance(20)
    assert (type(first.task.exception()), held_by, world.server.holder(LEASE)) == (Bug, "a", "b")


async def test_a_bug_in_renewing(world: ElectionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewing that fails in another way than by the API server's answers ends leading as well."""
    first = world.start("a")
    await world.advance(10)
    monkeypatch.setattr(first.share._holder.elector, "_renew", fail_later)
    await world.advance(5)
    assert (type(first.task.exception()), world.server.holder(LEASE)) == (Bug, "")
