"""Disk space that is kept back for deletes, and for what a start writes: a file that is given up when the disk is full.

`journal` holds one. On a full disk even a delete needs space (a row in the log of SQLite) before any is free again.
"""

import errno
import logging
import os
import sqlite3
from pathlib import Path

FILE_NAME = "reserve"
LARGEST_BYTES = 4 * 1024 * 1024
SHARE_OF_DISK = 8
"""A small disk gives this part of itself."""

logger = logging.getLogger(__name__)


class Reserve:
    """The file. Its size is LARGEST_BYTES, less on a small disk.

    Args:
        directory: where the file is kept.
        is_wanted: False keeps nothing back.

    Attributes:
        size_bytes: how much is kept back; 0 for nothing.
        is_whole: whether that was there, and as much again for others, when `fill` looked last, and was not released.

    Raises OSError where the disk fails in another way than being full.
    """

    def __init__(self, directory: Path, *, is_wanted: bool = True) -> None:
        self._path = directory / FILE_NAME
        disk = os.statvfs(directory)
        self.size_bytes = min(LARGEST_BYTES, disk.f_blocks * disk.f_frsize // SHARE_OF_DISK) if is_wanted else 0
        self.is_whole = False

    def release_if_tight(self) -> None:
        """Give the space to a start that would have none."""
        if self._allocated_bytes() and self._free_bytes() < self.size_bytes // 4:
            logger.warning("the disk of %s is almost full: the start uses the space that is kept back", self._path)
            self.release()

    def release(self) -> None:
        """Give the space back to the disk."""
        if self._path.exists():
            os.truncate(self._path, 0)
        self.is_whole = not self.size_bytes

    def fill(self) -> bool:
        """Take the space from the disk, and return whether there was enough.

        Where there is less than twice the reserve, half a reserve is left for the log of SQLite.
        """
        there = self._allocated_bytes()
        available = there + self._free_bytes()
        self.is_whole = available >= 2 * self.size_bytes
        wanted = self.size_bytes if self.is_whole else max(0, available - self.size_bytes // 2)
        if there < min(wanted, self.size_bytes):
            self.is_whole = _allocate(self._path, min(wanted, self.size_bytes)) and self.is_whole
        return self.is_whole

    def _allocated_bytes(self) -> int:
        try:
            return self._path.stat().st_blocks * 512
        except FileNotFoundError:
            return 0

    def _free_bytes(self) -> int:
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize


def _allocate(path: Path, size_bytes: int) -> bool:
    """Whether the file has that much of the disk now; otherwise it has nothing."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size_bytes)
        else:
            os.pwrite(descriptor, bytes(size_bytes), 0)
        return True
    except OSError as error:
        os.ftruncate(descriptor, 0)
        if not is_full(error):
            raise
        return False
    finally:
        os.close(descriptor)


def is_full(error: BaseException) -> bool:
    """Whether an error of SQLite or of the system says that there is no space left on the disk."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
