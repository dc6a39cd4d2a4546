"""The store: all objects in memory, every change durable before anybody sees it.

`Objects` reads its tables and log, and writes through `write`. How a write goes:

1. Its decision runs at once, on the event loop, against a `Transaction`: what is committed plus what was decided
   before it. So decisions are serial, and a read-change-write cannot be interleaved.
2. Its changes join the pending batch. One thread commits one batch at a time, while the next one fills (group commit):
   a lone write waits for one sync of the disk, a thousand concurrent ones share a few.
3. When the batch is on disk, tables, log and watchers see it, in order, and the callers return.

On a full disk writes are refused in upstream's words, except those that need no more space than what they replace:
these use what the journal keeps back, and while that is short, history is forgotten early. What is freed is kept back
again first.

A refusal, or a write that changes nothing, may rest on changes that are still on their way: its caller, too, hears of
it when those are durable. If the disk fails, all that was on its way fails, and the state is that of the last commit.
A listener that fails makes no write fail, which has happened: its fault is logged, and the other listeners are told.
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
from podscaler.controlplane.storage import database as databases
from podscaler.controlplane.storage.change_log import EventLog, Retention, StoreEvent
from podscaler.controlplane.storage.database import Row
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.journal import Bounds, Journal, open_journal
from podscaler.controlplane.storage.reserve import is_full
from podscaler.controlplane.storage.tables import Table
from podscaler.controlplane.storage.transactions import Transaction

RECOVERY_INTERVAL_S = 1.0
"""How long writes are refused on a full disk before one of them looks for space again."""

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Runner(Protocol):
    """Where the journal's blocking calls run, one after the other."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """The result of `call`."""
        ...


