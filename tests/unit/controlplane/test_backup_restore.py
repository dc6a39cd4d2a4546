"""Backups: all objects and credentials in one private file, restored as they were, salvaged as far as possible."""

import re
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from podscaler.base.errors import StatusError, UsageError
from podscaler.cli.main import cli
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage import backup, restore
from podscaler.controlplane.storage.backup import BackupSummary
from podscaler.controlplane.storage.data_directory import DATABASE
from podscaler.controlplane.storage.options import ListOptions
from podscaler.controlplane.storage.store import Store, open_store, run_inline
from podscaler.controlplane.storage.transactions import Transaction
from podscaler.testing import VirtualClock
from podscaler.testing.kinds import KINDS, obj

GADGETS = "gadgets.example.com"
BUMP = 1_000_000_000


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Store]:
    """A store on the directory, as `up` has it."""
    store = await open_store(directory, VirtualClock(), run=run_inline, is_synced=False)
    try:
        yield store
    finally:
        await store.close()


async def put(store: Store, *names: str, **spec: object) -> None:
    """Store an object of each name."""
    for name in names:
        await store.write(lambda transaction, name=name: transaction.put(GADGETS, obj(name, **spec)))


async def remove(store: Store, name: str) -> None:
    """Remove it."""

    def decide(transaction: Transaction) -> None:
        entry = transaction.find(GADGETS, "default", name)
        assert entry is not None
        transaction.remove(entry)

    await store.write(decide)


def specs(store: Store) -> dict[str, object]:
    """What readers see."""
    return {entry.name: entry.decode()["spec"] for entry in store.table(GADGETS).select("")}


@pytest.fixture
async def directory(tmp_path: Path) -> Path:
    """A data directory with two objects and a token; a third was deleted."""
    place = tmp_path / "data"
    async with running(place) as store:
        await put(store, "a", "b", "gone")
        await put(store, "a", size=2)
        await remove(store, "gone")
    (place / "token").write_bytes(b"secret\n")
    (place / "certificates").mkdir(mode=0o700)
    (place / "certificates" / "ca.pem").write_bytes(b"authority")
    return place


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the backup goes."""
    return tmp_path / "cluster.backup"


async def test_a_backup_comes_back_elsewhere(directory: Path, file: Path, tmp_path: Path) -> None:
    """Objects and credentials are the same in a new directory; history is gone, and revisions go on far beyond."""
    assert backup.write(directory, file) == BackupSummary(objects=2, revision=6)
    assert restore.restore(file, tmp_path / "new") == (BackupSummary(objects=2, revision=6), None)
    assert (tmp_path / "new" / "token").read_bytes() == b"secret\n"
    assert (tmp_path / "new" / "certificates" / "ca.pem").read_bytes() == b"authority"
    async with running(tmp_path / "new") as store:
        assert (specs(store), store.revision, store.log.compacted_revision) == (
            {"a": {"size": 2}, "b": {}},
            BUMP + 6,
            BUMP + 6,
        )
        await put(store, "c")
        assert store.revision == BUMP + 7
        assert [row.revision for row in store._journal.rows()] == [3, 5, BUMP + 7]


async def test_what_was_watched_before_is_too_old_after(directory: Path, file: Path) -> None:
    """A watch from a revision of before gets 410, and its client lists again."""
    backup.write(directory, file)
    async with running(directory) as store:
        await put(store, "later")
        seen = store.revision
    restore.restore(file, directory, is_forced=True)
    async with running(directory) as store:
        with pytest.raises(StatusError) as refused:
            Objects(store, KINDS).watch(GADGETS, options=ListOptions(resource_version=str(seen)))
        assert refused.value.code == 410


async def test_a_backup_is_of_one_moment_while_it_runs(directory: Path, file: Path) -> None:
    """What is committed, and only that, whether or not it is folded into the database file yet."""
    async with running(directory) as store:
        await put(store, "c")
        assert backup.write(directory, file) == BackupSummary(objects=3, revision=7)
        await put(store, "d")
        assert specs(store).keys() == {"a", "b", "c", "d"}


async def test_a_backup_is_private(directory: Path, file: Path) -> None:
    """It holds keys: its mode is 0600, and nothing else is left beside it."""
    backup.write(directory, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == ["cluster.backup", "data"]


async def test_a_file_is_replaced_only_on_demand(directory: Path, file: Path) -> None:
    """A backup of before is not lost by mistake."""
    file.write_bytes(b"precious")
    with pytest.raises(UsageError, match="is there already: name another file, or --force to replace it"):
        backup.write(directory, file)
    assert file.read_bytes() == b"precious"
    assert backup.write(directory, file, is_forced=True) == BackupSummary(objects=2, revision=6)


def test_nothing_to_back_up_is_a_sentence(tmp_path: Path, file: Path) -> None:
    """A directory that holds no cluster, by its name."""
    with pytest.raises(UsageError, match=f"{tmp_path / DATABASE} is not there"):
        backup.write(tmp_path, file)
    assert not file.exists()


async def test_a_cluster_is_not_replaced_by_mistake(directory: Path, file: Path) -> None:
    """Without --force nothing is changed; with it, what was there is kept in a folder."""
    backup.write(directory, file)
    async with running(directory) as store:
        await put(store, "later")
    (directory / "token").write_bytes(b"another\n")
    with pytest.raises(UsageError, match="holds a cluster: name another one by --data-dir, or --force"):
        restore.restore(file, directory)
    aside = directory / "before-restore-1"
    assert restore.restore(file, directory, is_forced=True) == (BackupSummary(objects=2, revision=6), aside)
    assert ((directory / "token").read_bytes(), (aside / "token").read_bytes()) == (b"secret\n", b"another\n")
    async with running(directory) as store:
        assert (specs(store).keys(), store.revision) == ({"a", "b"}, BUMP + 7)
    assert restore.restore(file, directory, is_forced=True)[1] == directory / "before-restore-2"


async def test_a_backup_of_an_earlier_format_is_migrated(directory: Path, file: Path, tmp_path: Path) -> None:
    """One without a cluster's id, as the first version would have it: the restored cluster gets one."""
    damage(directory, "ALTER TABLE state DROP COLUMN cluster")
    damage(directory, "PRAGMA user_version = 1")
    assert backup.write(directory, file) == BackupSummary(objects=2, revision=6)
    restore.restore(file, tmp_path / "new")
    async with running(tmp_path / "new") as store:
        assert specs(store).keys() == {"a", "b"}


