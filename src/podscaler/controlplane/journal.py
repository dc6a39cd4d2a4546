"""The durable copy: every retained version of every object, in one SQLite file.

`store` calls it from one thread at a time and keeps everything else in memory. One commit is one transaction, synced to
disk before it returns (WAL, synchronous=FULL), so what was acknowledged survives kill -9 and a power cut. The file is
bound to a format number; its directory belongs to one process at a time (flock, held as long as the journal is open).

A row is one version. A row stays while it is the newest of its object, or while the log still needs it: to show the
event itself, or what the object was before. `store` says which rows are obsolete.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from podscaler.errors import UsageError

FORMAT = 1
APPLICATION_ID = 0x706F6473
FILE_NAME = "objects.sqlite"
LOCK_NAME = "lock"

_TABLES = (
    """CREATE TABLE versions (
         revision INTEGER PRIMARY KEY,
         previous INTEGER NOT NULL,
         at_ns INTEGER NOT NULL,
         resource TEXT NOT NULL,
         namespace TEXT NOT NULL,
         name TEXT NOT NULL,
         body BLOB
       )""",
    "CREATE TABLE state (revision INTEGER NOT NULL, floor INTEGER NOT NULL)",
    "INSERT INTO state VALUES (1, 1)",
)
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA journal_size_limit = 16777216",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One version: the revision that made it, the one it replaced (0: none), and its body (None: a deletion)."""

    revision: int
    previous: int
    at_ns: int
    resource: str
    namespace: str
    name: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The newest revision ever given out, and the one after which the log is complete."""

    revision: int
    floor: int


class Journal:
    """The open file. Made by `open_journal`; every method blocks on the disk.

    Raises sqlite3.Error where the disk fails; a failed commit has changed nothing.
    """

    def __init__(self, path: Path, lock: int, database: sqlite3.Connection) -> None:
        self._path = path
        self._lock = lock
        self._database = database

    def bounds(self) -> Bounds:
        """Revision and floor as of the last commit."""
        revision, floor = self._database.execute("SELECT revision, floor FROM state").fetchone()
        return Bounds(revision, floor)

    def rows(self) -> Iterator[Row]:
        """All rows, oldest first."""
        query = "SELECT revision, previous, at_ns, resource, namespace, name, body FROM versions ORDER BY revision"
        for row in self._database.execute(query):
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

    def close(self) -> None:
        """Fold the log into the file and give the directory free."""
        try:
            self._database.close()
        finally:
            os.close(self._lock)


def open_journal(directory: Path, *, is_synced: bool = True) -> Journal:
    """Claim `directory` (made with mode 0700 if it is not there) and open the file in it.

    Without `is_synced` a power cut (not a kill) may lose the last commits: for tests, which have none.

    Raises:
        UsageError: the directory is another process's, cannot be used, or holds something that this version cannot
            read; nothing in it was changed.
    """
    lock = _claim(directory)
    path = directory / FILE_NAME
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        database = _open_database(path)
        if not is_synced:
            database.execute("PRAGMA synchronous = OFF")
        return Journal(path, lock, database)
    except OSError as error:
        os.close(lock)
        raise UsageError(f"The data directory {directory} cannot be used: {error.strerror}.") from error
    except BaseException:
        os.close(lock)
        raise


def _claim(directory: Path) -> int:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"The data directory {directory} cannot be used: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        message = f"The data directory {directory} is in use by another podscaler: stop that one, or name another one."
        raise UsageError(message) from error
    return lock


def _open_database(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        if _is_empty(database, path):
            _set_up(database)
            _create(database)
            _sync_directory(path.parent)
        else:
            _set_up(database)
        return database
    except sqlite3.Error as error:
        database.close()
        raise UsageError(f"{path} cannot be read as a store of objects: {error}.") from error
    except BaseException:
        database.close()
        raise


def _is_empty(database: sqlite3.Connection, path: Path) -> bool:
    """Whether the schema is still to be made. Raises UsageError if the file is not ours or of a newer format."""
    (application_id,) = database.execute("PRAGMA application_id").fetchone()
    (found,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not (application_id or found or tables):
        return True
    if application_id != APPLICATION_ID:
        raise UsageError(f"{path} is not a store of podscaler's: move it away, or name another data directory.")
    if found > FORMAT:
        raise UsageError(
            f"{path} was written by a newer podscaler (format {found}, this one knows {FORMAT}): "
            "use that version, or name another data directory."
        )
    return False


def _set_up(database: sqlite3.Connection) -> None:
    for pragma in _PRAGMAS:
        database.execute(pragma)


def _create(database: sqlite3.Connection) -> None:
    """Make the tables; until the commit the file counts as empty."""
    database.execute("BEGIN IMMEDIATE")
    for statement in _TABLES:
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {FORMAT}")
    database.execute("COMMIT")


def _sync_directory(directory: Path) -> None:
    """The new file's name must survive a power cut as its content does."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
