"""Shards in virtual time: who holds what, and that no autoscaler ever has two writers."""

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from election_world import ElectionWorld
from podscaler.kube.transport.transport import Request, Response

SHARDS = 6
LEASE = "podscaler-controller"


@pytest.fixture
async def world() -> AsyncIterator[ElectionWorld]:
    """A world of thirty namespaces with upstream's durations."""
    made = ElectionWorld(namespaces=30)
    yield made
    await made.close()


def shares(world: ElectionWorld) -> dict[str, int]:
    """How many shards each process holds."""
    holders = [world.server.holder(f"{LEASE}-shard-{shard}") for shard in range(SHARDS)]
    return {name: holders.count(name) for name in world.processes if name in holders}


def counted_twice(world: ElectionWorld) -> list[str]:
    """The autoscalers that two processes look after now."""
    looked_after = [key for process in world.processes.values() for key in process.keys()]  # noqa: SIM118 - no dict
    return sorted({key[0] for key in looked_after if looked_after.count(key) > 1})


async def test_one_member_has_everything(world: ElectionWorld) -> None:
    """A process that is alone holds all shards, and writes about everything."""
    process = world.start("a", shards=SHARDS)
    await world.advance(3)
    assert (shares(world), len(process.keys()), len({write.key for write in world.writes})) == ({"a": 6}, 30, 30)


async def test_members_divide_the_shards(world: ElectionWorld) -> None:
    """Each newcomer gets its share from the others, in seconds and without a gap worth the name."""
    for name in "abc":
        world.start(name, shards=SHARDS)
        await world.advance(10)
    assert shares(world) == {"a": 2, "b": 2, "c": 2}
    assert counted_twice(world) == []
    assert max(world.gaps_s(world.clock.monotonic_s()).values()) < 3


async def test_a_member_that_ends_hands_over(world: ElectionWorld) -> None:
    """What it held is at work elsewhere within a second, and its own Lease is removed."""
    for name in "abc":
        world.start(name, shards=SHARDS)
    await world.advance(30)
    world.processes["a"].share.stop()
    await world.advance(5)
    assert (shares(world), world.processes["a"].task.done()) == ({"b": 3, "c": 3}, True)
    assert max(next_s for pairs in world.changes().values() for _, _, next_s, _ in pairs) <= 31
    assert len([name for name in world.server.leases if "member" in name]) == 2
    assert "a" not in {lease["spec"]["holderIdentity"] for lease in world.server.leases.values()}


async def test_a_member_that_is_killed(world: ElectionWorld) -> None:
    """Its shards are free when their leases have stood still for their duration, and taken at once."""
    for name in "abc":
        world.start(name, shards=SHARDS)
    await world.advance(30.5)
    await world.processes["a"].kill()
    await world.advance(25)
    assert shares(world) == {"b": 3, "c": 3}
    starts = [next_s for pairs in world.changes().values() for last_s, _, next_s, _ in pairs if last_s > 20]
    assert 44 <= min(starts) <= max(starts) <= 30.5 + 15 + 1.5


@pytest.mark.parametrize(("delay_max_s", "killed_after_s"), [(0.05, 30.5), (0.1, 31.1)])
async def test_a_killed_member_whose_leases_expire_one_after_another(
    world: ElectionWorld, delay_max_s: float, killed_after_s: float
) -> None:
    """It counts as gone from the first one on: what the others hold stays where it is."""
    for name in "abc":
        line = world.start(name, shards=SHARDS).line
        line.request = delayed_puts(world, line.request, delay_max_s)  # type: ignore[method-assign]  # a slow line
        await world.advance(4)
    await world.advance(killed_after_s)
    killed_s, orphans = world.clock.monotonic_s(), set(world.processes["a"].keys())
    await world.processes["a"].kill()
    await world.advance(40)
    moves = {key: sum(at_s > killed_s for *_, at_s, _ in found) for key, found in world.changes().items()}
    assert shares(world) == {"b": 3, "c": 3}
    assert {moves[key] for key in orphans} == {1}
    assert {moves[key] for key in world.keys if key not in orphans} == {0}


def delayed_puts(
    world: ElectionWorld, request: Callable[[Request], Awaitable[Response]], delay_max_s: float
) -> Callable[[Request], Awaitable[Response]]:
    """Requests of which each PUT waits before, by its path, so that renewals of different Leases drift apart."""

    async def delayed(sent: Request) -> Response:
        if sent.method == "PUT":
            await world.clock.sleep(delay_max_s * (zlib.crc32(sent.path.encode()) % 10) / 10)
        return await request(sent)

    return delayed


