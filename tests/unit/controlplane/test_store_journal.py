"""The file: claimed, private, versioned, all or nothing."""

import sqlite3
import stat
from pathlib import Path

import pytest

from podscaler.base.errors import UsageError
from podscaler.controlplane.storage.data_directory import DATABASE
from podscaler.controlplane.storage.database_file import FORMAT, Row
from podscaler.controlplane.storage.journal import Bounds, open_journal


def row(revision: int, *, previous: int = 0, body: bytes | None = b"{}") -> Row:
    """A version of an object called after its revision."""
    return Row(revision, previous, 7, "gadgets", "default", f"g{revision}", body)


def test_committed_rows_are_there_after_reopening(tmp_path: Path) -> None:
    """Rows and bounds come back as they were committed."""
    journal = open_journal(tmp_path / "data")
    rows = [row(2), row(3, previous=2, body=None)]
    journal.commit(rows, [], Bounds(3, 1))
    journal.close()
    again = open_journal(tmp_path / "data")
    assert (list(again.rows()), again.bounds()) == (rows, Bounds(3, 1))
    again.close()


def test_obsolete_rows_go_with_the_commit(tmp_path: Path) -> None:
    """What the log dropped is deleted in the transaction that says so."""
    journal = open_journal(tmp_path)
    journal.commit([row(2), row(3)], [], Bounds(3, 1))
    journal.commit([row(4)], [2], Bounds(4, 2))
    assert ([each.revision for each in journal.rows()], journal.bounds()) == ([3, 4], Bounds(4, 2))
    journal.close()


def test_failed_commit_changes_nothing(tmp_path: Path) -> None:
    """A commit that the database refuses leaves rows and bounds as they were, and the next one works."""
    journal = open_journal(tmp_path)
    journal.commit([row(2)], [], Bounds(2, 1))
    with pytest.raises(sqlite3.IntegrityError):
        journal.commit([row(3), row(2)], [2], Bounds(3, 3))
    assert ([each.revision for each in journal.rows()], journal.bounds()) == ([2], Bounds(2, 1))
    journal.commit([row(3)], [], Bounds(3, 1))
    assert journal.bounds() == Bounds(3, 1)
    journal.close()


def test_commits_are_synced_before_they_are_acknowledged(tmp_path: Path) -> None:
    """The journal runs in WAL mode with synchronous=FULL (2): a power cut loses no acknowledged write."""
    journal = open_journal(tmp_path)
    database = journal._database
    settings = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert settings == ["wal", 2]
    journal.close()


def test_files_are_for_the_owner_only(tmp_path: Path) -> None:
    """The directory is 0700, everything in it 0600."""
    directory = tmp_path / "a" / "data"
    journal = open_journal(directory)
    journal.commit([row(2)], [], Bounds(2, 1))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert set(modes.values()) == {0o600}, modes
    journal.close()


def test_directory_belongs_to_one_at_a_time(tmp_path: Path) -> None:
    """A second opener gets a sentence; after the first has closed, it may."""
    journal = open_journal(tmp_path)
    with pytest.raises(UsageError, match=f"The data directory {tmp_path} is in use by another podscaler"):
        open_journal(tmp_path)
    journal.close()
    open_journal(tmp_path).close()


def test_newer_format_is_refused_undamaged(tmp_path: Path) -> None:
    """A file of a newer version gives a sentence, stays as it is, and leaves the directory free."""
    open_journal(tmp_path).close()
    path = tmp_path / DATABASE
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    database.close()
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(UsageError, match=r"was written by a newer podscaler \(format 3, this one knows 2\)"):
            open_journal(tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"this is a text, not a database" * 200, "cannot be read as a store of objects", id="no database"),
        pytest.param(None, "is not a store of podscaler's", id="another program's database"),
    ],
)
def test_foreign_files_are_refused_undamaged(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    """A file that is not ours is not touched."""
    path = tmp_path / DATABASE
    if content is None:
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE other (x)")
        database.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=sentence):
        open_journal(tmp_path)
    assert path.read_bytes() == before


def test_crash_during_creation_counts_as_empty(tmp_path: Path) -> None:
    """A file that was made but got no tables yet is set up by the next start."""
    (tmp_path / DATABASE).touch()
    journal = open_journal(tmp_path)
    assert journal.bounds() == Bounds(1, 1)
    journal.close()


def test_unusable_directory_is_a_sentence(tmp_path: Path) -> None:
    """A path that is a file cannot be a data directory."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be used: "):
        open_journal(tmp_path / "file")
