"""Defines and opens the SQLite file of objects, and migrates files of earlier formats.

`journal` opens it for a running control plane; backups are such files, too. The format is a number in the file
(`PRAGMA user_version`): 1 is the first one; 2 adds the cluster's id, and returns unused pages to the disk. A new format
needs a higher `FORMAT`, an entry in `_MIGRATIONS` and a test that starts with a file of the previous format.

The table `versions` has a row for each version of an object; `body` is NULL for a deletion. The table `state` has one
row; its column `floor` is the compacted revision. A new column of `versions` changes `Row`, `SELECT_ROWS`, the INSERT
of `journal` and of `backup`, and the queries of `salvage`.
"""

import itertools
import logging
import os
import secrets
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from podscaler.base.errors import UsageError
from podscaler.controlplane.storage import data_directory, disk_reserve
from podscaler.controlplane.storage.entries import Entry

FORMAT = 2
APPLICATION_ID = 0x706F6473
"""Marks a SQLite file as podscaler's ("pods" in ASCII)."""

_CREATE_TABLES = (
    """CREATE TABLE versions (
         revision INTEGER PRIMARY KEY,
         previous INTEGER NOT NULL,
         at_ns INTEGER NOT NULL,
         resource TEXT NOT NULL,
         namespace TEXT NOT NULL,
         name TEXT NOT NULL,
         body BLOB
       )""",
    "CREATE TABLE state (revision INTEGER NOT NULL, floor INTEGER NOT NULL, cluster TEXT NOT NULL DEFAULT '')",
)
_PRIMARY_CODE_MASK = 0xFF
"""The bits of an extended result code of SQLite that are the primary code."""
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA journal_size_limit = 16777216",
    "PRAGMA secure_delete = FAST",  # else every page that a delete frees is written once more, on a full disk too
)
"""Settings of a connection that writes: each commit is on the disk before it returns."""
INCREMENTAL_VACUUM = "PRAGMA auto_vacuum = INCREMENTAL"
"""Lets freed pages return to the disk; takes effect in an empty file, or with the next VACUUM."""
SELECT_ROWS = "SELECT revision, previous, at_ns, resource, namespace, name, CAST(body AS BLOB) FROM versions"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Row:
    """One version of an object.

    Attributes:
        revision: its resourceVersion as a number.
        previous: the revision of the version that it replaced, 0 for a new object.
        at_ns: the wall clock at the write, nanoseconds since the epoch.
        resource: the `Resource.key` of the kind.
        body: the object as JSON, None for a deletion.
    """

    revision: int
    previous: int
    at_ns: int
    resource: str
    namespace: str
    name: str
    body: bytes | None

    @property
    def title(self) -> str:
        """The object in messages: `deployments.apps default/web`."""
        return f"{self.resource} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class State:
    """The row of the table `state`.

    Attributes:
        revision: the newest assigned revision.
        compacted_revision: all events after this revision are retained.
        cluster: the cluster's id (a UUID), empty in format 1.
    """

    revision: int
    compacted_revision: int
    cluster: str


def entry_of(row: Row) -> Entry | None:
    """The entry of a row, None for a deletion. Raises ValueError if its body is damaged."""
    if row.body is None:
        return None
    row.body.decode()  # the JSON decoder does not validate strings that it skips
    return Entry(row.resource, row.namespace, row.name, row.revision, row.body)


def open_database(path: Path, *, check_creation: Callable[[], None] = lambda: None) -> sqlite3.Connection:
    """Open the file for writing in the current format; it is created or migrated as needed.

    Args:
        path: the file, in a claimed data directory.
        check_creation: called before a file is created, and before an empty one is filled (so twice for a new one);
            raises UsageError if that is not allowed.

    Raises:
        UsageError: the file is damaged, of a newer format or not a store (it is not changed then), locked, on a full
            disk, or the migration failed.
        OSError: the file cannot be opened.
    """
    if not path.exists():
        check_creation()
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # others could read a file that SQLite creates
    with _errors_with_path(path):
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            file_format = read_format(database, path)
            if not file_format:
                check_creation()
                database.execute(INCREMENTAL_VACUUM)
            for pragma in _PRAGMAS:
                database.execute(pragma)
            if not file_format:
                create_tables(database)
                data_directory.sync(path.parent)
            elif file_format < FORMAT:
                _copy_and_migrate(database, path, file_format)
            return database
        except BaseException:
            database.close()
            raise