async def test_all_but_one_are_killed(world: ElectionWorld) -> None:
    """Two that die within a lease's duration leave nothing alone for longer than that and a retry period."""
    for name in "abc":
        world.start(name, shards=SHARDS)
    await world.advance(30.5)
    await world.processes["a"].kill()
    await world.advance(7)
    await world.processes["b"].kill()
    await world.advance(30)
    assert shares(world) == {"c": 6}
    assert max(world.gaps_s(world.clock.monotonic_s()).values()) <= 15 + 2 + 2


async def test_a_member_that_stood_still(world: ElectionWorld) -> None:
    """It writes nothing when it moves again, comes back as a member, and gets its share again."""
    for name in "ab":
        world.start(name, shards=SHARDS)
    await world.advance(30.5)
    world.processes["a"].pause()
    await world.advance(30)
    at_s = world.clock.monotonic_s()
    world.processes["a"].resume()
    await world.advance(0.5)
    early = {write.process for write in world.writes if write.at_s >= at_s}
    await world.advance(20)
    assert ("a" in early, shares(world), counted_twice(world)) == (False, {"a": 3, "b": 3}, [])


async def test_a_member_that_is_cut_off(world: ElectionWorld) -> None:
    """It stops by itself before the others take over, and joins again."""
    for name in "ab":
        world.start(name, shards=SHARDS)
    await world.advance(30.5)
    world.processes["a"].line.is_cut = True
    await world.advance(40)
    late = {write.process for write in world.writes if write.at_s > 41}
    world.processes["a"].line.is_cut = False
    await world.advance(30)
    assert (late, shares(world)) == ({"b"}, {"a": 3, "b": 3})


async def test_more_members_than_shards(world: ElectionWorld) -> None:
    """Some hold nothing, and take over when others go."""
    for number in range(SHARDS + 2):
        world.start(f"m{number}", shards=SHARDS)
    await world.advance(20)
    first = shares(world)
    for name in list(first)[:2]:
        world.processes[name].share.stop()
    await world.advance(5)
    assert (sorted(first.values()), sorted(shares(world).values())) == ([1] * SHARDS, [1] * SHARDS)


@pytest.mark.parametrize(("before", "after"), [(SHARDS, 4), (0, SHARDS), (SHARDS, 0)])
async def test_another_number_of_shards(world: ElectionWorld, before: int, after: int) -> None:
    """Processes with another number wait until the last one with the old number has ended, and then begin."""
    for name in "ab":
        world.start(name, shards=before)
    await world.advance(20)
    for name in "cd":
        world.start(name, shards=after)
    await world.advance(20)
    while_waiting = world.writers(after_s=20)
    world.processes["a"].share.stop()
    await world.advance(10)
    world.processes["b"].share.stop()
    at_s = world.clock.monotonic_s()
    await world.advance(20)
    assert while_waiting <= {"a", "b"}
    assert world.writers(after_s=at_s + 2) <= {"c", "d"}
    assert {key for key in world.keys if any(write.key == key and write.at_s > at_s for write in world.writes)} == set(
        world.keys
    )
    assert counted_twice(world) == []


async def test_two_numbers_at_the_same_time(world: ElectionWorld) -> None:
    """Of processes that begin together with different numbers those with one of them go to work."""
    world.start("a", shards=4)
    world.start("b", shards=SHARDS)
    await world.advance(60)
    assert len(world.writers()) == 1


@pytest.mark.slow
async def test_relics_are_removed(world: ElectionWorld) -> None:
    """The Leases of members that were killed go after a while."""
    for name in "ab":
        world.start(name, shards=SHARDS)
    await world.advance(10)
    await world.processes["a"].kill()
    await world.advance(20)
    before = [name for name in world.server.leases if "member" in name]
    await world.advance(320)
    assert (len(before), len([name for name in world.server.leases if "member" in name])) == (2, 1)


async def test_metrics(world: ElectionWorld) -> None:
    """Each process tells what it holds, what nobody holds, and how many share the work."""
    first = world.start("a", shards=SHARDS)
    world.start("b", shards=SHARDS)
    await world.advance(20)
    names = ("podscaler_shards_held", "podscaler_shards_free", "podscaler_shard_members")
    assert [first.registry.get_sample_value(name) for name in names] == [3, 0, 2]


@pytest.mark.parametrize(("before", "after"), [(0, SHARDS), (SHARDS, 4), (SHARDS, 0)])
async def test_one_that_seemed_to_be_gone(world: ElectionWorld, before: int, after: int) -> None:
    """A process that stood still while others with another number went to work does nothing when it moves again."""
    world.start("a", shards=before)
    await world.advance(20.5)
    world.processes["a"].pause()
    await world.advance(10)
    world.start("b", shards=after)
    await world.advance(30)
    at_s = world.clock.monotonic_s()
    world.processes["a"].resume()
    await world.advance(30)
    assert (world.writers(after_s=at_s), world.overlaps) == ({"b"}, [])


