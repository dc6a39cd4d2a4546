"""The database of objects: one SQLite file, its format, and how files of earlier formats become today's.

`journal` opens it for a running control plane; backups are such files, too. The format is a number in the file
(`PRAGMA user_version`): 1 is the first one; 2 knows which cluster it belongs to, and gives unused pages back to the
disk. A new format is a line in `_MIGRATIONS` and a test that begins with a file of the format before.

A row is one version of an object. `body` is None for a deletion.
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
from podscaler.controlplane.storage import directory
from podscaler.controlplane.storage.entries import Entry

FORMAT = 2
APPLICATION_ID = 0x706F6473

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
    "CREATE TABLE state (revision INTEGER NOT NULL, floor INTEGER NOT NULL, cluster TEXT NOT NULL DEFAULT '')",
)
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA journal_size_limit = 16777216",
    "PRAGMA secure_delete = FAST",  # else every page that a delete frees is written once more, on a full disk too
)
SHRINKING = "PRAGMA auto_vacuum = INCREMENTAL"
SELECT_ROWS = "SELECT revision, previous, at_ns, resource, namespace, name, CAST(body AS BLOB) FROM versions"

logger = logging.getLogger(__name__)


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

    @property
    def title(self) -> str:
        """What people call the object: `deployments.apps default/web`."""
        return f"{self.resource} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class State:
    """The newest revision ever given out, the one after which the log is complete, and the cluster's id."""

    revision: int
    floor: int
    cluster: str


def entry_of(row: Row) -> Entry | None:
    """The version that a row holds, None for a deletion. Raises ValueError if its body is no JSON object of ours."""
    if row.body is None:
        return None
    row.body.decode()  # the JSON decoder does not look into strings that it skips
    return Entry(row.resource, row.namespace, row.name, row.revision, row.body)


def open_database(path: Path, *, may_create: Callable[[], None] = lambda: None) -> sqlite3.Connection:
    """The file opened for writing, in today's format: created or migrated as needed.

    Args:
        path: the file, in a directory that was claimed.
        may_create: called before a new one is made; raises UsageError where there must be one.

    Raises:
        UsageError: it is damaged, of a newer format or not ours (it is not changed then), or cannot be migrated.
        OSError: it cannot be opened.
    """
    if not path.exists():
        may_create()
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with _named(path):
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            found = check_format(database, path)
            if not found:
                may_create()
                database.execute(SHRINKING)
            for pragma in _PRAGMAS:
                database.execute(pragma)
            if not found:
                create(database)
                directory.sync(path.parent)
            elif found < FORMAT:
                _migrate(database, path, found)
            return database
        except BaseException:
            database.close()
            raise


def open_to_read(path: Path, *, is_damaged: bool = False) -> sqlite3.Connection:
    """An existing file, opened beside whoever writes to it; `is_damaged`: also one that is shorter than it was.

    Raises UsageError if it is not one of ours, sqlite3.Error if it is damaged from the start.
    """
    if not path.is_file():
        raise UsageError(f"{path} is not there: a cluster's database is called {directory.DATABASE}.")
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA query_only = ON")
        if is_damaged:
            database.execute("PRAGMA writable_schema = ON")  # else SQLite reads no page of a truncated file
        if not check_format(database, path):
            raise UsageError(f"{path} is empty: there is no cluster in it.")
        return database
    except BaseException:
        database.close()
        raise


