"""The data directory: whose it is, what others may see of it, and which cluster it has had."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from podscaler.base.errors import UsageError
from podscaler.controlplane.storage import data_directory as directories
from podscaler.controlplane.storage.data_directory import DATABASE, MARKER, ClusterMarker
from podscaler.controlplane.storage.database_file import Row
from podscaler.controlplane.storage.journal import Bounds, open_journal


def used(directory: Path, *revisions: int) -> Path:
    """The directory after a run that made objects at these revisions."""
    journal = open_journal(directory)
    for revision in revisions:
        journal.commit([Row(revision, 0, 7, "gadgets", "default", f"g{revision}", b"{}")], [], Bounds(revision, 1))
    journal.close()
    return directory


def mode(path: Path) -> int:
    """Its permissions."""
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_too_open_is_closed_with_a_line_for_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A directory of mode 0777 and files of mode 0644 are 0700 and 0600 after the next start."""
    directory = used(tmp_path / "data")
    (directory / "certificates").mkdir(mode=0o755)
    secrets = [directory / "token", directory / "certificates" / "ca.pem", directory / DATABASE]
    for path in secrets:
        path.touch()
        path.chmod(0o644)
    directory.chmod(0o777)
    caplog.clear()
    used(directory)
    assert [mode(path) for path in (directory, directory / "certificates", *secrets)] == [0o700, 0o700, *[0o600] * 3]
    assert sorted(caplog.messages) == sorted(
        f"{path} was open to other users (mode {before}), and is {after} now"
        for path, before, after in [
            (directory, "0777", "0700"),
            (directory / "certificates", "0755", "0700"),
            *((path, "0644", "0600") for path in secrets),
        ]
    )


def test_files_of_others_in_it_are_left_alone(tmp_path: Path) -> None:
    """A start closes what is podscaler's; a file that a user put there stays as it is."""
    directory = used(tmp_path / "data")
    (directory / "notes.txt").touch(mode=0o644)
    (directory / "notes.txt").chmod(0o644)
    used(directory)
    assert mode(directory / "notes.txt") == 0o644


def test_a_folder_of_others_is_not_taken(tmp_path: Path) -> None:
    """One that holds other things and is open to others (/tmp) is refused, and keeps its mode."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "file").touch()
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(UsageError, match=r"holds other things and is open to other users \(mode 0777\)"):
        open_journal(tmp_path / "shared")
    assert mode(tmp_path / "shared") == 0o777


@pytest.mark.parametrize("name", [".", "token"])
def test_what_belongs_to_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The directory, or a secret in it, of another user: a sentence, and nothing is changed."""
    directory = used(tmp_path / "data")
    (directory / "token").touch(mode=0o600)
    real = Path.stat

    def other_owner(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        found = list(real(path, follow_symlinks=follow_symlinks))
        found[stat.ST_UID] += path == directory / name
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", other_owner)
    user = os.geteuid()
    with pytest.raises(UsageError) as refused:
        open_journal(directory)
    assert str(refused.value) == (
        f"{directory / name} belongs to user {user + 1}, and podscaler runs as user {user}: "
        "run it as the owner, or name another data directory."
    )


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("lose", [remove, empty])
def test_a_lost_database_is_no_new_cluster(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    """Deleted or emptied: the start refuses, and says how to go on; with the flag it begins anew."""
    directory = used(tmp_path / "data", 2, 3)
    lose(directory / DATABASE)
    marker = directories.read_marker(directory)
    assert marker is not None
    for _ in range(2):
        with pytest.raises(UsageError) as refused:
            open_journal(directory)
        assert str(refused.value) == (
            f"{directory / DATABASE} is missing or empty, but this data directory had a cluster (id {marker.id}, "
            f"revision 3 or later): bring it back by `podscaler restore --data-dir {directory} FILE`, "
            "or start an empty cluster by `podscaler up --new-cluster`."
        )
    journal = open_journal(directory, is_new_cluster=True)
    assert (list(journal.rows()), journal.bounds()) == ([], Bounds(1, 1))
    journal.close()
    used(directory)
    after = directories.read_marker(directory)
    assert after is not None
    assert after.id != marker.id


def test_an_older_database_is_noticed(tmp_path: Path) -> None:
    """A copy of before in its place would give out revisions twice: refused, until the marker is removed."""
    directory = used(tmp_path / "data", 2)
    older = (directory / DATABASE).read_bytes()
    used(directory, 3, 4)
    (directory / DATABASE).write_bytes(older)
    with pytest.raises(
        UsageError, match=r"is older \(revision 2\) than the one of this data directory was \(revision 4\)"
    ):
        open_journal(directory)
    (directory / MARKER).unlink()
    used(directory, 3)


def test_the_database_of_another_cluster_is_noticed(tmp_path: Path) -> None:
    """It would be served with this directory's keys and tokens."""
    directory, other = used(tmp_path / "data", 2), used(tmp_path / "other", 2, 3, 4)
    (directory / DATABASE).write_bytes((other / DATABASE).read_bytes())
    with pytest.raises(UsageError, match="is of another cluster"):
        open_journal(directory)


def test_a_marker_that_says_nothing_is_a_sentence(tmp_path: Path) -> None:
    """It names the file and what to do."""
    directory = used(tmp_path / "data")
    (directory / MARKER).write_bytes(b"{}")
    with pytest.raises(UsageError, match="does not say which cluster this is: remove it to use what is there"):
        open_journal(directory)


def test_a_marker_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On a full disk, for one: the next start knows less, and the log says so."""
    directory = used(tmp_path / "data", 2)
    marker = directories.read_marker(directory)
    assert marker is not None

    def fail(directory: Path, marker: ClusterMarker) -> None:
        raise UsageError("cannot write cluster: No space left on device")

    monkeypatch.setattr(directories, "write_marker", fail)
    used(directory, 3)
    assert directories.read_marker(directory) == marker
    assert "No space left on device: the next start will not notice" in caplog.text