async def test_a_bug_in_taking_up(world: ElectionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that cannot work on a shard gives all of them and its own Lease back, and ends with the error."""

    def fail(_: object) -> None:
        raise KeyError("bug")

    first = world.start("a", shards=SHARDS)
    monkeypatch.setattr(first, "on_started_leading", fail)
    await world.advance(2)
    held = shares(world)
    world.start("b", shards=SHARDS)
    await world.advance(3)
    assert (repr(first.task.exception()), held, shares(world)) == ("KeyError('bug')", {}, {"b": 6})
    assert first.share.fault() == "sharing the work failed: KeyError('bug')"
    assert len([name for name in world.server.leases if "member" in name]) == 1


async def test_a_bug_in_sharing(world: ElectionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that cannot tell what to hold hands everything over in order, and ends with the error."""

    async def fail(_: object) -> None:
        raise KeyError("bug")

    first = world.start("a", shards=SHARDS)
    await world.advance(10)
    monkeypatch.setattr(first.share, "_apply_assignment", fail)
    await world.advance(3)
    assert (repr(first.task.exception()), shares(world), first.told[-1]) == ("KeyError('bug')", {}, "lay down")


async def test_a_hand_over_leaves_other_writes_alone(world: ElectionWorld) -> None:
    """While one shard is given back, what is written about others (histories) goes on."""
    first = world.start("a", shards=SHARDS)
    await world.advance(10)
    remaining_s: list[float] = []
    request = first.line.request

    async def watched(sent: Request) -> Response:
        weakest = first.share.weakest()
        remaining_s.append(-1.0 if weakest is None else weakest.remaining_s())
        return await request(sent)

    first.line.request = watched  # type: ignore[method-assign]  # a look at every request
    world.start("b", shards=SHARDS)
    await world.advance(10)
    assert (shares(world), min(remaining_s) > 0) == ({"a": 3, "b": 3}, True)


@pytest.mark.parametrize("after_s", [10, 16])
async def test_a_member_that_joins_after_a_crash(world: ElectionWorld, after_s: float) -> None:
    """All count the same members: what the dead one held changes hands twice at most, the rest once, without a gap."""
    for name in "abc":
        world.start(name, shards=SHARDS)
    await world.advance(30.5)
    orphans = set(world.processes["b"].keys())
    await world.processes["b"].kill()
    await world.advance(after_s)
    world.start("d", shards=SHARDS)
    await world.advance(30)
    gaps_s = world.gaps_s(world.clock.monotonic_s())
    changes = {key: sum(at_s > 30.5 for *_, at_s, _ in found) for key, found in world.changes().items()}
    assert shares(world) == {"a": 2, "c": 2, "d": 2}
    assert max(changes[key] for key in orphans) <= 2
    assert max(gaps_s[key] for key in orphans) <= 15 + 1
    assert max(changes[key] for key in world.keys if key not in orphans) <= 1
    assert max(gaps_s[key] for key in world.keys if key not in orphans) <= 1 + 1


async def test_a_newcomer_whose_lists_arrive_late(world: ElectionWorld) -> None:
    """What the watch has told by then counts: shards that were given up for it meanwhile are taken, and move once."""
    for name in "ab":
        world.start(name, shards=SHARDS)
    await world.advance(30.5)
    late = world.start("c", shards=SHARDS)
    request = late.line.request

    async def delayed(sent: Request) -> Response:
        answer = await request(sent)
        if sent.method == "GET" and sent.path.endswith("/leases"):
            await world.clock.sleep(0.4)
        return answer

    late.line.request = delayed  # type: ignore[method-assign]  # a slow line for lists alone
    await world.advance(30)
    moves = {key: sum(at_s > 30.5 for *_, at_s, _ in found) for key, found in world.changes().items()}
    assert (shares(world), max(moves.values())) == ({"a": 2, "b": 2, "c": 2}, 1)


async def test_a_member_that_dies_when_it_joins(world: ElectionWorld) -> None:
    """What was given up for it is taken back after a retry period, and kept until it counts as gone."""
    for name in "ab":
        world.start(name, shards=SHARDS)
    await world.advance(30.5)
    known = next(lease for name, lease in world.server.leases.items() if "member" in name)
    metadata = {name: known["metadata"][name] for name in ("namespace", "labels", "annotations")}
    body = {"metadata": metadata | {"name": f"{LEASE}-member-c"}, "spec": known["spec"] | {"holderIdentity": "c"}}
    world.server.create(body)
    await world.advance(30)
    assert (shares(world), counted_twice(world)) == ({"a": 3, "b": 3}, [])
    assert max(world.gaps_s(world.clock.monotonic_s()).values()) <= 2 + 1 + 1
    assert max(len(found) for found in world.changes().values()) <= 2 + 1
