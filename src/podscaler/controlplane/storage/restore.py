"""Restores a backup (by `backup`) into a data directory that is not in use.

The command `podscaler restore` calls it. Nothing is deleted: existing files move into a folder `before-restore-N`. The
marker of the restored cluster is written first and its database is renamed last, so that after a crash the directory is
unchanged, or the next start refuses it (its database is missing, or does not match the marker).

The change log is not restored, and the next revision is far above any assigned since the backup was written, so that
clients cannot resume watches and list again. A new format needs nothing here: `database_file.migrate_tables` converts.

Source: etcd's `snapshot restore --bump-revision 1000000000 --mark-compacted`, which Kubernetes recommends.
"""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from podscaler.base.errors import UsageError
from podscaler.controlplane.credentials import secret_files
from podscaler.controlplane.storage import backup, data_directory, database_file
from podscaler.controlplane.storage.backup import BackupSummary
from podscaler.controlplane.storage.data_directory import ClusterMarker

_REVISION_BUMP = 1_000_000_000
"""How far the next revision is above the newest known one."""


def restore(path: Path, directory: Path, *, is_forced: bool = False) -> tuple[BackupSummary, Path | None]:
    """Replace the cluster in `directory` by the backup `path`.

    Args:
        path: written by `backup`; or a copy of a database without credentials (from before a migration): then those of
            the directory are kept, or the next start creates them.
        directory: a data directory, created if necessary.
        is_forced: whether an existing cluster is moved aside.

    Returns:
        the content of the backup, and the folder of the files that were moved aside, None if there were none.

    Raises:
        UsageError: the file is damaged or not a backup; the directory is in use, holds a cluster (without `is_forced`),
            or cannot be written. Nothing was changed then, unless the disk failed.
    """
    try:
        with closing(database_file.open_to_read(path)) as source:
            damage = database_file.find_damage(source)
            if damage:
                raise UsageError(f"{path} is damaged, and nothing was restored: {damage}.")
            summary = backup.summarize(source, path)
            credential_files = backup.credential_files(source).items()
            files = {name: content for name, content in credential_files if _is_inside(directory, name)}
            lock = data_directory.claim(directory)
            try:
                return summary, _replace_cluster(source, files, directory, is_forced=is_forced)
            finally:
                os.close(lock)
    except sqlite3.Error as error:
        raise UsageError(f"{path} is damaged, and nothing was restored: {error}.") from error
    except OSError as error:
        raise UsageError(f"The data directory {directory} cannot be written: {error.strerror or error}.") from error


def _replace_cluster(
    source: sqlite3.Connection, files: dict[str, bytes], directory: Path, *, is_forced: bool
) -> Path | None:
    """Move the present cluster aside and put the copy in its place; returns the folder of the former, if any.

    Raises UsageError if there is a cluster without `is_forced`; OSError, sqlite3.Error.
    """
    existing = [name for name in (*data_directory.DATABASE_FILES, *files) if (directory / name).exists()]
    marker = _present_marker(directory)
    if (existing or marker) and not is_forced:
        raise UsageError(
            f"The data directory {directory} holds a cluster: name another one by --data-dir, or --force to move that "
            "cluster aside."
        )
    restored_path = directory / f"{data_directory.DATABASE}.restored"
    restored_marker = ClusterMarker("", 0)  # set when the copy is converted

    def convert(copy: sqlite3.Connection) -> None:
        nonlocal restored_marker
        restored_marker = _convert_copy(copy, restored_path, marker)

    database_file.write_private_copy(source, restored_path, convert)
    data_directory.write_marker(directory, restored_marker)
    former_folder = _move_aside(directory, existing) if existing else None
    for name, content in files.items():
        secret_files.write(directory / name, content)
    restored_path.rename(directory / data_directory.DATABASE)
    data_directory.sync(directory)
    return former_folder


def _convert_copy(copy: sqlite3.Connection, path: Path, marker: ClusterMarker | None) -> ClusterMarker:
    """Convert a copy of a backup to a database of the current format, without change log and credentials.

    Returns the marker that the data directory must have with it.
    """
    copy.execute("DROP TABLE IF EXISTS files")
    database_file.migrate_tables(copy, database_file.read_format(copy, path))
    state = database_file.read_state(copy, path)
    revision = max(state.revision, marker.revision if marker is not None else 0) + _REVISION_BUMP
    # the newest version of each object stays: neither a deletion nor replaced by a later version
    copy.execute("DELETE FROM versions WHERE body IS NULL OR revision IN (SELECT previous FROM versions)")
    copy.execute("UPDATE state SET revision = ?, floor = ?", (revision, revision))
    copy.execute(database_file.INCREMENTAL_VACUUM)
    copy.execute("VACUUM")
    return ClusterMarker(state.cluster, revision)


def _move_aside(directory: Path, names: Iterable[str]) -> Path:
    """Move files into a new folder of the directory; returns the folder."""
    number = 1
    while (former_folder := directory / f"before-restore-{number}").exists():
        number += 1
    for name in names:
        target = former_folder / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (directory / name).rename(target)
    return former_folder


def _present_marker(directory: Path) -> ClusterMarker | None:
    """The directory's marker, None if it has none; an unreadable marker counts as one of another cluster."""
    try:
        return data_directory.read_marker(directory)
    except UsageError:
        return ClusterMarker("", 0)


def _is_inside(directory: Path, name: str) -> bool:
    """Whether a path is inside of the directory; `backup` writes no other paths."""
    return (directory / name).resolve().is_relative_to(directory.resolve())
