"""How writes become durable: decided in order, committed together, shown afterwards."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.storage.change_log import Retention
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.store import RECOVERY_INTERVAL_S, Store, open_store
from podscaler.controlplane.storage.transactions import Transaction
from podscaler.testing import VirtualClock
from podscaler.testing.kinds import obj

T = TypeVar("T")


class Disk:
    """A disk under the test's control: slow (commits wait to be let through) or broken."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.calls = 0

    async def __call__(self, call: Callable[[], T], /) -> T:
        self.calls += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return call()


def put(name: str, **spec: object) -> Callable[[Transaction], Entry]:
    """The decision to store an object of that name."""
    return lambda transaction: transaction.put("gadgets", obj(name, **spec))


def remove(name: str) -> Callable[[Transaction], None]:
    """The decision to remove it."""

    def decide(transaction: Transaction) -> None:
        entry = transaction.find("gadgets", "default", name)
        if entry is None:
            raise StatusError("no such thing", code=404)
        transaction.remove(entry)

    return decide


def names(store: Store) -> list[str]:
    """What readers see."""
    return [entry.name for entry in store.table("gadgets").select("")]


async def turns() -> None:
    """Let everything that can run, run."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def disk() -> Disk:
    """The disk of the store of a test."""
    return Disk()


@pytest.fixture
async def slow(tmp_path: Path, clock: VirtualClock, disk: Disk) -> Store:
    """A store on that disk."""
    return await open_store(tmp_path / "slow", clock, run=disk)


async def test_nothing_is_seen_before_it_is_durable(slow: Store, disk: Disk) -> None:
    """Readers, and the caller, see a write only after its commit."""
    disk.gate.clear()
    writing = asyncio.ensure_future(slow.write(put("a")))
    await turns()
    assert (writing.done(), names(slow), slow.revision) == (False, [], 1)
    disk.gate.set()
    entry = await writing
    assert (entry.revision, names(slow), slow.revision) == (2, ["a"], 2)


async def test_concurrent_writes_share_a_commit(slow: Store, disk: Disk) -> None:
    """What comes while a commit is under way is one commit together."""
    before = disk.calls
    disk.gate.clear()
    writes = [asyncio.ensure_future(slow.write(put("first")))]
    await turns()
    writes += [asyncio.ensure_future(slow.write(put(f"x{index}"))) for index in range(50)]
    await turns()
    disk.gate.set()
    revisions = [entry.revision for entry in await asyncio.gather(*writes)]
    assert (revisions, disk.calls - before) == (list(range(2, 53)), 2)


async def test_decisions_see_what_is_on_its_way(slow: Store, disk: Disk) -> None:
    """A read-change-write builds on a change that is decided but not yet durable."""

    def count(transaction: Transaction) -> Entry:
        stored = transaction.find("gadgets", "default", "a")
        size = stored.decode()["spec"]["size"] if stored else 0
        return transaction.put("gadgets", obj("a", size=size + 1))

    disk.gate.clear()
    writes = [asyncio.ensure_future(slow.write(count)) for _ in range(20)]
    await turns()
    disk.gate.set()
    await asyncio.gather(*writes)
    found = slow.table("gadgets").find("default/a")
    assert found is not None
    assert found.decode()["spec"] == {"size": 20}


async def test_refusals_wait_for_what_they_rest_on(slow: Store, disk: Disk) -> None:
    """Who is refused because of a change that is not durable yet hears of it when it is."""

    def create(transaction: Transaction) -> Entry:
        if transaction.find("gadgets", "default", "a") is not None:
            raise StatusError("there already", code=409)
        return transaction.put("gadgets", obj("a"))

    disk.gate.clear()
    first = asyncio.ensure_future(slow.write(create))
    second = asyncio.ensure_future(slow.write(create))
    await turns()
    assert (first.done(), second.done()) == (False, False)
    disk.gate.set()
    await first
    with pytest.raises(StatusError, match="there already"):
        await second


async def test_unchanged_answers_wait_for_what_they_rest_on(slow: Store, disk: Disk) -> None:
    """A write that changes nothing acknowledges the version it found only once that is durable."""
    disk.gate.clear()
    first = asyncio.ensure_future(slow.write(put("a")))
    await turns()
    second = asyncio.ensure_future(slow.write(lambda transaction: transaction.find("gadgets", "default", "a")))
    await turns()
    assert not second.done()
    disk.gate.set()
    assert await second is await first


async def test_cancelled_callers_do_not_undo_writes(slow: Store, disk: Disk) -> None:
    """A client that goes away takes neither its own write nor the others' answers with it."""
    disk.gate.clear()
    gone = asyncio.ensure_future(slow.write(put("a")))
    stays = asyncio.ensure_future(slow.write(put("b")))
    await turns()
    gone.cancel()
    disk.gate.set()
    await stays
    assert names(slow) == ["a", "b"]


async def test_broken_disk_fails_the_write_and_keeps_the_state(slow: Store, disk: Disk) -> None:
    """If a commit fails, all that was decided on top fails as well; later writes start from the last commit."""
    await slow.write(put("a"))
    disk.error = sqlite3.OperationalError("disk I/O error")
    disk.gate.clear()
    writes = [asyncio.ensure_future(slow.write(put("b")))]
    await turns()
    writes.append(asyncio.ensure_future(slow.write(remove("a"))))
    await turns()
    disk.gate.set()
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert [result.code for result in results if isinstance(result, StatusError)] == [500, 500]
    assert (names(slow), slow.revision) == (["a"], 2)
    disk.error = None
    assert (await slow.write(put("c"))).revision == 3
    assert names(slow) == ["a", "c"]


