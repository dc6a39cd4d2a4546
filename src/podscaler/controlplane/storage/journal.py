"""The durable copy: every retained version of every object, in one SQLite file.

`store` calls it from one thread at a time and keeps everything else in memory. One commit is one transaction, synced to
disk before it returns (WAL, synchronous=FULL), so what was acknowledged survives kill -9 and a power cut. The file and
its format are `storage.database`'s, the directory that it claims as long as it is open `storage.directory`'s.

A row is one version. A row stays while it is the newest of its object, or while the log still needs it: to show the
event itself, or what the object was before. `store` says which rows are obsolete.

Part of the disk is kept back (`storage.reserve`). While it `is_short`, a commit that frees space may use it
(`make_room`), and what was freed goes there first (`refill`).
"""

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from podscaler.base.errors import UsageError
from podscaler.controlplane.storage import database as databases
from podscaler.controlplane.storage import directory as directories
from podscaler.controlplane.storage.database import Row, State
from podscaler.controlplane.storage.directory import ClusterMarker
from podscaler.controlplane.storage.reserve import Reserve

_PAGE_BYTES = 4096
_REFILL_STEPS = 8
"""Each gives a quarter of the reserve back to the disk: together they give all that it needs (`Reserve.fill`)."""
_LEAST_CHECKPOINT_PAGES = 16
"""How much SQLite's log grows at least before it is folded into the file; at most to half of the reserve."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The newest revision ever given out, and the one after which the log is complete."""

    revision: int
    floor: int