def open_to_read(path: Path, *, is_damaged: bool = False) -> sqlite3.Connection:
    """Open an existing file for reading, while another process may write to it.

    `is_damaged` also opens a truncated file. Raises UsageError if it is not a store, sqlite3.Error if it cannot be
    read.
    """
    if not path.is_file():
        raise UsageError(f"{path} is not there: a cluster's database is called {data_directory.DATABASE}.")
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA query_only = ON")
        if is_damaged:
            database.execute("PRAGMA writable_schema = ON")  # else SQLite reads no page of a truncated file
        if not read_format(database, path):
            raise UsageError(f"{path} is empty: there is no cluster in it.")
        return database
    except BaseException:
        database.close()
        raise


def read_format(database: sqlite3.Connection, path: Path) -> int:
    """The file's format, 0 for an empty file.

    Raises UsageError if it is not a store, or of a newer format; sqlite3.Error if it cannot be read.
    """
    (application_id,) = database.execute("PRAGMA application_id").fetchone()
    (file_format,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not (application_id or file_format or tables):
        return 0
    if application_id != APPLICATION_ID or not file_format:
        raise UsageError(f"{path} is not a store of podscaler's: move it away, or name another data directory.")
    if file_format > FORMAT:
        raise UsageError(
            f"{path} was written by a newer podscaler (format {file_format}, this one knows {FORMAT}): "
            "use that version, or name another data directory."
        )
    return int(file_format)


def create_tables(database: sqlite3.Connection, cluster: str = "") -> None:
    """Create the tables of a cluster (with a new id unless given); until the commit the file counts as empty.

    Raises sqlite3.Error.
    """
    database.execute("BEGIN IMMEDIATE")
    for statement in _CREATE_TABLES:
        database.execute(statement)
    database.execute("INSERT INTO state VALUES (1, 1, ?)", (cluster or str(uuid.uuid4()),))
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {FORMAT}")
    database.execute("COMMIT")


def read_state(database: sqlite3.Connection, path: Path) -> State:
    """The state of the last commit, from a file of any format. Raises UsageError if there is none, sqlite3.Error."""
    rows = database.execute("SELECT * FROM state").fetchall()
    if len(rows) != 1:
        raise UsageError(damaged_message(path, f"its table `state` has {len(rows)} rows, not one"))
    revision, compacted_revision, *cluster_ids = rows[0]  # format 1 has no column `cluster`
    return State(revision, compacted_revision, cluster_ids[0] if cluster_ids else "")


def write_private_copy(
    database: sqlite3.Connection, path: Path, change_copy: Callable[[sqlite3.Connection], None] = lambda _: None
) -> None:
    """Copy the database atomically to `path` (mode 0600), replacing an existing file.

    `change_copy` may change the copy before it is renamed. Raises OSError, sqlite3.Error.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as copy:
            database.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            change_copy(copy)
        data_directory.sync(temporary)
        temporary.replace(path)
        data_directory.sync(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def find_damage(database: sqlite3.Connection) -> str:
    """The first damage of a database as text, empty if it is intact. Raises sqlite3.Error if it is unreadable."""
    (report,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if report != "ok":
        return " ".join(report.split())
    for columns in database.execute(SELECT_ROWS):
        row = Row(*columns)
        try:
            entry_of(row)
        except ValueError as error:
            return body_damage(row, error)
    return ""


def body_damage(row: Row, error: ValueError) -> str:
    """The description of a damaged body."""
    return f"the body of {row.title} (revision {row.revision}) is damaged: {error}"


def damaged_message(path: Path, reason: object) -> str:
    """The error message for a damaged file, with the commands for recovery."""
    folder = path.parent
    return (
        f"{path} cannot be read as a store of objects: {reason}. `podscaler backup --salvage --data-dir {folder} FILE` "
        f"saves what can be read, `podscaler restore --force --data-dir {folder} FILE` goes on with that."
    )


def unusable_message(path: Path, error: sqlite3.Error) -> str:
    """The error message for a file that SQLite cannot use: a damaged one, or one on a full disk, locked, forbidden."""
    if disk_reserve.is_full(error):
        return f"{path} cannot be used, for its disk is full ({error}): free some space there. Its objects are kept."
    primary = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE_MASK
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"{path} is locked by another process ({error}), perhaps a SQLite shell or a backup program: end that."
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH):
        return f"{path} cannot be opened for writing ({error}): check the permissions of the file and its folder."
    if primary == sqlite3.SQLITE_IOERR:
        return f"{path} cannot be read or written, for its disk fails ({error}): see the log of the kernel."
    return damaged_message(path, error)


def migrate_tables(database: sqlite3.Connection, file_format: int) -> None:
    """Migrate a file from format `file_format` to the current one, in one transaction. Raises sqlite3.Error."""
    database.execute("BEGIN IMMEDIATE")
    try:
        for earlier_format in range(file_format, FORMAT):
            _MIGRATIONS[earlier_format](database)
        database.execute(f"PRAGMA user_version = {FORMAT}")
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _copy_and_migrate(database: sqlite3.Connection, path: Path, file_format: int) -> None:
    """Migrate a data directory's file, after copying it to `objects.sqlite.format1`, `objects.sqlite.format1-2`, ...

    Raises UsageError if that fails; the file is then as it was. An existing copy is never replaced, as it may be the
    only good one; one with the same content, left by a failed migration, is used again, so that repeated failures do
    not fill the disk.
    """
    copy_paths = (path.with_name(f"{path.name}.format{file_format}{suffix}") for suffix in _copy_suffixes())
    try:
        copy = next(
            candidate for candidate in copy_paths if not candidate.exists() or _has_same_content(candidate, database)
        )
        if not copy.exists():
            write_private_copy(database, copy)
        database.execute(INCREMENTAL_VACUUM)
        database.execute("VACUUM")
        migrate_tables(database, file_format)
    except (sqlite3.Error, OSError) as error:
        failure = f"{path} of format {file_format} cannot be brought to format {FORMAT}, and holds what it held"
        raise UsageError(f"{failure}: {error}.") from error
    logger.warning("%s was brought from format %d to %d; a copy of before is %s", path, file_format, FORMAT, copy)


def _copy_suffixes() -> Iterator[str]:
    """`""`, `-2`, `-3`, ... without an end."""
    yield ""
    yield from (f"-{number}" for number in itertools.count(2))


def _has_same_content(copy: Path, database: sqlite3.Connection) -> bool:
    """Whether a file has the format, state and rows of `database`. Raises sqlite3.Error for `database` only."""
    for query in ("PRAGMA user_version", "SELECT * FROM state", f"{SELECT_ROWS} ORDER BY revision"):
        row_pairs = itertools.zip_longest(database.execute(query), _rows_of_copy(copy, query))
        if any(row != copied_row for row, copied_row in row_pairs):
            return False
    return True


def _rows_of_copy(copy: Path, query: str) -> Iterator[tuple[object, ...]]:
    """The result of the query; an empty row, which equals no other, if the file cannot be read."""
    try:
        with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro", uri=True)) as database:
            yield from database.execute(query)
    except sqlite3.Error:
        yield ()


def _add_cluster_id(database: sqlite3.Connection) -> None:
    """Migrate from format 1 to 2; the pages are rearranged by the VACUUM of `_copy_and_migrate` and `restore`."""
    database.execute("ALTER TABLE state ADD COLUMN cluster TEXT NOT NULL DEFAULT ''")
    database.execute("UPDATE state SET cluster = ?", (str(uuid.uuid4()),))


_MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {1: _add_cluster_id}
"""The migration from each format to the next one."""


@contextmanager
def _errors_with_path(path: Path) -> Iterator[None]:
    """Turn errors of SQLite within the block into a UsageError that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise UsageError(unusable_message(path, error)) from error