class WriterThread:
    """One thread of its own: the event loop never waits for the disk."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """Run `call` in the thread."""
        return asyncio.get_running_loop().run_in_executor(self._pool, call)


async def run_inline(call: Callable[[], T], /) -> T:
    """Run `call` on the event loop: for tests in virtual time, which cannot wait for a thread."""
    return call()


class DiskFull(StatusError):
    """A write that is refused because the disk is full, as etcd refuses one beyond its quota."""

    def __init__(self) -> None:
        super().__init__(api_errors.SPACE_EXCEEDED, code=500)


class _Batch:
    """Changes that become durable together."""

    def __init__(self) -> None:
        self.events: list[StoreEvent] = []
        self.transactions: list[Transaction] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, error: Exception) -> None:
        """Undo what its decisions did outside the store, the newest first, and tell the callers."""
        for transaction in reversed(self.transactions):
            try:
                transaction.undo()
            except Exception:
                logger.exception("what a failed write was given cannot be given back, which is a bug")
        self.done.set_exception(error)
        self.done.exception()  # nobody may be left to ask: no complaint about that


class Store:
    """See the module. Made by `open_store`; used from one event loop."""

    def __init__(self, journal: Journal, clock: Clock, *, retention: Retention, run: Runner) -> None:
        self._journal = journal
        self._clock = clock
        self._run = run
        bounds = journal.bounds()
        self.revision = bounds.revision
        self.log = EventLog(bounds.floor, retention)
        self._tables: dict[str, Table] = {}
        self._obsolete: list[int] = []
        self._load()
        self._decided_revision = self.revision
        self._undurable: dict[tuple[str, str], StoreEvent] = {}
        self._pending: _Batch | None = None
        self._in_flight: _Batch | None = None
        self._flusher: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[list[StoreEvent]], None]] = []
        self._closed = False
        self._is_short = journal.is_short
        self._next_recovery_s = 0.0

    def table(self, resource: str) -> Table:
        """The current entries of a resource."""
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = Table()
        return table

    def forget(self, resource: str) -> None:
        """Drop the table of a resource that is served no longer, if it is empty."""
        table = self._tables.get(resource)
        if table is not None and not len(table):
            del self._tables[resource]

    def listen(self, listener: Callable[[list[StoreEvent]], None]) -> None:
        """Call `listener` with the events of every commit, in order, after tables and log have them."""
        self._listeners.append(listener)

    async def write(self, decide: Callable[[Transaction], T], *, dry_run: bool = False) -> T:
        """Run `decide`, make its changes durable and return its result; a `dry_run` has none.

        Raises what `decide` raises, which may be called twice; StatusError 500 if the disk fails, 503 once the store is
        closed.
        """
        if self._closed:
            raise api_errors.unavailable("the store is closed")
        if self._is_short and not dry_run:
            await self._recover()
        for is_last in (False, True):
            transaction = Transaction(
                self._find_decided, revision=self._decided_revision, now_ns=self._clock.now_ns(), dry_run=dry_run
            )
            try:
                return await self._attempt(decide, transaction)
            except DiskFull:
                if not transaction.fits_full_disk():
                    await self._recover()
                if is_last or (self._is_short and not transaction.fits_full_disk()):
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, decide: Callable[[Transaction], T], transaction: Transaction) -> T:
        try:
            result = decide(transaction)
        except StatusError:
            await self._settled()
            raise
        if transaction.events:
            if self._is_short and not transaction.fits_full_disk():
                raise DiskFull()
            self._accept(transaction)
        await self._settled()
        return result

    async def compact(self) -> int:
        """Forget the history: nothing before now can be watched or listed any more. Returns the new floor."""
        self._obsolete += self.log.clear(self.revision)
        self._join()
        await self._settled()
        return self.log.floor

    async def close(self) -> None:
        """Finish what was accepted, refuse what comes, and close the file."""
        self._closed = True
        try:
            await self._settled()
        finally:
            await self._run(self._journal.close)

    def _find_decided(self, resource: str, key: str) -> Entry | None:
        event = self._undurable.get((resource, key))
        return event.entry if event else self.table(resource).find(key)

    def _accept(self, transaction: Transaction) -> None:
        batch = self._join()
        batch.events += transaction.events
        batch.transactions.append(transaction)
        for event in transaction.events:
            self._decided_revision = event.revision
            self._undurable[event.subject.resource, event.subject.key] = event

    def _join(self) -> _Batch:
        """The batch that is committed next; there is one from now on."""
        if self._pending is None:
            self._pending = _Batch()
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())
        return self._pending

    async def _settled(self) -> None:
        """Return when everything decided so far is durable. Raises StatusError 500 if it cannot be made so."""
        batch = self._pending or self._in_flight
        if batch is not None:
            await asyncio.shield(batch.done)

    async def _flush(self) -> None:
        try:
            while self._pending is not None:
                batch, self._pending = self._pending, None
                self._in_flight = batch
                if self._is_short:
                    await self._run(self._journal.make_room)
                await self._commit(batch.events)
                self._in_flight = None
                try:
                    if self._is_short:
                        await self._refill()
                finally:
                    batch.done.set_result(None)
        except (sqlite3.Error, OSError) as error:
            logger.error("the store cannot write to %s: %s", self._journal.path, error)
            if is_full(error):
                self._is_short = True
                self._give_up(DiskFull())
            else:
                self._give_up(api_errors.internal_error(f"the store cannot write: {error}"))
        except BaseException:
            self._give_up(api_errors.internal_error("the store stopped writing"))
            raise
        finally:
            self._flusher = None

    async def _recover(self) -> None:
        """Try to get space back, once in a while; a write that comes meanwhile is refused or takes its chance."""
        now_s = self._clock.monotonic_s()
        if now_s < self._next_recovery_s:
            return
        self._next_recovery_s = now_s + RECOVERY_INTERVAL_S
        self._join()
        with contextlib.suppress(StatusError):  # logged, and the write that follows meets the same disk
            await self._settled()

    async def _refill(self) -> None:
        """Forget history, and keep back what that and the last commit freed."""
        self._obsolete += self.log.clear(self.revision)
        while self._obsolete:
            await self._commit([])
            await self._run(self._journal.make_room)
        self._is_short = not await self._run(self._journal.refill)
        if not self._is_short:
            logger.warning("the disk of %s has space again: all writes are taken", self._journal.path)

    async def _commit(self, events: list[StoreEvent]) -> None:
        rows = [_row(event) for event in events]
        most = self._journal.obsolete_at_once if self._is_short else len(self._obsolete)
        obsolete, self._obsolete = self._obsolete[:most], self._obsolete[most:]
        revision = events[-1].revision if events else self.revision
        bounds = Bounds(revision, self.log.floor)
        try:
            await self._run(lambda: self._journal.commit(rows, obsolete, bounds))
        except BaseException:
            self._obsolete = obsolete + self._obsolete  # in this order: an object goes before the row of its deletion
            raise
        self._show(events)

    def _show(self, events: list[StoreEvent]) -> None:
        for event in events:
            subject = event.subject
            if event.entry is not None:
                self.table(subject.resource).put(event.entry)
            else:
                self.table(subject.resource).remove(subject.key)
            if event.previous is not None:
                event.previous.view = None
            self.log.append(event)
            if self._undurable.get((subject.resource, subject.key)) is event:
                del self._undurable[subject.resource, subject.key]
            self.revision = event.revision
        self._obsolete += self.log.trim(self._clock.now_ns())
        if events:
            self._tell(events)

    def _tell(self, events: list[StoreEvent]) -> None:
        for listener in self._listeners:
            try:
                listener(events)
            except Exception:
                logger.exception("a listener to commits failed, which is a bug; what was written stays written")

    def _give_up(self, error: StatusError) -> None:
        """Everything decided on top of what could not be written never happened."""
        failed = [batch for batch in (self._in_flight, self._pending) if batch is not None]
        self._in_flight = self._pending = None
        self._undurable.clear()
        self._decided_revision = self.revision
        for batch in reversed(failed):
            batch.fail(error)

    def _entry_of(self, row: Row) -> Entry | None:
        try:
            return databases.entry_of(row)
        except ValueError as error:
            raise UsageError(databases.damaged(self._journal.path, databases.body_damage(row, error))) from error

    def _load(self) -> None:
        versions: dict[int, Entry] = {}
        current: dict[tuple[str, str], Entry] = {}
        for row in self._journal.rows():
            previous = versions.get(row.previous)
            entry = self._entry_of(row)
            if row.revision > self.log.floor:
                self.log.append(StoreEvent(row.revision, row.at_ns, entry, previous))
            else:  # what it replaced is there only if an earlier run was ended before it was deleted
                self._obsolete += [row.previous] if previous is not None else []
                self._obsolete += [row.revision] if entry is None else []
            if entry is not None:
                if previous is not None:
                    entry.share(previous)
                versions[row.revision] = current[entry.resource, entry.key] = entry
            elif previous is not None:
                del current[previous.resource, previous.key]
        tables: dict[str, list[Entry]] = {}
        for entry in current.values():
            tables.setdefault(entry.resource, []).append(entry)
        for resource, found in tables.items():
            self.table(resource).fill(found)


async def open_store(
    directory: Path,
    clock: Clock,
    *,
    retention: Retention | None = None,
    run: Runner | None = None,
    is_synced: bool = True,
    is_new_cluster: bool = False,
) -> Store:
    """The store kept in `directory`, with everything that was acknowledged before.

    Args:
        directory: made (mode 0700) if it is not there; claimed until `close`.
        clock: for the age of history.
        retention: how much history is kept.
        run: where blocking calls run, by default a thread of its own.
        is_synced: whether commits wait for the disk; False is for tests.
        is_new_cluster: whether an empty cluster may take the place of one whose database is lost.

    Raises:
        UsageError: see `journal.open_journal`; or what it holds cannot be read.
    """
    run = run or WriterThread()
    kept = retention or Retention()

    def load() -> Store:
        journal = open_journal(directory, is_synced=is_synced, is_new_cluster=is_new_cluster)
        try:
            return Store(journal, clock, retention=kept, run=run)
        except sqlite3.Error as error:
            journal.close()
            raise UsageError(databases.damaged(journal.path, error)) from error
        except BaseException:
            journal.close()
            raise

    return await run(load)


def _row(event: StoreEvent) -> Row:
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
