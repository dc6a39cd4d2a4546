"""The database's format: earlier ones are migrated, damage is named."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from podscaler.base.errors import UsageError
from podscaler.controlplane.storage import database_file as databases
from podscaler.controlplane.storage.data_directory import DATABASE
from podscaler.controlplane.storage.database_file import FORMAT, Row
from podscaler.controlplane.storage.journal import Bounds, open_journal
from podscaler.controlplane.storage.store import open_store, run_inline
from podscaler.testing import VirtualClock

ROWS = [
    Row(2, 0, 7, "gadgets", "default", "a", b'{"metadata":{"name":"a","namespace":"default","uid":"1"}}'),
    Row(3, 0, 7, "gadgets", "", "b", b'{"metadata":{"name":"b","uid":"2"}}'),
]


def write_format_1(directory: Path) -> Path:
    """A data directory as the first version made it."""
    directory.mkdir(mode=0o700)
    path = directory / DATABASE
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.executescript(
            """PRAGMA journal_mode = WAL;
               CREATE TABLE versions (revision INTEGER PRIMARY KEY, previous INTEGER NOT NULL, at_ns INTEGER NOT NULL,
                 resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, body BLOB);
               CREATE TABLE state (revision INTEGER NOT NULL, floor INTEGER NOT NULL);
               INSERT INTO state VALUES (5, 1);
               PRAGMA application_id = 1886348403;
               PRAGMA user_version = 1"""
        )
        for row in ROWS:
            values = (row.revision, row.previous, row.at_ns, row.resource, row.namespace, row.name, row.body)
            database.execute("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    path.chmod(0o600)
    return path


def described(path: Path) -> tuple[int, int, list[tuple[object, ...]]]:
    """Format, way of shrinking and rows of a file."""
    with closing(sqlite3.connect(path)) as database:
        (found,) = database.execute("PRAGMA user_version").fetchone()
        (shrinking,) = database.execute("PRAGMA auto_vacuum").fetchone()
        return found, shrinking, database.execute("SELECT revision, name FROM versions").fetchall()


def test_the_first_format_is_migrated_after_a_copy(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Objects, revision and history are the same; the file as it was is beside it, for its owner only."""
    path = write_format_1(tmp_path / "data")
    journal = open_journal(path.parent)
    assert (list(journal.rows()), journal.bounds()) == (ROWS, Bounds(5, 1))
    journal.close()
    copy = path.with_name(f"{DATABASE}.format1")
    names = [(2, "a"), (3, "b")]
    assert (described(path), described(copy)) == ((FORMAT, 2, names), (1, 0, names))
    assert copy.stat().st_mode & 0o777 == 0o600
    assert f"{path} was brought from format 1 to {FORMAT}; a copy of before is {copy}" in caplog.text


def rename_object(path: Path, revision: int, name: str) -> None:
    """Change what a file holds."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE versions SET name = ? WHERE revision = ?", (name, revision))


def test_a_copy_of_other_data_is_kept_beside_a_new_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A copy may be the only good one: it is never replaced, and never counts as the copy of other data."""
    path = write_format_1(tmp_path / "data")
    first, second, third = (path.with_name(f"{DATABASE}.format1{suffix}") for suffix in ("", "-2", "-3"))
    path.replace(first)
    rename_object(first, 2, "earlier")
    second.write_bytes(b"damaged" * 1000)
    path.write_bytes(write_format_1(tmp_path / "other").read_bytes())
    open_journal(path.parent).close()
    assert described(first) == (1, 0, [(2, "earlier"), (3, "b")])
    assert second.read_bytes() == b"damaged" * 1000
    assert described(third) == (1, 0, [(2, "a"), (3, "b")])
    assert third.stat().st_mode & 0o777 == 0o600
    assert f"a copy of before is {third}" in caplog.text


@pytest.mark.parametrize(
    ("statement", "suffixes"),
    [
        pytest.param("SELECT 1", [""], id="nothing"),
        pytest.param("DELETE FROM versions WHERE revision = 3", ["", "-2"], id="a row less"),
        pytest.param("INSERT INTO versions VALUES (4, 0, 7, 'g', '', 'c', NULL)", ["", "-2"], id="a row more"),
        pytest.param("UPDATE versions SET body = '{}' WHERE revision = 3", ["", "-2"], id="a body"),
        pytest.param("UPDATE state SET revision = 6", ["", "-2"], id="the revision"),
    ],
)
def test_a_migration_that_is_tried_again_copies_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, suffixes: list[str]
) -> None:
    """Starts that fail over and over fill no disk: a copy that holds the same is the copy."""
    path = write_format_1(tmp_path / "data")

    def fail(database: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("no such thing")

    with monkeypatch.context() as patched:
        patched.setattr(databases, "_MIGRATIONS", {1: fail})
        for _ in range(2):
            with pytest.raises(UsageError, match="no such thing"):
                open_journal(path.parent)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement)
    open_journal(path.parent).close()
    assert sorted(each.name for each in path.parent.glob("*.format1*")) == [
        f"{DATABASE}.format1{suffix}" for suffix in suffixes
    ]


