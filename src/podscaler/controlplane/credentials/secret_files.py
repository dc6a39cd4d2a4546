"""Reads and atomically writes files with secrets (keys, tokens, kubeconfigs), which only their owner may read (0600).

The other modules of the package, `auth.authenticator`, `auth.token_file` and `storage` call it. All functions block:
call them in a thread.
"""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from podscaler.base.errors import UsageError


def read(path: Path) -> bytes | None:
    """The content of the file, None if it does not exist. Raises UsageError if the file cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error


def write(path: Path, content: bytes) -> None:
    """Replace the file `path` atomically by one with `content`, mode 0600; missing folders are created (0700).

    A file that has the content and mode already is left as it is, so that this works on a full disk.

    Raises:
        UsageError: the file cannot be written.
    """
    if _has_content(path, content):
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_new(temporary, content)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # the first error is reported
            temporary.unlink()
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def _has_content(path: Path, content: bytes) -> bool:
    """Whether the file has that content and mode; False if it cannot be read, as then writing reports the error."""
    try:
        return stat.S_IMODE(path.stat().st_mode) == 0o600 and path.read_bytes() == content
    except OSError:
        return False


def _write_new(path: Path, content: bytes) -> None:
    """Create a file (0600) and sync its content to disk. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