async def test_a_directory_in_use_is_not_restored(directory: Path, file: Path) -> None:
    """`up` must be stopped."""
    backup.write(directory, file)
    async with running(directory):
        with pytest.raises(UsageError, match="is in use by another podscaler"):
            restore.restore(file, directory, is_forced=True)


async def test_a_lost_database_is_restored_on_demand(directory: Path, file: Path) -> None:
    """The directory says that it had a cluster, so that --force is needed, and then it goes on."""
    backup.write(directory, file)
    (directory / DATABASE).unlink()
    with pytest.raises(UsageError, match="holds a cluster"):
        restore.restore(file, directory)
    restore.restore(file, directory, is_forced=True)
    async with running(directory) as store:
        assert specs(store).keys() == {"a", "b"}


async def test_a_damaged_backup_changes_nothing(directory: Path, file: Path, tmp_path: Path) -> None:
    """The file is looked through before the directory is touched."""
    backup.write(directory, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("UPDATE versions SET body = '{' WHERE name = 'b'")
    with pytest.raises(UsageError) as refused:
        restore.restore(file, tmp_path / "new")
    why = f"the body of {GADGETS} default/b (revision 3) is damaged: Input data was truncated"
    assert str(refused.value) == f"{file} is damaged, and nothing was restored: {why}."
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "is empty: there is no cluster in it.", id="empty"),
        pytest.param(b"text" * 200, "is damaged, and nothing was restored: file is not a database.", id="another file"),
    ],
)
def test_what_is_no_backup_is_refused(tmp_path: Path, file: Path, content: bytes, said: str) -> None:
    """One sentence that names the file; the directory is not even made."""
    file.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        restore.restore(file, tmp_path / "new")
    assert (str(refused.value), (tmp_path / "new").exists()) == (f"{file} {said}", False)


async def test_what_is_damaged_from_the_start_cannot_be_salvaged(directory: Path, file: Path) -> None:
    """An ordinary backup points to a salvage, and that says that there is nothing."""
    path = directory / DATABASE
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 8000)
    with pytest.raises(UsageError, match="podscaler backup --salvage"):
        backup.write(directory, file)
    with pytest.raises(UsageError, match=f"Nothing of {path} can be read: database disk image is malformed"):
        backup.write(directory, file, is_salvage=True)
    assert not file.exists()


