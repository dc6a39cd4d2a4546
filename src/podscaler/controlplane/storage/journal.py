"""Commits changes durably: all retained versions of all objects are rows of one SQLite file.

`storage.store` calls it from one thread at a time. One commit is one transaction, synced to disk before it returns
(WAL, synchronous=FULL), so that acknowledged writes survive kill -9 and a power cut. `database_file` defines the file's
format, `data_directory` the folder, which is claimed while the journal is open.

A row is one version of an object. It stays in the file while it is the newest version of its object, or while the
change log contains its event or the event that replaced it. `store` decides which rows are obsolete.

Some disk space is reserved (`disk_reserve`). While that reserve is not whole (`is_reserve_short`), a commit that frees
space may use it (`make_room`), and freed space refills it first (`refill`).
"""

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from podscaler.base.errors import UsageError
from podscaler.controlplane.storage import data_directory, database_file
from podscaler.controlplane.storage.data_directory import ClusterMarker
from podscaler.controlplane.storage.database_file import Row, State
from podscaler.controlplane.storage.disk_reserve import Reserve

_PAGE_BYTES = 4096
_MAX_REFILL_STEPS = 8
"""Each step frees a quarter of the reserve; together they free as much as `Reserve.fill` needs."""
_MIN_CHECKPOINT_PAGES = 16
"""The least size of SQLite's write-ahead log at a checkpoint; the most is half of the reserve."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of revisions in the file.

    Attributes:
        revision: the newest assigned revision.
        compacted_revision: all events after this revision are retained.
    """

    revision: int
    compacted_revision: int


