"""A full disk: deletes go through, nothing else does, and space that is freed can be used again."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest

import small_disk
from podscaler.base.errors import StatusError
from podscaler.controlplane.storage.database_file import Row
from podscaler.controlplane.storage.journal import Bounds
from podscaler.controlplane.storage.store import RECOVERY_INTERVAL_S, Store, open_store, run_inline
from podscaler.controlplane.storage.transactions import Transaction
from podscaler.testing import VirtualClock
from podscaler.testing.kinds import obj

FULL = "etcdserver: mvcc: database space exceeded"


def put(name: str, size: int = 1000, **metadata: str) -> Callable[[Transaction], object]:
    """The decision to store an object with so many bytes."""

    def decide(transaction: Transaction) -> None:
        made = obj(name, pad="x" * size)
        made["metadata"] |= metadata
        transaction.put("gadgets", made)

    return decide


def remove(name: str) -> Callable[[Transaction], object]:
    """The decision to remove an object that is there."""

    def decide(transaction: Transaction) -> None:
        entry = transaction.find("gadgets", "default", name)
        assert entry is not None
        transaction.remove(entry)

    return decide


def names(store: Store) -> list[str]:
    """What readers see."""
    return [entry.name for entry in store.table("gadgets").select("")]


async def outcome(writing: object) -> str:
    """`done`, or how it was refused."""
    try:
        await writing  # type: ignore[misc]  # an awaitable of any result
    except StatusError as error:
        return f"{error.code} {error.reason} {error.message}"
    return "done"


class Space:
    """The bytes that a journal may still take; a tenth of it is kept back."""

    def __init__(self, store: Store, free_bytes: int) -> None:
        self.free_bytes, self.kept_bytes = free_bytes, free_bytes // 10
        self.commit = store._journal.commit
        for name in ("commit", "make_room", "refill"):
            setattr(store._journal, name, getattr(self, f"_{name}"))

    def _commit(self, rows: Sequence[Row], obsolete: Sequence[int], bounds: Bounds) -> None:
        needed = sum(len(row.body or b"") + 50 for row in rows)
        if needed > self.free_bytes - self.kept_bytes:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        self.commit(rows, obsolete, bounds)
        self.free_bytes += 1500 * len(obsolete) - needed

    def _make_room(self) -> None:
        self.kept_bytes = 0

    def _refill(self) -> bool:
        self.kept_bytes = min(1000, self.free_bytes)
        return self.kept_bytes == 1000


@pytest.fixture
async def store(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Store]:
    """A store on a disk without an end, until a test gives it one."""
    opened = await open_store(tmp_path / "data", clock, run=run_inline, is_synced=False)
    yield opened
    await opened.close()


async def test_a_full_disk_takes_deletes_and_nothing_else(store: Store, clock: VirtualClock) -> None:
    """Creates are refused as upstream refuses them, deletes use what is kept back, and then there is room again."""
    for name in "abcdef":
        await store.write(put(name))
    Space(store, 10_000).free_bytes = 1000
    assert await outcome(store.write(put("g"))) == f"500  {FULL}"
    assert await outcome(store.write(remove("a"))) == "done"
    assert await outcome(store.write(remove("b"))) == "done"
    await clock.advance(RECOVERY_INTERVAL_S)
    assert await outcome(store.write(put("g"))) == "done"
    assert names(store) == ["c", "d", "e", "f", "g"]


async def test_what_belongs_to_a_delete_is_taken(store: Store) -> None:
    """An object that is marked for deletion may still be written: finalizers and the ends of pods need it."""
    await store.write(put("a"))
    Space(store, 20_000).free_bytes = 1900
    assert await outcome(store.write(put("b"))) == f"500  {FULL}"
    assert await outcome(store.write(put("a", 900, deletionTimestamp="2026-01-01T00:00:00Z"))) == "done"
    assert names(store) == ["a"]


async def test_an_update_that_takes_no_more_space_is_taken(store: Store) -> None:
    """A heartbeat, or a smaller object, replaces what is there; a larger one is refused."""
    await store.write(put("a"))
    Space(store, 20_000).free_bytes = 1900
    assert await outcome(store.write(put("b", 2000))) == f"500  {FULL}"
    assert await outcome(store.write(put("a", 1000))) == "done"
    assert await outcome(store.write(put("a", 900))) == "done"
    assert await outcome(store.write(put("a", 1000))) == f"500  {FULL}"


async def test_a_delete_that_shares_a_commit_with_a_create_goes_through(store: Store) -> None:
    """The commit of both fails; the delete is decided again, the create is refused."""
    await store.write(put("a"))
    Space(store, 10_000).free_bytes = 1100
    writes = (store.write(put("b", 9000)), store.write(remove("a")))
    assert await asyncio.gather(*map(outcome, writes)) == [f"500  {FULL}", "done"]
    assert names(store) == []


async def test_history_makes_room_for_a_create(store: Store) -> None:
    """What is kept of the past is forgotten before a write is refused, and the write is decided again."""
    await store.write(put("a"))
    await store.write(put("a"))
    disk = Space(store, 10_000)
    disk.free_bytes, disk.kept_bytes = 1500, 1000
    assert await outcome(store.write(put("b"))) == "done"
    assert (names(store), store.log.compacted_revision) == (["a", "b"], 3)


async def test_space_is_looked_for_once_in_a_while(store: Store, clock: VirtualClock) -> None:
    """Writes that are refused one after the other cost no commit each; later ones find what others have freed."""
    disk = Space(store, 10_000)
    disk.free_bytes = 1000
    assert await outcome(store.write(put("a"))) == f"500  {FULL}"
    assert await outcome(store.write(put("a"))) == f"500  {FULL}"
    disk.free_bytes = 100_000
    assert await outcome(store.write(put("a"))) == f"500  {FULL}"
    await clock.advance(RECOVERY_INTERVAL_S)
    assert await outcome(store.write(put("a"))) == "done"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of 3 MB."""
    with small_disk.mounted(tmp_path / "disk", size="3m") as place:
        yield place


async def write_until_full(store: Store) -> list[str]:
    """Objects of 20 KB until one is refused; the names of those that were taken."""
    taken: list[str] = []
    while await outcome(store.write(put(f"x{len(taken):03}", 20_000))) == "done":
        taken.append(f"x{len(taken):03}")
    return taken


async def test_deletes_free_space_on_a_real_disk(disk: Path, clock: VirtualClock) -> None:
    """On a tmpfs of 3 MB: fill it, delete everything, fill it again as far as before."""
    store = await open_store(disk / "data", clock, run=run_inline)
    for _ in range(3):
        taken = await write_until_full(store)
        assert len(taken) > 50
        assert [await outcome(store.write(remove(name))) for name in taken] == ["done"] * len(taken)
        await clock.advance(RECOVERY_INTERVAL_S)
    await store.close()


async def test_a_store_opens_on_a_full_disk(disk: Path, clock: VirtualClock) -> None:
    """After a stop, with what was left filled by others: all objects are there, and deletes are taken."""
    store = await open_store(disk / "data", clock, run=run_inline)
    taken = await write_until_full(store)
    await store.close()
    small_disk.fill(disk)
    assert small_disk.free_bytes(disk) == 0
    again = await open_store(disk / "data", clock, run=run_inline)
    assert names(again) == taken
    assert [await outcome(again.write(remove(name))) for name in taken] == ["done"] * len(taken)
    await again.close()