def check_format(database: sqlite3.Connection, path: Path) -> int:
    """The file's format, 0 for an empty file. Raises UsageError if it is not ours or of a newer format."""
    (application_id,) = database.execute("PRAGMA application_id").fetchone()
    (found,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not (application_id or found or tables):
        return 0
    if application_id != APPLICATION_ID or not found:
        raise UsageError(f"{path} is not a store of podscaler's: move it away, or name another data directory.")
    if found > FORMAT:
        raise UsageError(
            f"{path} was written by a newer podscaler (format {found}, this one knows {FORMAT}): "
            "use that version, or name another data directory."
        )
    return int(found)


def create(database: sqlite3.Connection, cluster: str = "") -> None:
    """Make the tables of a cluster, a new one without an id; until the commit the file counts as empty."""
    database.execute("BEGIN IMMEDIATE")
    for statement in _TABLES:
        database.execute(statement)
    database.execute("INSERT INTO state VALUES (1, 1, ?)", (cluster or str(uuid.uuid4()),))
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {FORMAT}")
    database.execute("COMMIT")


def read_state(database: sqlite3.Connection, path: Path) -> State:
    """As of the last commit; of a file of any format. Raises UsageError if there is none, sqlite3.Error."""
    found = database.execute("SELECT * FROM state").fetchall()
    if len(found) != 1:
        raise UsageError(damaged(path, f"its table `state` has {len(found)} rows, not one"))
    revision, floor, *cluster = found[0]
    return State(revision, floor, cluster[0] if cluster else "")


def write_private_copy(
    database: sqlite3.Connection, path: Path, complete: Callable[[sqlite3.Connection], None] = lambda _: None
) -> None:
    """Copy the database as of now into `path` (0600), whole or not at all, and replace what is there.

    `complete` may change the copy before it has its name. Raises OSError, sqlite3.Error.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as copy:
            database.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            complete(copy)
        sync_file(temporary)
        temporary.replace(path)
        directory.sync(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_file(path: Path) -> None:
    """Wait until its content is on disk."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def find_damage(database: sqlite3.Connection) -> str:
    """What is wrong with a database, empty where it can be served. Raises sqlite3.Error where that cannot be read."""
    (said,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        return " ".join(said.split())
    for values in database.execute(SELECT_ROWS):
        row = Row(*values)
        try:
            entry_of(row)
        except ValueError as error:
            return body_damage(row, error)
    return ""


def body_damage(row: Row, error: ValueError) -> str:
    """What is wrong with the body of a row."""
    return f"the body of {row.title} (revision {row.revision}) is damaged: {error}"


def damaged(path: Path, why: object) -> str:
    """The sentence about a file that cannot be read, with the commands that help."""
    folder = path.parent
    return (
        f"{path} cannot be read as a store of objects: {why}. `podscaler backup --salvage --data-dir {folder} FILE` "
        f"saves what can be read, `podscaler restore --force --data-dir {folder} FILE` goes on with that."
    )


def migrate(database: sqlite3.Connection, found: int) -> None:
    """Bring a file of format `found` to today's, in one transaction. Raises sqlite3.Error; nothing is changed then."""
    database.execute("BEGIN IMMEDIATE")
    try:
        for number in range(found, FORMAT):
            _MIGRATIONS[number](database)
        database.execute(f"PRAGMA user_version = {FORMAT}")
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _migrate(database: sqlite3.Connection, path: Path, found: int) -> None:
    """Migrate a data directory's file, after a copy of it: `objects.sqlite.format1`, `objects.sqlite.format1-2`, ...

    No copy is replaced, as it may be the only good one. One that holds the same, left by a migration that failed, is
    used again, so that repeated failures do not fill the disk.
    """
    copies = (path.with_name(f"{path.name}.format{found}{suffix}") for suffix in _copy_suffixes())
    try:
        copy = next(each for each in copies if not each.exists() or _holds_the_same(each, database))
        if not copy.exists():
            write_private_copy(database, copy)
        database.execute(SHRINKING)
        database.execute("VACUUM")
        migrate(database, found)
    except (sqlite3.Error, OSError) as error:
        why = f"{path} of format {found} cannot be brought to format {FORMAT}, and holds what it held"
        raise UsageError(f"{why}: {error}.") from error
    logger.warning("%s was brought from format %d to %d; a copy of before is %s", path, found, FORMAT, copy)


def _copy_suffixes() -> Iterator[str]:
    yield ""
    yield from (f"-{number}" for number in itertools.count(2))


def _holds_the_same(copy: Path, database: sqlite3.Connection) -> bool:
    """Whether a file has the format, the state and the rows of `database`. Raises sqlite3.Error of `database` alone."""
    return all(
        row == copied
        for query in ("PRAGMA user_version", "SELECT * FROM state", f"{SELECT_ROWS} ORDER BY revision")
        for row, copied in itertools.zip_longest(database.execute(query), _rows_of_copy(copy, query))
    )


def _rows_of_copy(copy: Path, query: str) -> Iterator[tuple[object, ...]]:
    """What the query finds; ends with an empty row, which equals no other, where the file cannot be read."""
    try:
        with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro", uri=True)) as database:
            yield from database.execute(query)
    except sqlite3.Error:
        yield ()


def _name_cluster(database: sqlite3.Connection) -> None:
    database.execute("ALTER TABLE state ADD COLUMN cluster TEXT NOT NULL DEFAULT ''")
    database.execute("UPDATE state SET cluster = ?", (str(uuid.uuid4()),))


_MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {1: _name_cluster}
"""From the format of that number to the next one."""


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of the database as a sentence that names it."""
    try:
        yield
    except sqlite3.Error as error:
        raise UsageError(damaged(path, error)) from error