class Journal:
    """The open file, from `open_journal`. Every method blocks on the disk.

    Methods raise sqlite3.Error if the disk fails; a failed commit has changed nothing.
    """

    def __init__(self, path: Path, lock_descriptor: int, database: sqlite3.Connection, reserve: Reserve) -> None:
        self.path = path
        self._lock_descriptor = lock_descriptor
        self._database = database
        self._reserve = reserve

    @property
    def is_reserve_short(self) -> bool:
        """Whether the reserve is not whole."""
        return not self._reserve.is_whole

    def bounds(self) -> Bounds:
        """The bounds of the last commit. Raises UsageError if the table `state` is damaged."""
        state = database_file.read_state(self._database, self.path)
        return Bounds(state.revision, state.compacted_revision)

    def rows(self) -> Iterator[Row]:
        """All rows, oldest first."""
        for row in self._database.execute(f"{database_file.SELECT_ROWS} ORDER BY revision"):
            yield Row(*row)

    def commit(self, rows: Sequence[Row], obsolete: Sequence[int], bounds: Bounds) -> None:
        """Add `rows`, delete the `obsolete` revisions and set the bounds atomically; returns once synced to disk."""
        execute = self._database.execute
        execute("BEGIN IMMEDIATE")
        try:
            self._database.executemany(
                "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (row.revision, row.previous, row.at_ns, row.resource, row.namespace, row.name, row.body)
                    for row in rows
                ],
            )
            self._database.executemany(
                "DELETE FROM versions WHERE revision = ?", [(revision,) for revision in obsolete]
            )
            execute("UPDATE state SET revision = ?, floor = ?", (bounds.revision, bounds.compacted_revision))
            execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                execute("ROLLBACK")
            raise

    def make_room(self) -> None:
        """Release the reserve and the space of SQLite's write-ahead log for the next commit. Raises OSError, too."""
        self._reserve.release()
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @property
    def obsolete_rows_max(self) -> int:
        """The most obsolete rows that one commit may delete while space is short: each changes a page or two."""
        return self._step_pages

    def refill(self) -> bool:
        """Free unused pages and refill the reserve as far as possible; returns whether it is whole.

        Raises OSError, too.
        """
        for _ in range(_MAX_REFILL_STEPS):
            (unused_pages,) = self._database.execute("PRAGMA freelist_count").fetchone()
            if self._reserve.fill() or not unused_pages:
                break
            # `execute` would run one step, which frees one page
            self._database.executescript(f"PRAGMA incremental_vacuum({self._step_pages})")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return self._reserve.fill()

    @property
    def _step_pages(self) -> int:
        """How many pages one step of `refill` frees: a quarter of the reserve, but not too few."""
        return max(_MIN_CHECKPOINT_PAGES, self._reserve.size_bytes // 4 // _PAGE_BYTES)

    def close(self) -> None:
        """Checkpoint and close the file, update the marker, and unlock the directory, even if that fails.

        Raises UsageError if the table `state` is damaged.
        """
        try:
            state = database_file.read_state(self._database, self.path)
            self._database.close()
            _update_marker(self.path.parent, state)
        finally:
            self._database.close()
            os.close(self._lock_descriptor)


def open_journal(directory: Path, *, is_synced: bool = True, is_new_cluster: bool = False) -> Journal:
    """Claim `directory` (created with mode 0700 if necessary) and open the file in it.

    Args:
        directory: the data directory.
        is_synced: whether commits are synced; False for tests, which have neither power cuts nor full disks.
        is_new_cluster: whether an empty cluster may replace one whose database is lost.

    Raises:
        UsageError: the directory is in use, belongs to another user, cannot be used, has lost its database, or has
            one that this version cannot read; nothing in it was changed.
    """
    lock_descriptor = data_directory.claim(directory)
    try:
        return _open_claimed(directory, lock_descriptor, is_synced=is_synced, is_new_cluster=is_new_cluster)
    except OSError as error:
        os.close(lock_descriptor)
        raise UsageError(f"The data directory {directory} cannot be used: {error.strerror}.") from error
    except BaseException:
        os.close(lock_descriptor)
        raise


def _open_claimed(directory: Path, lock_descriptor: int, *, is_synced: bool, is_new_cluster: bool) -> Journal:
    """The journal of a directory whose lock is held. Raises UsageError if the database cannot be used, or is lost."""
    path = directory / data_directory.DATABASE
    marker = None if is_new_cluster else data_directory.read_marker(directory)
    reserve = Reserve(directory, is_wanted=is_synced)
    reserve.release_if_tight()
    database = database_file.open_database(path, check_creation=lambda: _check_not_lost(path, marker))
    try:
        if reserve.size_bytes:
            pages = max(_MIN_CHECKPOINT_PAGES, reserve.size_bytes // 2 // _PAGE_BYTES)
            database.execute(f"PRAGMA wal_autocheckpoint = {pages}").fetchall()
        if not is_synced:
            database.execute("PRAGMA synchronous = OFF")
        state = database_file.read_state(database, path)
        _check_marker(path, marker, state)
        _update_marker(directory, state)
        reserve.fill()
    except sqlite3.Error as error:
        database.close()
        raise UsageError(database_file.unusable_message(path, error)) from error
    except BaseException:
        database.close()
        raise
    return Journal(path, lock_descriptor, database, reserve)


def _check_not_lost(path: Path, marker: ClusterMarker | None) -> None:
    """Raise UsageError if the directory had a database before."""
    if marker is not None:
        raise UsageError(
            f"{path} is missing or empty, but this data directory had a cluster (id {marker.id}, revision "
            f"{marker.revision} or later): bring it back by `podscaler restore --data-dir {path.parent} FILE`, "
            "or start an empty cluster by `podscaler up --new-cluster`."
        )


def _check_marker(path: Path, marker: ClusterMarker | None, state: State) -> None:
    """Raise UsageError if the database is not the last one of the directory."""
    if marker is None:
        return
    mismatch = ""
    if state.cluster != marker.id:
        mismatch = f"is of another cluster (id {state.cluster}) than the one of this data directory (id {marker.id})"
    elif state.revision < marker.revision:
        mismatch = (
            f"is older (revision {state.revision}) than the one of this data directory was (revision {marker.revision})"
        )
    if mismatch:
        raise UsageError(
            f"{path} {mismatch}: `podscaler restore --data-dir {path.parent} FILE` puts a backup in its place, and "
            f"`rm {path.parent / data_directory.MARKER}` makes `podscaler up` use it as it is."
        )


def _update_marker(directory: Path, state: State) -> None:
    """Write the marker; a failure on a full disk is only logged."""
    try:
        data_directory.write_marker(directory, ClusterMarker(state.cluster, state.revision))
    except UsageError as error:
        logger.warning("%s: the next start will not notice if the database is replaced by an older one", error)