def test_data_that_cannot_be_read_is_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be compared with its copy, which is no reason for one more at every start."""
    path = write_format_1(tmp_path / "data")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE versions SET name = CAST(x'ff' AS TEXT)")
    monkeypatch.setattr(databases, "_MIGRATIONS", {1: lambda database: database.execute("no such thing")})
    for _ in range(3):
        with pytest.raises(UsageError, match="of format 1 cannot be brought to format 2, and holds what it held"):
            open_journal(path.parent)
    assert [each.name for each in path.parent.glob("*.format1*")] == [f"{DATABASE}.format1"]


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one transaction: a sentence names the file, and the next start may try again."""
    path = write_format_1(tmp_path / "data")

    def fail(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM versions")
        raise sqlite3.OperationalError("no such thing")

    with monkeypatch.context() as patched:
        patched.setattr(databases, "_MIGRATIONS", {1: fail})
        with pytest.raises(
            UsageError, match="of format 1 cannot be brought to format 2, and holds what it held: no such"
        ):
            open_journal(path.parent)
    assert described(path)[2] == [(2, "a"), (3, "b")]
    open_journal(path.parent).close()
    assert described(path)[0] == FORMAT


def set_body(value: object) -> Callable[[sqlite3.Connection], object]:
    """The damage: the body of `default/a` is something else."""
    return lambda database: database.execute("UPDATE versions SET body = ? WHERE revision = 2", (value,))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        pytest.param(
            set_body(b'{"metadata":{"name":"a"'),
            "the body of gadgets default/a (revision 2) is damaged: Input data was truncated",
            id="broken JSON",
        ),
        pytest.param(
            set_body('{"metadata"'),
            "the body of gadgets default/a (revision 2) is damaged: Input data was truncated",
            id="broken text",
        ),
        pytest.param(
            set_body(b'{"metadata":{"name":"a","uid":"1"},"spec":{"x":"\xff"}}'),
            "the body of gadgets default/a (revision 2) is damaged: "
            "'utf-8' codec can't decode byte 0xff in position 48: invalid start byte",
            id="no UTF-8",
        ),
        pytest.param(
            set_body(b"[]"),
            "the body of gadgets default/a (revision 2) is damaged: Expected `object`, got `array`",
            id="no object",
        ),
        pytest.param(
            lambda database: database.execute("DELETE FROM state"),
            "its table `state` has 0 rows, not one",
            id="no state",
        ),
        pytest.param(lambda database: database.execute("DROP TABLE state"), "no such table: state", id="no table"),
        pytest.param(lambda database: database.execute("DROP TABLE versions"), "no such table: versions", id="no rows"),
    ],
)
async def test_damage_is_one_sentence(
    tmp_path: Path, clock: VirtualClock, damage: Callable[[sqlite3.Connection], object], said: str
) -> None:
    """It names the file, the object, and the commands that help; the directory is free again."""
    path = write_format_1(tmp_path / "data")
    open_journal(path.parent).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        damage(database)
    for _ in range(2):
        with pytest.raises(UsageError) as refused:
            await open_store(path.parent, clock, run=run_inline)
        assert str(refused.value) == (
            f"{path} cannot be read as a store of objects: {said}. "
            f"`podscaler backup --salvage --data-dir {path.parent} FILE` saves what can be read, "
            f"`podscaler restore --force --data-dir {path.parent} FILE` goes on with that."
        )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param(sqlite3.SQLITE_FULL, "cannot be used, for its disk is full (it failed): free some", id="full"),
        pytest.param(sqlite3.SQLITE_BUSY_SNAPSHOT, "is locked by another process (it failed), perhaps", id="locked"),
        pytest.param(sqlite3.SQLITE_CANTOPEN, "cannot be opened for writing (it failed): check the", id="forbidden"),
        pytest.param(sqlite3.SQLITE_IOERR_READ, "cannot be read or written, for its disk fails (it failed)", id="disk"),
        pytest.param(sqlite3.SQLITE_NOTADB, "cannot be read as a store of objects: it failed. `podscaler", id="other"),
    ],
)
def test_errors_that_are_no_damage_say_so(code: int, said: str) -> None:
    """Only a damaged file is to be salvaged: others are as they were."""
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    assert databases.unusable_message(Path("objects.sqlite"), error).startswith(f"objects.sqlite {said}")


async def test_a_text_that_somebody_wrote_is_read(tmp_path: Path, clock: VirtualClock) -> None:
    """A body edited with SQLite's shell is a text there, and bytes here."""
    path = write_format_1(tmp_path / "data")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        set_body('{"metadata":{"name":"a","uid":"9"}}')(database)
    store = await open_store(path.parent, clock, run=run_inline)
    found = store.table("gadgets").find("default/a")
    await store.close()
    assert found is not None
    assert (found.uid, found.body) == ("9", b'{"metadata":{"name":"a","uid":"9"}}')


async def test_rows_that_a_crash_left_are_deleted(tmp_path: Path, clock: VirtualClock) -> None:
    """Versions that the log had dropped already, and rows of deletions, go with the next commit."""
    path = write_format_1(tmp_path / "data")
    journal = open_journal(path.parent)
    body = ROWS[0].body
    gone = Row(6, 4, 7, "gadgets", "default", "c", None)
    rows = [Row(4, 0, 7, "gadgets", "default", "c", body), Row(5, 2, 7, "gadgets", "default", "a", body), gone]
    journal.commit(rows, [], Bounds(6, 6))
    journal.close()
    store = await open_store(path.parent, clock, run=run_inline)
    await store.compact()
    kept = [row.revision for row in store._journal.rows()]
    await store.close()
    assert (kept, store._obsolete) == ([3, 5], [])
