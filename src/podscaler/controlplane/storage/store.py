"""Stores all objects in memory and in SQLite; every change is durable before it becomes visible (the place of etcd).

`registry.objects` reads tables and change log, and writes through `write`. Steps of a write:

1. Its decision (the function that `write` gets) runs immediately on the event loop with a `Transaction`: the committed
   state plus earlier decisions. So decisions are serial, and a read-change-write is atomic.
2. Its changes join the pending batch. One thread commits one batch at a time while the next one fills (group commit): a
   single write waits for one sync of the disk, a thousand concurrent ones share a few.
3. When the batch is on disk, tables, log and watchers are updated in order, and the callers return.

On a full disk writes are refused with etcd's message, except those that need no more space than the versions they
replace: these use the journal's reserve. While the reserve is not whole, the change log is dropped early, and freed
space refills the reserve first.

An API error, or a write that changes nothing, may be based on uncommitted changes: its caller also waits until those
are durable. If a commit fails, all uncommitted writes fail, and the state is that of the last commit. An exception of a
listener is logged and fails neither the write nor other listeners. What is to follow each commit is a listener.
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, TypeVar

from podscaler.api.resource import api_errors
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.controlplane.storage import database_file
from podscaler.controlplane.storage.change_log import EventLog, Retention, StoreEvent
from podscaler.controlplane.storage.database_file import Row
from podscaler.controlplane.storage.disk_reserve import is_full
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.journal import Bounds, Journal, open_journal
from podscaler.controlplane.storage.object_table import Table
from podscaler.controlplane.storage.transactions import Transaction

RECOVERY_INTERVAL_S = 1.0
"""The least time between two attempts of writes to recover space on a full disk."""

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Runner(Protocol):
    """Runs the journal's blocking calls, one after the other."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """The result of `call`."""
        ...


class WriterThread:
    """Runs calls in a thread of its own, so that the event loop never waits for the disk."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """Run `call` in the thread."""
        return asyncio.get_running_loop().run_in_executor(self._pool, call)


async def run_inline(call: Callable[[], T], /) -> T:
    """Run `call` on the event loop, for tests in virtual time, which cannot wait for a thread."""
    return call()


class DiskFull(StatusError):
    """500: the disk is full; with the message of etcd's quota."""

    def __init__(self) -> None:
        super().__init__(api_errors.SPACE_EXCEEDED, code=500)


class _Batch:
    """The changes of one commit.

    Attributes:
        events: in order.
        transactions: the decided writes, whose allocations are undone if the commit fails.
        done: set when the changes are durable and visible; has the error of a failed commit.
    """

    def __init__(self) -> None:
        self.events: list[StoreEvent] = []
        self.transactions: list[Transaction] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, error: Exception) -> None:
        """Undo the allocations of its decisions, newest first, and raise `error` in the waiting writes."""
        for transaction in reversed(self.transactions):
            try:
                transaction.undo()
            except Exception:
                logger.exception("the allocations of a failed write cannot be undone, which is a bug")
        self.done.set_exception(error)
        self.done.exception()  # mark it as retrieved: all waiting callers may have been cancelled


