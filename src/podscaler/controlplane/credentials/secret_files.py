"""Files that only their owner may read, written whole or not at all.

Called by `certificates`, `tokens` and `kubeconfig`; all of it blocks and belongs into a thread.
"""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from podscaler.base.errors import UsageError


def read(path: Path) -> bytes | None:
    """The file's content, None where there is no such file.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error


def write(path: Path, content: bytes) -> None:
    """Put `content` into `path` with mode 0600: a reader sees the old file or the new one, never a part.

    A file that has that content already is not written again, so that it needs no space on a full disk.

    Raises:
        UsageError: it cannot be written.
    """
    if _is_there(path, content):
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_new(temporary, content)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            temporary.unlink()
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def _is_there(path: Path, content: bytes) -> bool:
    """Whether the file has that content and mode; where that cannot be seen, the attempt to write says why."""
    try:
        return stat.S_IMODE(path.stat().st_mode) == 0o600 and path.read_bytes() == content
    except OSError:
        return False


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
