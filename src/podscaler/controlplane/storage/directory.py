"""The data directory: whose it is, who uses it, and which cluster is in it.

Claimed by `journal` and `restore`. Invariants:

1. It is used by one process at a time: `flock` on a file in it, which the kernel lets go of with the process.
2. It belongs to the user who runs podscaler, and nobody else can read what is secret in it. What is too open (a copy, a
   mounted volume, a careless chmod) is closed at the start, with a log line for each path.
3. It remembers the cluster that it has had (`ClusterMarker`), so that a lost database is not taken for a new cluster.
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
CREDENTIALS = ("service-account.key", "token", "port", "address-block")
"""Small files that a backup holds beside all of CERTIFICATES: with them, earlier kubeconfigs and tokens work again."""

_PRIVATE = (*DATABASE_FILES, *CREDENTIALS, CERTIFICATES, LOCK, MARKER, "kubeconfig", "autoscaler.kubeconfig")
_OTHERS = 0o077

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterMarker:
    """Which cluster a data directory holds.

    Attributes:
        id: made with the cluster's database, which has it too.
        revision: one that was given out; the database has got at least as far. Written at start and end.
    """

    id: str
    revision: int


def read_marker(directory: Path) -> ClusterMarker | None:
    """The marker, None where there never was a cluster. Raises UsageError if it cannot be read."""
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
    """Remember the cluster. Raises UsageError if it cannot be written."""
    secret_files.write(directory / MARKER, json.dumps(asdict(marker)).encode() + b"\n")


def claim(directory: Path) -> int:
    """Make `directory` (0700) if it is not there, claim it, and close what is too open in it.

    Returns:
        the descriptor of the lock, which holds the claim until it is closed.

    Raises:
        UsageError: it is another process's or another user's, or cannot be used.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_owner(directory)
        _check_contents(directory)
        lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"The data directory {directory} cannot be used: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _close_to_others(directory)
    except BlockingIOError as error:
        os.close(lock)
        message = f"The data directory {directory} is in use by another podscaler: stop that one, or name another one."
        raise UsageError(message) from error
    except OSError as error:
        os.close(lock)
        raise UsageError(f"The data directory {directory} cannot be used: {error.strerror}.") from error
    except BaseException:
        os.close(lock)
        raise
    return lock


def check_owner(path: Path) -> None:
    """Raises UsageError if `path` belongs to another user than this process runs as; OSError if it cannot be seen."""
    owner, user = path.lstat().st_uid, os.geteuid()
    if path.is_symlink():
        owner = path.stat().st_uid
    if owner != user:
        raise UsageError(
            f"{path} belongs to user {owner}, and podscaler runs as user {user}: "
            "run it as the owner, or name another data directory."
        )


def sync(directory: Path) -> None:
    """Make the names of the files in it survive a power cut, as their content does."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check_contents(directory: Path) -> None:
    """A folder that is open to others and holds other things is not ours to close: `--data-dir /tmp`."""
    mode = stat.S_IMODE(directory.stat().st_mode)
    names = {path.name for path in directory.iterdir()}
    if mode & _OTHERS and names and not names & {DATABASE, MARKER}:
        raise UsageError(
            f"The data directory {directory} holds other things and is open to other users (mode {mode:04o}): "
            f"name another one, or `chmod 700 {directory}`."
        )


def _close_to_others(directory: Path) -> None:
    for path in (directory, *_private_files(directory)):
        check_owner(path)
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS:
            path.chmod(mode & ~_OTHERS)
            logger.warning("%s was open to other users (mode %04o), and is %04o now", path, mode, mode & ~_OTHERS)


def _private_files(directory: Path) -> Iterator[Path]:
    """Files and folders of ours that are there; links are left alone."""
    found = [path for path in (directory / name for name in _PRIVATE) if path.exists() and not path.is_symlink()]
    yield from found
    yield from (path for path in sorted((directory / CERTIFICATES).rglob("*")) if not path.is_symlink())
