"""Writes the files of a recording: a gzip file that is replaced by a new one when it is full; older ones are numbered.

`podscaler.controller.recording.file_recording` writes through it in a thread: every method blocks. Invariants:

1. Every file is a recording of its own, with a header. What was flushed can be read again after a kill.
2. Only their owner can read the files (mode 0600): they show the load of a cluster.
3. There are never more than `files`, each at most about `max_bytes` long. The newest is FILE, those before are
   numbered from 1, the latest: `web.recording.jsonl.gz`, `web.1.recording.jsonl.gz`, ...
4. A FILE that is no recording is never moved, overwritten or deleted, nor is one that another process writes.
"""

import fcntl
import os
import stat
import zlib
from contextlib import suppress
from pathlib import Path

from podscaler.api.typed import recording
from podscaler.base.errors import UsageError

GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS  # 16: the gzip format
GZIP_MAGIC = b"\x1f\x8b"
COMPRESSION_LEVEL = 6
SUFFIXES = (".gz", ".jsonl", ".recording")
HEADER_MAX_BYTES = 64 * 1024


class RecordFile:
    """The open gzip file of a recording, and its numbered predecessors.

    Args:
        path: the value of `--record`, called FILE here.
        header: the first line of each file.
        max_bytes: the compressed size at which the next file is begun.
        files: how many files are kept, FILE included; at least 1.
    """

    def __init__(self, path: Path, header: bytes, *, max_bytes: int, files: int) -> None:
        self.path = path
        self._header = header
        self._max_bytes = max_bytes
        self._files = files
        self._descriptor = -1
        self._compressor = zlib.compressobj()
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the next line should begin a new file."""
        return self._size_bytes >= self._max_bytes

    def existing(self) -> list[Path]:
        """The files that exist, oldest first: the numbered ones, then FILE. The call blocks."""
        numbered = [self._numbered(number) for number in range(self._files - 1, -1, -1)]
        return [path for path in numbered if path.is_file()]

    def check(self) -> None:
        """Check that FILE can be begun. Raises UsageError if it is no recording, or another process writes it."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            raise UsageError(f"--record: cannot open {self.path}: {error.strerror}") from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError(f"--record: {self.path} is not a regular file")
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # fails while a process writes, which holds LOCK_EX
            if not _is_recording(os.read(descriptor, HEADER_MAX_BYTES)):
                raise UsageError(f"--record: {self.path} exists and is not a recording; it is left alone")
        except BlockingIOError as error:
            raise UsageError(f"--record: another process is recording to {self.path}") from error
        finally:
            os.close(descriptor)

    def begin(self) -> None:
        """Begin a new file; FILE as it was before is numbered. Raises OSError: then nothing has been moved."""
        new_path = self.path.with_name(f"{self.path.name}.new")
        with suppress(FileNotFoundError):
            new_path.unlink()
        descriptor = os.open(new_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            compressor = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, GZIP_WINDOW_BITS)
            first_bytes = compressor.compress(self._header) + compressor.flush(zlib.Z_SYNC_FLUSH)
            _write_all(descriptor, first_bytes)
            self._end_member()  # the open file is ended only now that the new one can be written
            self._shift_files()
            new_path.rename(self.path)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor, self._compressor, self._size_bytes = descriptor, compressor, len(first_bytes)

    def write(self, lines: bytes) -> None:
        """Add lines, each with its newline. Raises OSError: then only `begin` may be called."""
        self._append(self._compressor.compress(lines))

    def flush(self) -> None:
        """Write everything so far to the file. Raises OSError, as `write`."""
        self._append(self._compressor.flush(zlib.Z_SYNC_FLUSH))

    def abandon(self) -> None:
        """Close the file without its end."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def close(self) -> None:
        """End and close the file, if one is open. Raises OSError."""
        self._end_member()

    def _append(self, packed: bytes) -> None:
        """Append bytes to the file; nothing if there are none."""
        if packed:
            _write_all(self._descriptor, packed)
            self._size_bytes += len(packed)

    def _end_member(self) -> None:
        """Write the end of the gzip data, and close the file, if one is open. Raises OSError."""
        if self._descriptor < 0:
            return
        try:
            self._append(self._compressor.flush(zlib.Z_FINISH))
        finally:
            self.abandon()

    def _shift_files(self) -> None:
        """Rename FILE to number 1, 1 to 2, and so on; the last number is overwritten."""
        for number in range(self._files - 1, 0, -1):
            source = self._numbered(number - 1)
            with suppress(FileNotFoundError):
                source.replace(self._numbered(number))

    def _numbered(self, number: int) -> Path:
        """The path of the file with that number, before the suffixes (`web.1.recording.jsonl.gz`); 0: FILE itself."""
        if not number:
            return self.path
        stem, ending = self.path.name, ""
        for suffix in SUFFIXES:
            if stem.endswith(suffix) and stem != suffix:
                stem, ending = stem.removesuffix(suffix), suffix + ending
        return self.path.with_name(f"{stem}.{number}{ending}")


def _is_recording(first_bytes: bytes) -> bool:
    """Whether a file with that beginning is empty, or a recording."""
    try:
        if first_bytes.startswith(GZIP_MAGIC):
            first_bytes = zlib.decompressobj(GZIP_WINDOW_BITS).decompress(first_bytes, HEADER_MAX_BYTES)
        if first_bytes:
            recording.read_header(first_bytes.partition(b"\n")[0])
    except (zlib.error, recording.RecordingError):
        return False
    return True


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes, also where the system accepts them only in parts."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
