"""The two files of a container's log: FILE, and FILE.1 with the lines before the last rotation.

`kubelet.logs.container_log` writes them by a `RotatingFile`, `log_reader` reads them by a `LogCursor`;
`kubelet.containers.container_process` removes those of earlier starts. A cursor keeps its files open, so that it loses
no line when they are rotated while it reads.
"""

import logging
import os
from pathlib import Path
from typing import BinaryIO, Final

CHUNK_BYTES: Final = 1 << 18
"""The size of one read of a file."""
_ROTATED_SUFFIX: Final = ".1"
"""The end of the name of the file with the older lines."""

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
        self._size_bytes = 0  # the size of the open file
        self._has_failed = False

    def write(self, data: bytes) -> None:
        """Append stored lines, after a rotation if the file would exceed `max_bytes`. An OSError is logged once."""
        try:
            self._append(data)
        except OSError as error:
            if not self._has_failed:
                _log.warning(
                    "the log of a container cannot be written, its output is lost: %s: %s", self._path, error.strerror
                )
            self._has_failed = True

    def _append(self, data: bytes) -> None:
        """Append `data`, and rotate or open the file before if need be. Raises OSError."""
        if self._size_bytes and self._size_bytes + len(data) > self._max_bytes:
            self.close()
            os.replace(self._path, f"{self._path}{_ROTATED_SUFFIX}")
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self._path, "ab", buffering=0, opener=_open_private)  # noqa: SIM115  kept open between writes
            self._size_bytes = self._file.tell()
        self._file.write(data)
        self._size_bytes += len(data)

    def close(self) -> None:
        """Close the file; the next write opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._size_bytes = 0


def remove_older(path: Path) -> None:
    """Remove the logs of earlier starts, except the last: for N.log, all below N-1. Blocks. Raises OSError."""
    if not path.parent.exists():
        return
    for log_file in path.parent.iterdir():
        start_number, _, _ = log_file.name.partition(".")
        if start_number.isdigit() and int(start_number) < int(path.stem) - 1:
            log_file.unlink(missing_ok=True)


def _open_private(path: str, flags: int) -> int:
    """An opener for `open`: a new file can be read and written by its owner alone."""
    return os.open(path, flags, 0o600)


class LogCursor:
    """A read position in the files of one log. Its methods block and are called in one thread at a time.

    Args:
        path: the log's newest file; a missing file reads as empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: list[BinaryIO] = []  # the oldest first; the first one is read
        self._incomplete_line = b""
        for candidate in (Path(f"{path}{_ROTATED_SUFFIX}"), path):
            self._add_file(candidate)

    def seek_tail(self, lines: int) -> None:
        """Before the first `read`: move to the beginning of the last `lines` lines, or of all. Raises OSError."""
        missing_lines = lines
        for index in reversed(range(len(self._files))):
            missing_lines = _seek_back(self._files[index], missing_lines)
            if missing_lines == 0:
                self._close_oldest(index)
                return

    def read(self) -> list[bytes]:
        """The next stored lines, without newlines; empty if no more has been written yet. Raises OSError."""
        while self._files:
            chunk = self._files[0].read(CHUNK_BYTES)
            if chunk:
                *lines, self._incomplete_line = (self._incomplete_line + chunk).split(b"\n")
                if lines:
                    return lines
            elif len(self._files) > 1 or self._open_rotated():
                self._close_oldest(1)
            else:
                return []
        self._add_file(self._path)  # no file existed before
        return self.read() if self._files else []

    def close(self) -> None:
        """Close the files."""
        self._close_oldest(len(self._files))

    def _open_rotated(self) -> bool:
        """Open the files that are newer than the only open one; returns whether there are any: the log was rotated."""
        open_inode = os.fstat(self._files[-1].fileno()).st_ino
        if _inode(self._path) == open_inode:  # the open file is FILE
            return False
        rotated_path = Path(f"{self._path}{_ROTATED_SUFFIX}")
        if _inode(rotated_path) != open_inode:  # the open file was replaced: the log was rotated twice
            self._add_file(rotated_path)
        self._add_file(self._path)
        return len(self._files) > 1

    def _add_file(self, path: Path) -> None:
        """Add a file, unless it is missing."""
        try:
            self._files.append(open(path, "rb", buffering=0))  # noqa: SIM115  kept open while the log is followed
        except FileNotFoundError:
            return

    def _close_oldest(self, count: int) -> None:
        for file in self._files[:count]:
            file.close()
        del self._files[:count]


def _inode(path: Path) -> int:
    """The number of the file's inode, 0 if it is missing."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _seek_back(file: BinaryIO, lines: int) -> int:
    """Move `file` to the beginning of its last `lines` lines, or of all; returns how many are missing for `lines`."""
    end = file.seek(0, os.SEEK_END)
    if lines == 0:
        return 0
    line_count, position = 0, end
    while position > 0:
        start = max(0, position - CHUNK_BYTES)
        file.seek(start)
        block = file.read(position - start)
        for offset in _newlines_backwards(block):
            if start + offset + 1 == end:
                continue  # the newline of the last line
            line_count += 1  # behind the n-th newline before that one, the last n lines begin
            if line_count == lines:
                file.seek(start + offset + 1)
                return 0
        position = start
    file.seek(0)
    lines_in_file = line_count + (1 if end else 0)  # the first line follows no newline
    return max(0, lines - lines_in_file)


def _newlines_backwards(block: bytes) -> list[int]:
    """The offsets of all newlines in `block`, the last first."""
    offsets = []
    offset = block.rfind(b"\n")
    while offset >= 0:
        offsets.append(offset)
        offset = block.rfind(b"\n", 0, offset)
    return offsets