async def test_a_backup_that_names_places_elsewhere_writes_nothing_there(directory: Path, file: Path) -> None:
    """Files of a backup go into the data directory only."""
    backup.write(directory, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("INSERT INTO files VALUES ('../elsewhere', 'x')")
    restore.restore(file, directory, is_forced=True)
    assert not (directory.parent / "elsewhere").exists()


def damage(directory: Path, statement: str) -> None:
    """Change the database behind the store's back."""
    with closing(sqlite3.connect(directory / DATABASE, isolation_level=None)) as database:
        database.execute(statement)


async def test_a_damaged_database_is_backed_up_by_salvage_only(directory: Path, file: Path, tmp_path: Path) -> None:
    """An ordinary backup refuses; a salvage names what it leaves out, and what comes back in an older version."""
    damage(directory, "UPDATE versions SET body = '{' WHERE revision IN (3, 5)")
    with pytest.raises(UsageError, match="podscaler backup --salvage"):
        backup.write(directory, file)
    assert not file.exists()
    assert backup.write(directory, file, is_salvage=True) == BackupSummary(
        objects=1,
        revision=6,
        lost=(
            f"{GADGETS} default/b (revision 3) cannot be read",
            f"{GADGETS} default/a (revision 5) cannot be read; as of revision 2 it is saved",
        ),
    )
    restore.restore(file, tmp_path / "new")
    assert (tmp_path / "new" / "token").read_bytes() == b"secret\n"
    async with running(tmp_path / "new") as store:
        assert (specs(store), store.revision) == ({"a": {}}, BUMP + 6)


async def test_a_version_of_before_that_is_damaged_loses_nothing(directory: Path, file: Path) -> None:
    """What it was replaced by is saved, and nothing is reported."""
    damage(directory, "UPDATE versions SET body = '{' WHERE revision IN (2, 4)")
    assert backup.write(directory, file, is_salvage=True) == BackupSummary(objects=2, revision=6)


async def test_damaged_pages_lose_what_is_on_them_only(tmp_path: Path, file: Path) -> None:
    """Pages in the middle are overwritten: what is on the others is saved, and the gaps are named."""
    directory = tmp_path / "data"
    async with running(directory) as store:
        await put(store, *(f"g{number:03}" for number in range(300)), pad="x" * 300)
    path = directory / DATABASE
    content = bytearray(path.read_bytes())
    pages = len(content) // 4096
    for page in (pages // 3, 2 * pages // 3):
        content[4096 * page : 4096 * (page + 1)] = b"\xff" * 4096
    path.write_bytes(content)
    made = backup.write(directory, file, is_salvage=True)
    assert 270 < made.objects < 300
    assert len(made.lost) == 2
    assert all(line.startswith("what was written at revisions ") for line in made.lost)
    restore.restore(file, tmp_path / "new")
    async with running(tmp_path / "new") as store:
        assert (len(store.table(GADGETS)), store.revision) == (made.objects, BUMP + 301)


def gadgets(directory: Path, count: int, *, apart: int = 1) -> list[int]:
    """Add that many objects whose revisions are so far apart; the revisions."""
    body = b'{"metadata":{"name":"g"},"spec":{"pad":"%s"}}' % (b"x" * 300)
    revisions = [10 + apart * number for number in range(count)]
    with closing(sqlite3.connect(directory / DATABASE, isolation_level=None)) as database:
        database.execute("BEGIN")
        rows = [(each, GADGETS, "default", f"g{each}", body) for each in revisions]
        database.executemany("INSERT INTO versions VALUES (?, 0, 0, ?, ?, ?, ?)", rows)
        database.execute("UPDATE state SET revision = ?", (revisions[-1],))
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return revisions


def overwrite_leaf(directory: Path, *revisions: int) -> None:
    """Overwrite the pages of the table that these revisions are on."""
    path = directory / DATABASE
    content = bytearray(path.read_bytes())
    for revision in revisions:
        page = content.index(f"defaultg{revision}{{".encode()) // 4096
        content[4096 * page : 4096 * (page + 1)] = b"\xff" * 4096
    path.write_bytes(content)


def left_out(made: BackupSummary, revisions: list[int], file: Path) -> tuple[set[int], set[int]]:
    """The revisions that the backup does not hold, and those that it says are lost."""
    with closing(sqlite3.connect(file)) as database:
        saved = {revision for (revision,) in database.execute("SELECT revision FROM versions")}
    ranges = [re.findall(r"revisions (\d+) to (\d+) cannot", line)[0] for line in made.lost]
    told = {each for each in revisions for first, last in ranges if int(first) <= each <= int(last)}
    return set(revisions) - saved, told


@pytest.mark.parametrize("apart", [1, 20_000, BUMP])
async def test_a_damaged_last_page_is_reported(directory: Path, file: Path, apart: int) -> None:
    """What is on the last page is one range, up to the newest revision that was given out."""
    revisions = gadgets(directory, 300, apart=apart)
    overwrite_leaf(directory, revisions[-1])
    made = backup.write(directory, file, is_salvage=True)
    missing, told = left_out(made, revisions, file)
    assert 0 < len(missing) < 20
    assert (missing, len(made.lost)) == (told, 1)
    assert made.lost[0].endswith(f" to {revisions[-1]} cannot be read")
    done = CliRunner().invoke(cli, ["backup", "--data-dir", str(directory), "--salvage", "--force", str(file)])
    assert done.exit_code == 1


@pytest.mark.parametrize("apart", [1, 20_000, BUMP])
async def test_a_gap_of_sparse_revisions_is_one_range(directory: Path, file: Path, apart: int) -> None:
    """However far revisions are apart: all pages between damaged ones are saved, each of those is one range."""
    revisions = gadgets(directory, 300, apart=apart)
    overwrite_leaf(directory, revisions[100], revisions[200], revisions[299])
    made = backup.write(directory, file, is_salvage=True)
    missing, told = left_out(made, revisions, file)
    assert 0 < len(missing) < 60
    assert (missing, len(made.lost)) == (told, 3)


async def test_revisions_that_jump_hide_no_readable_page(directory: Path, file: Path) -> None:
    """A restore raises revisions by a billion: pages before the jump are found though those around are damaged."""
    revisions = gadgets(directory, 300)
    damage(directory, f"UPDATE versions SET revision = revision + {BUMP} WHERE revision >= 210")
    damage(directory, "PRAGMA wal_checkpoint(TRUNCATE)")
    after = [each + BUMP if each >= 210 else each for each in revisions]
    overwrite_leaf(directory, 110, 211)
    made = backup.write(directory, file, is_salvage=True)
    missing, told = left_out(made, after, file)
    assert 0 < len(missing) < 60
    assert missing == told


async def test_what_there_was_no_time_to_look_at_is_reported(
    directory: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no look left, all between the outermost damaged pages counts as lost."""
    monkeypatch.setattr("podscaler.controlplane.storage.salvage._MAX_PROBES", 0)
    revisions = gadgets(directory, 300)
    overwrite_leaf(directory, revisions[100], revisions[200])
    made = backup.write(directory, file, is_salvage=True)
    missing, told = left_out(made, revisions, file)
    assert len(missing) > 100
    assert (missing, len(made.lost)) == (told, 1)


async def test_a_truncated_file_is_salvaged(directory: Path, file: Path) -> None:
    """What is left of it is saved, the rest is reported."""
    revisions = gadgets(directory, 300)
    path = directory / DATABASE
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 4096 // 2 * 4096])
    made = backup.write(directory, file, is_salvage=True)
    missing, told = left_out(made, revisions, file)
    assert 100 < len(missing) < 200
    assert (missing, len(made.lost)) == (told, 1)


async def test_the_commands_say_what_they_did(directory: Path, file: Path) -> None:
    """How many objects as of which revision, and where what was there before is."""
    run = CliRunner().invoke
    flags = ["--data-dir", str(directory)]
    done = run(cli, ["backup", *flags, str(file)])
    assert done.output == f"{file} holds 2 objects of {directory} as of revision 6, and its credentials\n"
    done = run(cli, ["restore", *flags, "--force", str(file)])
    assert done.output == (
        f"{directory} holds 2 objects of {file} as of revision 6\n"
        f"the former cluster is in {directory / 'before-restore-1'}\n"
    )
    damage(directory, "UPDATE versions SET body = '{' WHERE name = 'b'")
    done = run(cli, ["backup", *flags, "--salvage", "--force", str(file)])
    assert (done.exit_code, done.output.splitlines()[1:]) == (
        1,
        [f"podscaler: {GADGETS} default/b (revision 3) cannot be read"],
    )
    done = run(cli, ["restore", *flags, str(file)])
    assert (done.exit_code, "holds a cluster" in done.output) == (2, True)
