"""The two files of a container's log: FILE, and FILE.1 with the lines before the last rotation.

`container_log` writes them and `log_reader` reads them. A reader keeps its files open, so that it loses no line when
they are rotated while it reads.
"""

import logging
import os
from pathlib import Path
from typing import BinaryIO, Final

CHUNK_BYTES: Final = 1 << 18
_ROTATED: Final = ".1"

_log = logging.getLogger(__name__)


class RotatingFile:
    """The log file of one start of a container, written to by one thread at a time.

    Args:
        path: the newest file; created, with its directory, by the first write.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file: BinaryIO | None = None
        self._bytes = 0
        self._has_failed = False

    def write(self, data: bytes) -> None:
        """Append `data`, after a rotation if the file would exceed `max_bytes`. An OSError is logged once."""
        try:
            self._write(data)
        except OSError as error:
            if not self._has_failed:
                _log.warning(
                    "the log of a container cannot be written, its output is lost: %s: %s", self._path, error.strerror
                )
            self._has_failed = True

    def _write(self, data: bytes) -> None:
        if self._bytes and self._bytes + len(data) > self._max_bytes:
            self.close()
            os.replace(self._path, f"{self._path}{_ROTATED}")
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self._path, "ab", buffering=0, opener=_private)  # noqa: SIM115  kept open between writes
            self._bytes = self._file.tell()
        self._file.write(data)
        self._bytes += len(data)

    def close(self) -> None:
        """Close the file; the next write opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._bytes = 0


def remove_older(path: Path) -> None:
    """Remove the logs of earlier starts, except the last: for N.log, all below N-1. Blocks. Raises OSError."""
    if not path.parent.exists():
        return
    for other in path.parent.iterdir():
        number = other.name.partition(".")[0]
        if number.isdigit() and int(number) < int(path.stem) - 1:
            other.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class LogCursor:
    """A read position in the files of one log. Its methods block and are called in one thread at a time.

    Args:
        path: the log's newest file; a missing file reads as empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: list[BinaryIO] = []
        self._rest = b""
        for candidate in (Path(f"{path}{_ROTATED}"), path):
            self._open(candidate)

    def seek_tail(self, lines: int) -> None:
        """Move to the beginning of the last `lines` complete lines."""
        missing = lines
        for index in range(len(self._files) - 1, -1, -1):
            missing = _seek_back(self._files[index], missing)
            if missing == 0:
                self._drop(index)
                return

    def read(self) -> list[bytes]:
        """The next stored lines, without newlines; empty if no more has been written yet. Raises OSError."""
        while self._files:
            data = self._files[0].read(CHUNK_BYTES)
            if data:
                *lines, self._rest = (self._rest + data).split(b"\n")
                if lines:
                    return lines
            elif len(self._files) > 1 or self._has_rotated():
                self._drop(1)
            else:
                return []
        self._open(self._path)
        return self.read() if self._files else []

    def close(self) -> None:
        """Close the files."""
        self._drop(len(self._files))

    def _has_rotated(self) -> bool:
        """Whether the log was rotated since the last file was opened; opens the newer files."""
        mine = os.fstat(self._files[-1].fileno()).st_ino
        for candidate in (Path(f"{self._path}{_ROTATED}"), self._path):
            if _inode(candidate) != mine:
                self._open_newer(candidate, mine)
        return len(self._files) > 1

    def _open_newer(self, candidate: Path, mine: int) -> None:
        # FILE.1 is newer than ours only if FILE is not ours: ours was rotated away altogether.
        if candidate != self._path and _inode(self._path) == mine:
            return
        self._open(candidate)

    def _open(self, path: Path) -> None:
        try:
            self._files.append(open(path, "rb", buffering=0))  # noqa: SIM115  kept open while the log is followed
        except FileNotFoundError:
            return

    def _drop(self, count: int) -> None:
        for file in self._files[:count]:
            file.close()
        del self._files[:count]


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _seek_back(file: BinaryIO, lines: int) -> int:
    """Move `file` to its last `lines` lines; returns how many it did not have."""
    end = file.seek(0, os.SEEK_END)
    line_count, position = 0, end
    while position > 0:
        start = max(0, position - CHUNK_BYTES)
        file.seek(start)
        block = file.read(position - start)
        for offset in _newlines_backwards(block):
            if start + offset + 1 == end:
                continue  # the newline of the last line
            line_count += 1
            if line_count == lines:
                file.seek(start + offset + 1)
                return 0
        position = start
    file.seek(0 if lines else end)
    return max(0, lines - line_count - (1 if end else 0)) if lines else 0


def _newlines_backwards(block: bytes) -> list[int]:
    offsets = []
    offset = block.rfind(b"\n")
    while offset >= 0:
        offsets.append(offset)
        offset = block.rfind(b"\n", 0, offset)
    return offsets