class Store:
    """The stored objects of one cluster. Created by `open_store`; used from one event loop.

    Creating it loads all objects. Raises UsageError for a damaged row, sqlite3.Error.

    Attributes:
        revision: the newest committed revision.
        log: the change log.
    """

    def __init__(self, journal: Journal, clock: Clock, *, retention: Retention, run: Runner) -> None:
        self._journal = journal
        self._clock = clock
        self._run = run
        bounds = journal.bounds()
        self.revision = bounds.revision
        self.log = EventLog(bounds.compacted_revision, retention)
        self._tables: dict[str, Table] = {}
        self._obsolete: list[int] = []  # revisions whose rows the next commit deletes, in this order
        self._load()
        self._decided_revision = self.revision
        self._uncommitted_events: dict[tuple[str, str], StoreEvent] = {}
        self._pending_batch: _Batch | None = None
        self._committing_batch: _Batch | None = None
        self._commit_task: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[list[StoreEvent]], None]] = []
        self._is_closed = False
        self._is_disk_short = journal.is_reserve_short
        self._next_recovery_s = 0.0

    def table(self, resource: str) -> Table:
        """The committed entries of a resource (`Resource.storage_key`); an empty table is created if there is none."""
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = Table()
        return table

    def drop_table(self, resource: str) -> None:
        """Drop the table of a resource that is no longer served, if it is empty."""
        table = self._tables.get(resource)
        if table is not None and not len(table):
            del self._tables[resource]

    def listen(self, listener: Callable[[list[StoreEvent]], None]) -> None:
        """Call `listener` with the events of every commit, in order, after tables and log were updated."""
        self._listeners.append(listener)

    async def write(self, decide: Callable[[Transaction], T], *, dry_run: bool = False) -> T:
        """Run `decide`, commit its changes (none for a `dry_run`) and return its result.

        Raises:
            StatusError: 500 if the disk fails or is full, 503 once the store is closed.
            Exception: whatever `decide` raises, which may be called twice.
        """
        if self._is_closed:
            raise api_errors.unavailable("the store is closed")
        if self._is_disk_short and not dry_run:
            await self._recover()
        for is_second_attempt in (False, True):  # the second one after space was recovered, or with the reserve
            transaction = Transaction(
                self._find_newest, revision=self._decided_revision, now_ns=self._clock.now_ns(), dry_run=dry_run
            )
            try:
                return await self._attempt(decide, transaction)
            except DiskFull:
                may_use_reserve = transaction.fits_full_disk()
                if not may_use_reserve:
                    await self._recover()
                # another attempt needs space: the disk's if `_recover` found some, or the reserve
                if is_second_attempt or (self._is_disk_short and not may_use_reserve):
                    raise
        raise AssertionError("the second attempt returns or raises")

    async def _attempt(self, decide: Callable[[Transaction], T], transaction: Transaction) -> T:
        """The result of `decide` once its changes are committed. Raises as `write`."""
        try:
            decided = decide(transaction)
        except StatusError:  # it may be based on uncommitted changes
            await self._wait_for_commit()
            raise
        if transaction.events:
            if self._is_disk_short and not transaction.fits_full_disk():
                raise DiskFull()
            self._accept(transaction)
        await self._wait_for_commit()
        return decided

    def why_unavailable(self) -> str:
        """Why the store accepts no writes, empty if it does."""
        return "the store is closed" if self._is_closed else ""

    async def compact(self) -> int:
        """Drop the change log: earlier revisions can no longer be watched or listed. Returns the compacted revision."""
        self._obsolete += self.log.clear(self.revision)
        self._ensure_pending_batch()
        await self._wait_for_commit()
        return self.log.compacted_revision

    async def close(self) -> None:
        """Commit the accepted writes, refuse new ones, and close the file."""
        self._is_closed = True
        try:
            await self._wait_for_commit()
        finally:
            await self._run(self._journal.close)

    def _find_newest(self, resource: str, key: str) -> Entry | None:
        """The newest version, committed or not; None if there is no object."""
        event = self._uncommitted_events.get((resource, key))
        return event.entry if event else self.table(resource).find(key)

    def _accept(self, transaction: Transaction) -> None:
        """Take the events of a transaction into the batch that is committed next."""
        batch = self._ensure_pending_batch()
        batch.events += transaction.events
        batch.transactions.append(transaction)
        for event in transaction.events:
            self._decided_revision = event.revision
            self._uncommitted_events[event.subject.resource, event.subject.key] = event

    def _ensure_pending_batch(self) -> _Batch:
        """The batch that is committed next, created if necessary; a task that commits it runs then."""
        if self._pending_batch is None:
            self._pending_batch = _Batch()
        if self._commit_task is None:
            self._commit_task = asyncio.get_running_loop().create_task(self._commit_batches())
        return self._pending_batch

    async def _wait_for_commit(self) -> None:
        """Return when everything decided so far is committed. Raises StatusError 500 if the commit fails."""
        batch = self._pending_batch or self._committing_batch
        if batch is not None:
            await asyncio.shield(batch.done)

    async def _commit_batches(self) -> None:
        """Commit pending batches until there is none; a failure fails all uncommitted writes."""
        try:
            while self._pending_batch is not None:
                batch, self._pending_batch = self._pending_batch, None
                self._committing_batch = batch
                if self._is_disk_short:
                    await self._run(self._journal.make_room)
                await self._commit(batch.events)
                self._committing_batch = None
                try:
                    if self._is_disk_short:
                        await self._refill()
                finally:  # the batch is durable, even if the reserve cannot be refilled
                    batch.done.set_result(None)
        except (sqlite3.Error, OSError) as error:
            logger.error("the store cannot write to %s: %s", self._journal.path, error)
            if is_full(error):
                self._is_disk_short = True
                self._fail_uncommitted(DiskFull())
            else:
                self._fail_uncommitted(api_errors.internal_error(f"the store cannot write: {error}"))
        except BaseException:
            self._fail_uncommitted(api_errors.internal_error("the store stopped writing"))
            raise
        finally:
            self._commit_task = None

    async def _recover(self) -> None:
        """Try to recover disk space by an empty commit (`_commit_batches`), at most every RECOVERY_INTERVAL_S."""
        now_s = self._clock.monotonic_s()
        if now_s < self._next_recovery_s:
            return
        self._next_recovery_s = now_s + RECOVERY_INTERVAL_S
        self._ensure_pending_batch()
        with contextlib.suppress(StatusError):  # it is logged, and the following write fails as well
            await self._wait_for_commit()

    async def _refill(self) -> None:
        """Drop the change log, and refill the reserve with the freed space. Raises sqlite3.Error, OSError."""
        self._obsolete += self.log.clear(self.revision)
        while self._obsolete:
            await self._commit([])
            await self._run(self._journal.make_room)
        self._is_disk_short = not await self._run(self._journal.refill)
        if not self._is_disk_short:
            logger.warning("the disk of %s has space again: all writes are accepted", self._journal.path)

    async def _commit(self, events: list[StoreEvent]) -> None:
        """Write events to disk, delete obsolete rows, and make the events visible. Raises sqlite3.Error."""
        rows = [_row_of(event) for event in events]
        max_obsolete = self._journal.obsolete_rows_max if self._is_disk_short else len(self._obsolete)
        obsolete, self._obsolete = self._obsolete[:max_obsolete], self._obsolete[max_obsolete:]
        revision = events[-1].revision if events else self.revision  # without events the commit only deletes rows
        bounds = Bounds(revision, self.log.compacted_revision)
        try:
            await self._run(lambda: self._journal.commit(rows, obsolete, bounds))
        except BaseException:
            self._obsolete = obsolete + self._obsolete  # in this order: a version is deleted before its deletion's row
            raise
        self._publish(events)

    def _publish(self, events: list[StoreEvent]) -> None:
        """Apply durable events to tables and log, and call the listeners."""
        for event in events:
            subject = event.subject
            if event.entry is not None:
                self.table(subject.resource).put(event.entry)
            else:
                self.table(subject.resource).remove(subject.key)
            if event.previous is not None:
                event.previous.view = None  # `registry.registry.Views` keeps it for current versions
            self.log.append(event)
            if self._uncommitted_events.get((subject.resource, subject.key)) is event:
                del self._uncommitted_events[subject.resource, subject.key]
            self.revision = event.revision
        self._obsolete += self.log.trim(self._clock.now_ns())
        if events:
            self._notify(events)

    def _notify(self, events: list[StoreEvent]) -> None:
        """Call the listeners with the events of a commit; their exceptions are logged."""
        for listener in self._listeners:
            try:
                listener(events)
            except Exception:
                logger.exception("a listener to commits failed, which is a bug; the commit is not affected")

    def _fail_uncommitted(self, error: StatusError) -> None:
        """Discard all uncommitted writes, as they may be based on the failed ones."""
        failed_batches = [batch for batch in (self._committing_batch, self._pending_batch) if batch is not None]
        self._committing_batch = self._pending_batch = None
        self._uncommitted_events.clear()
        self._decided_revision = self.revision
        for batch in reversed(failed_batches):  # newest first, as `Transaction.on_failure` promises
            batch.fail(error)

    def _entry_of(self, row: Row) -> Entry | None:
        """The entry of a row, None for a deletion. Raises UsageError if its body is damaged."""
        try:
            return database_file.entry_of(row)
        except ValueError as error:
            damage = database_file.body_damage(row, error)
            raise UsageError(database_file.damaged_message(self._journal.path, damage)) from error

    def _load(self) -> None:
        """Fill the tables and the change log from the rows of the journal. Raises UsageError, sqlite3.Error."""
        versions: dict[int, Entry] = {}
        current_entries: dict[tuple[str, str], Entry] = {}
        for row in self._journal.rows():
            previous = versions.get(row.previous)
            entry = self._entry_of(row)
            if row.revision > self.log.compacted_revision:
                self.log.append(StoreEvent(row.revision, row.at_ns, entry, previous))
            else:  # such rows are there only if an earlier run ended before deleting them
                if previous is not None:
                    self._obsolete.append(row.previous)
                if entry is None:
                    self._obsolete.append(row.revision)
            if entry is not None:
                if previous is not None:
                    entry.share_strings(previous)
                versions[row.revision] = current_entries[entry.resource, entry.key] = entry
            elif previous is not None:
                del current_entries[previous.resource, previous.key]
        tables: dict[str, list[Entry]] = {}
        for entry in current_entries.values():
            tables.setdefault(entry.resource, []).append(entry)
        for resource, entries in tables.items():
            self.table(resource).fill(entries)


