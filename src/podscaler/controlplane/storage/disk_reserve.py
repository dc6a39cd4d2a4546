"""Reserves disk space by a file that is truncated when the disk is full, so that deletes and a restart can be written.

`storage.journal` owns one `Reserve`. On a full disk even a delete needs space (a page in SQLite's write-ahead log)
before it frees any. The cycle: `fill` at the start, `release` before a commit on a full disk, `fill` again with the
freed space.
"""

import errno
import logging
import os
import sqlite3
from pathlib import Path

FILE_NAME = "reserve"
MAX_RESERVE_BYTES = 4 * 1024 * 1024
SMALL_DISK_DIVISOR = 8
"""On a small disk the reserve is the disk's size divided by this number."""

logger = logging.getLogger(__name__)


class Reserve:
    """The reserve file; its size is MAX_RESERVE_BYTES, less on a small disk.

    Args:
        directory: the folder of the file.
        is_wanted: whether there is a reserve; without one its size is 0.

    Attributes:
        size_bytes: the size of the full reserve; 0 if there is none.
        is_whole: whether the last `fill` allocated the full size and left as much free, and it was not released since;
            without a reserve always, once it was filled or released.

    Methods raise OSError for errors other than a full disk.
    """

    def __init__(self, directory: Path, *, is_wanted: bool = True) -> None:
        self._path = directory / FILE_NAME
        filesystem = os.statvfs(directory)
        disk_bytes = filesystem.f_blocks * filesystem.f_frsize
        self.size_bytes = min(MAX_RESERVE_BYTES, disk_bytes // SMALL_DISK_DIVISOR) if is_wanted else 0
        self.is_whole = False

    def release_if_tight(self) -> None:
        """Release the reserve if the disk has less free space than a quarter of it; to be called at the start."""
        if self._allocated_bytes() and self._free_bytes() < self.size_bytes // 4:
            logger.warning("the disk of %s is almost full: the start uses the reserved space", self._path)
            self.release()

    def release(self) -> None:
        """Free the reserved space."""
        if self._path.exists():
            os.truncate(self._path, 0)
        self.is_whole = not self.size_bytes

    def fill(self) -> bool:
        """Allocate the reserve as far as space is available; returns whether it is whole.

        With less free space than twice the reserve, half a reserve is left free for SQLite's write-ahead log.
        """
        allocated_bytes = self._allocated_bytes()
        available_bytes = allocated_bytes + self._free_bytes()
        self.is_whole = available_bytes >= 2 * self.size_bytes
        target_bytes = self.size_bytes
        if not self.is_whole:
            target_bytes = min(target_bytes, max(0, available_bytes - self.size_bytes // 2))
        if allocated_bytes < target_bytes:
            self.is_whole = _allocate_file(self._path, target_bytes) and self.is_whole
        return self.is_whole

    def _allocated_bytes(self) -> int:
        """The disk space that the reserve file uses; 0 if there is no file."""
        try:
            return self._path.stat().st_blocks * 512  # stat(2) counts blocks of 512 bytes
        except FileNotFoundError:
            return 0

    def _free_bytes(self) -> int:
        """The disk space that is available to this user."""
        filesystem = os.statvfs(self._path.parent)
        return filesystem.f_bavail * filesystem.f_frsize


def _allocate_file(path: Path, size_bytes: int) -> bool:
    """Allocate the file; returns False, with an empty file, if the disk is full. Raises OSError for other errors."""
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
    """Whether an error of SQLite or of the system means that the disk is full, or the user's quota is used up."""
    if isinstance(error, sqlite3.Error):
        # SHMSIZE: the index file of the write-ahead log (`-shm`) cannot grow
        return getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
