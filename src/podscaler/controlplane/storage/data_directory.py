"""Claims the data directory (the folder of `--data-dir`): its lock, owner, permissions, and the marker of its cluster.

`storage.journal` and `restore` call `claim`. Invariants:

1. One process at a time uses it: `flock` on a file in it, which the kernel releases when the process ends.
2. It belongs to the user who runs podscaler, and no other user can read its secrets. Permissions that are too wide are
   removed at the start, with a log line for each path.
3. It has a marker of its cluster (`ClusterMarker`), so that a lost database is not replaced by an empty cluster.

A new file with secrets: its name in `_PRIVATE_NAMES`, or in CONNECTION_FILES if backups contain it.
"""

import fcntl
import json
import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from podscaler.base.errors import UsageError
from podscaler.controlplane.credentials import secret_files

LOCK = "lock"
MARKER = "cluster"
DATABASE = "objects.sqlite"
DATABASE_FILES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm")
CERTIFICATES = "certificates"
CONNECTION_FILES = ("service-account.key", "token", "port", "address-block")
"""The key of tokens, the administrator's token, the port and the addresses of a cluster.

A backup contains them besides CERTIFICATES, so that earlier kubeconfigs and tokens stay valid.
"""

_PRIVATE_NAMES = (*DATABASE_FILES, *CONNECTION_FILES, CERTIFICATES, LOCK, MARKER, "kubeconfig", "autoscaler.kubeconfig")
_PERMISSIONS_OF_OTHERS = 0o077

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterMarker:
    """The content of the file `cluster`, for example {"id": "6f0c...", "revision": 1042}.

    Attributes:
        id: the cluster's id, which the database also contains.
        revision: a revision that the database has reached; written at start and end.
    """

    id: str
    revision: int


def read_marker(directory: Path) -> ClusterMarker | None:
    """The marker, None if the directory never had a cluster. Raises UsageError if it cannot be read."""
    path = directory / MARKER
    content = secret_files.read(path)
    if content is None:
        return None
    try:
        fields = json.loads(content)
        return ClusterMarker(id=str(fields["id"]), revision=int(fields["revision"]))
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path} does not say which cluster this is: remove it to use what is there") from error


def write_marker(directory: Path, marker: ClusterMarker) -> None:
    """Write the marker. Raises UsageError if that fails."""
    secret_files.write(directory / MARKER, json.dumps(asdict(marker)).encode() + b"\n")


def claim(directory: Path) -> int:
    """Create `directory` (0700) if necessary, lock it, and remove permissions that are too wide.

    Returns:
        the descriptor of the lock, which is held until it is closed.

    Raises:
        UsageError: the directory is in use, belongs to another user, or cannot be used.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_owner(directory)
        _check_is_private_or_ours(directory)
        lock_descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock_or_refuse(lock_descriptor, directory)
            _restrict_permissions(directory)
        except BaseException:  # of any kind: nobody else has the descriptor yet
            os.close(lock_descriptor)
            raise
    except OSError as error:
        raise UsageError(f"The data directory {directory} cannot be used: {error.strerror}.") from error
    return lock_descriptor


def _lock_or_refuse(lock_descriptor: int, directory: Path) -> None:
    """Lock an open file of the directory. Raises UsageError if another process has locked it."""
    try:
        fcntl.flock(lock_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        message = f"The data directory {directory} is in use by another podscaler: stop that one, or name another one."
        raise UsageError(message) from error


def check_owner(path: Path) -> None:
    """Raise UsageError if `path` belongs to another user than this process; OSError if it is not accessible."""
    owner_uid, own_uid = path.stat().st_uid, os.geteuid()  # of a symbolic link, its target counts
    if owner_uid != own_uid:
        raise UsageError(
            f"{path} belongs to user {owner_uid}, and podscaler runs as user {own_uid}: "
            "run it as the owner, or name another data directory."
        )


def sync(path: Path) -> None:
    """Sync a file's content, or a directory's file names, to disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_is_private_or_ours(directory: Path) -> None:
    """Raise UsageError for a directory that others can access and that is not ours, as in `--data-dir /tmp`."""
    mode = stat.S_IMODE(directory.stat().st_mode)
    names = {path.name for path in directory.iterdir()}
    if mode & _PERMISSIONS_OF_OTHERS and names and not names & {DATABASE, MARKER}:
        raise UsageError(
            f"The data directory {directory} holds other things and is open to other users (mode {mode:04o}): "
            f"name another one, or `chmod 700 {directory}`."
        )


def _restrict_permissions(directory: Path) -> None:
    """Remove the permissions of other users from the directory and its files (invariant 2). Raises UsageError."""
    for path in (directory, *_private_files(directory)):
        check_owner(path)
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _PERMISSIONS_OF_OTHERS:
            private_mode = mode & ~_PERMISSIONS_OF_OTHERS
            path.chmod(private_mode)
            logger.warning("%s was open to other users (mode %04o), and is %04o now", path, mode, private_mode)


def _private_files(directory: Path) -> Iterator[Path]:
    """The existing files and folders of `_PRIVATE_NAMES` and below CERTIFICATES, without symbolic links."""
    named = (directory / name for name in _PRIVATE_NAMES)
    yield from (path for path in named if path.exists() and not path.is_symlink())
    yield from (path for path in sorted((directory / CERTIFICATES).rglob("*")) if not path.is_symlink())