async def open_store(
    directory: Path,
    clock: Clock,
    *,
    retention: Retention | None = None,
    run: Runner | None = None,
    is_synced: bool = True,
    is_new_cluster: bool = False,
) -> Store:
    """Open the store in `directory` and load all objects.

    Args:
        directory: the data directory, created (mode 0700) if necessary and claimed until `close`.
        clock: for the age of events.
        retention: how much of the change log is kept.
        run: runs blocking calls, by default in a thread of its own.
        is_synced: whether commits wait for the disk; False for tests.
        is_new_cluster: whether an empty cluster may replace one whose database is lost.

    Raises:
        UsageError: see `journal.open_journal`; or the database is damaged.
    """
    run = run or WriterThread()
    log_retention = retention or Retention()

    def load() -> Store:
        journal = open_journal(directory, is_synced=is_synced, is_new_cluster=is_new_cluster)
        try:
            return Store(journal, clock, retention=log_retention, run=run)
        except sqlite3.Error as error:
            journal.close()
            raise UsageError(database_file.unusable_message(journal.path, error)) from error
        except BaseException:
            journal.close()
            raise

    return await run(load)


def _row_of(event: StoreEvent) -> Row:
    """The row of an event in the database."""
    subject = event.subject
    return Row(
        revision=event.revision,
        previous=event.previous.revision if event.previous else 0,
        at_ns=event.at_ns,
        resource=subject.resource,
        namespace=subject.namespace,
        name=subject.name,
        body=event.entry.body if event.entry else None,
    )