async def test_dry_runs_leave_no_trace(slow: Store, disk: Disk) -> None:
    """A dry run answers with what would be, and uses up no revision."""
    before = disk.calls
    entry = await slow.write(put("a"), dry_run=True)
    assert (entry.revision, names(slow), slow.revision, disk.calls) == (0, [], 1, before)


async def test_closed_store_refuses(slow: Store) -> None:
    """After close a write is a 503."""
    await slow.close()
    with pytest.raises(StatusError) as refused:
        await slow.write(put("a"))
    assert refused.value.code == 503


async def test_closing_finishes_what_was_accepted(tmp_path: Path, clock: VirtualClock) -> None:
    """A write under way when the store is closed is durable."""
    disk = Disk()
    store = await open_store(tmp_path / "data", clock, run=disk)
    disk.gate.clear()
    writing = asyncio.ensure_future(store.write(put("a")))
    await turns()
    closing = asyncio.ensure_future(store.close())
    await turns()
    disk.gate.set()
    await asyncio.gather(writing, closing)
    again = await open_store(tmp_path / "data", clock)
    assert names(again) == ["a"]
    await again.close()


async def test_restart_continues(tmp_path: Path, clock: VirtualClock) -> None:
    """Objects, revision and history are the same after a restart; no revision is given out twice."""
    store = await open_store(tmp_path / "data", clock)
    await store.write(put("a"))
    await store.write(put("a", size=1))
    await store.write(put("b"))
    await store.write(remove("b"))
    past = [
        (e.revision, e.entry and e.entry.body, e.previous and e.previous.body) for e in store.log.after("gadgets", 1)
    ]
    await store.close()
    again = await open_store(tmp_path / "data", clock)
    found = [
        (e.revision, e.entry and e.entry.body, e.previous and e.previous.body) for e in again.log.after("gadgets", 1)
    ]
    assert (names(again), again.revision, again.log.compacted_revision, found) == (["a"], 5, 1, past)
    assert (await again.write(put("c"))).revision == 6
    await again.close()


async def test_compaction_forgets_history_but_no_object(tmp_path: Path, clock: VirtualClock) -> None:
    """After compaction nothing older can be resumed, also not after a restart; revisions go on."""
    store = await open_store(tmp_path / "data", clock)
    await store.write(put("a"))
    await store.write(put("b"))
    await store.write(remove("b"))
    assert await store.compact() == 4
    await store.write(put("c"))
    await store.close()
    again = await open_store(tmp_path / "data", clock)
    revisions = [event.revision for event in again.log.after("gadgets", 0)]
    assert (names(again), again.log.compacted_revision, revisions, again.revision) == (["a", "c"], 4, [5], 5)
    await again.close()


async def test_file_does_not_keep_what_the_log_dropped(tmp_path: Path, clock: VirtualClock) -> None:
    """Rows of versions that nobody can ask for any more are deleted with the next commits."""
    store = await open_store(tmp_path / "data", clock, retention=Retention(count=2))
    for size in range(20):
        await store.write(put("a", size=size))
    revisions = [row.revision for row in store._journal.rows()]
    await store.close()
    assert revisions == [18, 19, 20, 21]


async def test_thread_commits_do_not_block_the_loop(tmp_path: Path, clock: VirtualClock) -> None:
    """With the default runner the event loop goes on while the disk is being written."""
    store = await open_store(tmp_path / "data", clock)
    ticks = 0
    writing = asyncio.ensure_future(store.write(put("a")))
    while not writing.done():
        ticks += 1
        await asyncio.sleep(0)
    assert ticks > 1
    await store.close()


async def test_full_disk_refuses_writes_and_recovers(tmp_path: Path, clock: VirtualClock) -> None:
    """A database that may not grow refuses in the words of etcd and keeps what it has; given room, it goes on."""
    store = await open_store(tmp_path / "data", clock)
    await store.write(put("a"))
    database = store._journal._database
    database.execute(f"PRAGMA max_page_count = {database.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(StatusError, match="etcdserver: mvcc: database space exceeded"):
        await store.write(put("b", pad="x" * 100_000))
    assert (names(store), store.revision) == (["a"], 2)
    database.execute("PRAGMA max_page_count = 1073741823")
    await clock.advance(RECOVERY_INTERVAL_S)
    await store.write(put("c"))
    await store.close()
    again = await open_store(tmp_path / "data", clock)
    assert (names(again), again.revision) == (["a", "c"], 3)
    await again.close()


async def test_a_listener_that_fails_makes_no_write_fail(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """What is on disk has happened: the writer hears so, the other listeners too, and the store goes on."""
    told: list[str] = []

    def fail(events: object) -> None:
        raise KeyError("web")

    store.listen(fail)
    store.listen(lambda events: told.extend(event.subject.name for event in events))
    await store.write(put("a"))
    await store.write(put("b"))
    assert (names(store), told, caplog.text.count("KeyError: 'web'")) == (["a", "b"], ["a", "b"], 2)
