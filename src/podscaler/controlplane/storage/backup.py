"""Backs up a cluster into one file, while `podscaler up` may be running; `restore` reads it.

The command `podscaler backup` calls `write`. A backup is a SQLite database as described in `database_file`, with the
cluster's credentials in a table of its own (`files`): whoever has it has the permissions of the cluster's admin. A new
credential file: a line in `data_directory.CONNECTION_FILES`.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from podscaler.base.errors import UsageError
from podscaler.controlplane.credentials import secret_files
from podscaler.controlplane.storage import data_directory, database_file, salvage
from podscaler.controlplane.storage.database_file import State

_CREATE_FILES_TABLE = "CREATE TABLE files (name TEXT PRIMARY KEY, content BLOB NOT NULL)"


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """The content of a backup in numbers.

    Attributes:
        objects: the number of objects.
        revision: the newest assigned revision.
        lost: for a salvage, a line for each object or range of revisions that could not be read.
    """

    objects: int
    revision: int
    lost: tuple[str, ...] = ()


def write(directory: Path, path: Path, *, is_forced: bool = False, is_salvage: bool = False) -> BackupSummary:
    """Back up the cluster in `directory` atomically into the file `path` (mode 0600).

    Args:
        directory: a data directory; it may be in use.
        path: the backup; must not exist, unless `is_forced`.
        is_forced: whether an existing file is replaced.
        is_salvage: whether to skip what cannot be read, instead of failing.

    Raises:
        UsageError: there is no cluster, it cannot be read, or the file cannot be written.
    """
    source = directory / data_directory.DATABASE
    try:
        if path.exists() and not is_forced:
            raise UsageError(f"{path} is there already: name another file, or --force to replace it.")
        data_directory.check_owner(directory)
        with closing(database_file.open_to_read(source, is_damaged=is_salvage)) as database:
            write_copy = _write_salvaged if is_salvage else _write_intact
            return write_copy(database, directory, path)
    except sqlite3.Error as error:
        message = f"Nothing of {source} can be read: {error}. A backup of before, or another copy, is needed."
        raise UsageError(message if is_salvage else database_file.unusable_message(source, error)) from error
    except OSError as error:
        raise UsageError(f"The backup cannot be written to {path}: {error.strerror or error}.") from error


def summarize(database: sqlite3.Connection, path: Path) -> BackupSummary:
    """The summary of an intact database; `path` is for error messages. Raises UsageError, sqlite3.Error."""
    # the newest version of each object that is not deleted: neither a deletion nor replaced by a later version
    query = "SELECT count(*) FROM versions WHERE body IS NOT NULL AND revision NOT IN (SELECT previous FROM versions)"
    (objects,) = database.execute(query).fetchone()
    return BackupSummary(objects, database_file.read_state(database, path).revision)


def credential_files(database: sqlite3.Connection) -> dict[str, bytes]:
    """The credential files in a backup, by path relative to the data directory; empty without any.

    Raises sqlite3.Error.
    """
    (has_files,) = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'files'").fetchone()
    return dict(database.execute("SELECT name, content FROM files")) if has_files else {}


def _write_intact(database: sqlite3.Connection, directory: Path, path: Path) -> BackupSummary:
    """Back up an intact database with the credentials. Raises UsageError if it is damaged, sqlite3.Error, OSError."""

    def check_and_add_files(copy: sqlite3.Connection) -> None:
        damage = database_file.find_damage(copy)
        if damage:
            raise UsageError(database_file.damaged_message(directory / data_directory.DATABASE, damage))
        _add_credential_files(copy, directory)

    database_file.write_private_copy(database, path, check_and_add_files)
    with closing(database_file.open_to_read(path)) as copy:
        return summarize(copy, path)


def _write_salvaged(database: sqlite3.Connection, directory: Path, path: Path) -> BackupSummary:
    """Back up the readable objects of a damaged database, with an empty change log that begins after them.

    Raises sqlite3.Error, OSError, UsageError.
    """
    known_state = _known_state(database, directory)
    salvaged = salvage.read(database, known_state.revision)
    newest_readable = max((row.revision for row in salvaged.rows), default=1)  # 1 is the revision of an empty cluster
    revision = max(newest_readable, known_state.revision)

    def fill_copy(copy: sqlite3.Connection) -> None:
        database_file.create_tables(copy, known_state.cluster)
        copy.execute("BEGIN")
        copy.executemany(
            "INSERT INTO versions VALUES (?, 0, ?, ?, ?, ?, ?)",
            [(row.revision, row.at_ns, row.resource, row.namespace, row.name, row.body) for row in salvaged.rows],
        )
        copy.execute("UPDATE state SET revision = ?, floor = ?", (revision, revision))
        copy.execute("COMMIT")
        _add_credential_files(copy, directory)

    with closing(sqlite3.connect(":memory:")) as empty_database:
        database_file.write_private_copy(empty_database, path, fill_copy)
    return BackupSummary(len(salvaged.rows), revision, salvaged.lost)


def _known_state(database: sqlite3.Connection, directory: Path) -> State:
    """The state of the database, or that of the marker if it is damaged: no revision may be assigned twice.

    Without either the revision is 0 and the cluster's id empty.
    """
    try:
        return database_file.read_state(database, directory / data_directory.DATABASE)
    except (sqlite3.Error, UsageError):
        marker = data_directory.read_marker(directory)
        return State(marker.revision, 0, marker.id) if marker else State(0, 0, "")


def _add_credential_files(copy: sqlite3.Connection, directory: Path) -> None:
    """Add the table of the credential files to a copy of the database."""
    copy.execute(_CREATE_FILES_TABLE)
    for name in _credential_paths(directory):
        content = secret_files.read(directory / name)
        if content is not None:
            copy.execute("INSERT INTO files VALUES (?, ?)", (name, content))


def _credential_paths(directory: Path) -> Iterator[str]:
    """The paths of the files with credentials, relative to the directory; some may not exist."""
    yield from data_directory.CONNECTION_FILES
    certificates = sorted((directory / data_directory.CERTIFICATES).rglob("*.pem"))
    yield from (str(path.relative_to(directory)) for path in certificates)