class Journal:
    """The open file. Made by `open_journal`; every method blocks on the disk.

    Raises sqlite3.Error where the disk fails; a failed commit has changed nothing.
    """

    def __init__(self, path: Path, lock: int, database: sqlite3.Connection, reserve: Reserve) -> None:
        self.path = path
        self._lock = lock
        self._database = database
        self._reserve = reserve

    @property
    def is_short(self) -> bool:
        """Whether the space that is kept back is not all there."""
        return not self._reserve.is_whole

    def bounds(self) -> Bounds:
        """Revision and floor as of the last commit."""
        state = databases.read_state(self._database, self.path)
        return Bounds(state.revision, state.floor)

    def rows(self) -> Iterator[Row]:
        """All rows, oldest first."""
        for row in self._database.execute(f"{databases.SELECT_ROWS} ORDER BY revision"):
            yield Row(*row)

    def commit(self, rows: Sequence[Row], obsolete: Sequence[int], bounds: Bounds) -> None:
        """Add `rows`, drop the `obsolete` revisions and move the bounds, all or nothing; returns once it is on disk."""
        execute = self._database.execute
        execute("BEGIN IMMEDIATE")
        try:
            self._database.executemany(
                "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(r.revision, r.previous, r.at_ns, r.resource, r.namespace, r.name, r.body) for r in rows],
            )
            self._database.executemany("DELETE FROM versions WHERE revision = ?", [(each,) for each in obsolete])
            execute("UPDATE state SET revision = ?, floor = ?", (bounds.revision, bounds.floor))
            execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                execute("ROLLBACK")
            raise

    def make_room(self) -> None:
        """Let the next commit use what is kept back, and what the log of SQLite takes on the disk."""
        self._reserve.release()
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @property
    def obsolete_at_once(self) -> int:
        """How many obsolete rows one commit may delete while it is short: each changes a page or two."""
        return self._step_pages

    def refill(self) -> bool:
        """Give unused pages back to the disk and keep space back again, as far as there is; whether that is all."""
        for _ in range(_REFILL_STEPS):
            (unused,) = self._database.execute("PRAGMA freelist_count").fetchone()
            if self._reserve.fill() or not unused:
                break
            # `execute` takes one step, which is one page
            self._database.executescript(f"PRAGMA incremental_vacuum({self._step_pages})")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return self._reserve.fill()

    @property
    def _step_pages(self) -> int:
        return max(_LEAST_CHECKPOINT_PAGES, self._reserve.size_bytes // 4 // _PAGE_BYTES)

    def close(self) -> None:
        """Fold the log into the file, note how far the cluster got, and give the directory free."""
        try:
            state = databases.read_state(self._database, self.path)
            self._database.close()
            _remember(self.path.parent, ClusterMarker(state.cluster, state.revision))
        finally:
            self._database.close()
            os.close(self._lock)


def open_journal(directory: Path, *, is_synced: bool = True, is_new_cluster: bool = False) -> Journal:
    """Claim `directory` (made with mode 0700 if it is not there) and open the file in it.

    Args:
        directory: see `storage.directory`.
        is_synced: False is for tests, which have neither power cuts (one may lose the last commits then; a kill does
            not) nor full disks.
        is_new_cluster: whether an empty cluster may take the place of one whose database is lost.

    Raises:
        UsageError: the directory is another process's or user's, cannot be used, has lost its database, or holds
            something that this version cannot read; nothing in it was changed.
    """
    lock = directories.claim(directory)
    try:
        return _open(directory, lock, is_synced=is_synced, is_new_cluster=is_new_cluster)
    except OSError as error:
        os.close(lock)
        raise UsageError(f"The data directory {directory} cannot be used: {error.strerror}.") from error
    except BaseException:
        os.close(lock)
        raise


def _open(directory: Path, lock: int, *, is_synced: bool, is_new_cluster: bool) -> Journal:
    path = directory / directories.DATABASE
    marker = None if is_new_cluster else directories.read_marker(directory)
    reserve = Reserve(directory, is_wanted=is_synced)
    reserve.release_if_tight()
    database = databases.open_database(path, may_create=lambda: _check_lost(path, marker))
    try:
        if reserve.size_bytes:
            pages = max(_LEAST_CHECKPOINT_PAGES, reserve.size_bytes // 2 // _PAGE_BYTES)
            database.execute(f"PRAGMA wal_autocheckpoint = {pages}").fetchall()
        if not is_synced:
            database.execute("PRAGMA synchronous = OFF")
        state = databases.read_state(database, path)
        _check_marker(path, marker, state)
        _remember(directory, ClusterMarker(state.cluster, state.revision))
        reserve.fill()
    except sqlite3.Error as error:
        database.close()
        raise UsageError(databases.damaged(path, error)) from error
    except BaseException:
        database.close()
        raise
    return Journal(path, lock, database, reserve)


def _check_lost(path: Path, marker: ClusterMarker | None) -> None:
    """Raises UsageError if there was a database before."""
    if marker is not None:
        raise UsageError(
            f"{path} is missing or empty, but this data directory had a cluster (id {marker.id}, revision "
            f"{marker.revision} or later): bring it back by `podscaler restore --data-dir {path.parent} FILE`, "
            "or start an empty cluster by `podscaler up --new-cluster`."
        )


def _check_marker(path: Path, marker: ClusterMarker | None, state: State) -> None:
    """Raises UsageError if the database is not the one that the directory had last."""
    if marker is None:
        return
    why = ""
    if state.cluster != marker.id:
        why = f"is of another cluster (id {state.cluster}) than the one of this data directory (id {marker.id})"
    elif state.revision < marker.revision:
        why = (
            f"is older (revision {state.revision}) than the one of this data directory was (revision {marker.revision})"
        )
    if why:
        raise UsageError(
            f"{path} {why}: `podscaler restore --data-dir {path.parent} FILE` puts a backup in its place, and "
            f"`rm {path.parent / directories.MARKER}` makes `podscaler up` use it as it is."
        )


def _remember(directory: Path, marker: ClusterMarker) -> None:
    """Note how far the cluster got; what cannot be written on a full disk stands in the way of nothing."""
    try:
        directories.write_marker(directory, marker)
    except UsageError as error:
        logger.warning("%s: the next start will not notice if the database is replaced by an older one", error)
