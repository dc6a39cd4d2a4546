"""Splits recordings into files that each have all lines of some autoscalers, in their order.

Called by `podscaler backtest --fleet`, before `partition_runs`. Lines are read once, one after the other. What is kept
is a buffer for each file and the names of the autoscalers, so the memory depends neither on the length of the
recordings nor on their number.

Invariants: the manifest is written last, so that a folder with one is complete. A folder whose manifest has other
sources or another number of files is made anew.

Source: the format of recordings (docs/recordings.md).
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from podscaler.api.typed import recording
from podscaler.api.typed.recording import RecordingError, RecordingHeader
from podscaler.base.errors import JSON_DECODE_ERRORS, UsageError

FOLDER = "lines"
"""The folder of the files of lines, within the output folder of a run."""

PARTITIONS = 256
"""The number of files unless another one is stated."""

_MANIFEST = "manifest.json"
_BUFFER_BYTES = 64 * 1024
_GZIP_LEVEL = 1


class RecordingSource(msgspec.Struct, frozen=True, kw_only=True):
    """A recording file.

    Attributes:
        path: absolute.
        size_bytes, modified_ns: by which a changed file is recognized.
    """

    path: str
    size_bytes: int
    modified_ns: int


class SplitPart(msgspec.Struct, frozen=True, kw_only=True):
    """A file of lines.

    Attributes:
        name: its stem.
        digest: of its lines.
        keys: of its autoscalers, `namespace/name`, sorted.
    """

    name: str
    digest: str
    keys: tuple[str, ...]


class SplitManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a folder of files of lines; `header` is that of all recordings."""

    sources: tuple[RecordingSource, ...]
    partitions: int
    header: RecordingHeader
    parts: tuple[SplitPart, ...]


ReadLines = Callable[[Path], Iterable[bytes]]
"""The lines of a recording, unpacked; it may raise OSError, EOFError or UsageError."""


def split(paths: Sequence[Path], folder: Path, read_lines: ReadLines, *, partitions: int = PARTITIONS) -> SplitManifest:
    """The files of these recordings, which must be of one controller.

    Args:
        paths: at least one, in the order of time.
        folder: the output folder of the run; files that are there and fit are kept.
        read_lines: unpacks and reads a recording.
        partitions: the number of files at most.

    Raises UsageError, naming the recording and the line that cannot be used, or the folder that cannot be written.
    """
    sources = tuple([_source_of_file(path) for path in paths])
    kept_manifest = _find_manifest(folder)
    if kept_manifest is not None and (kept_manifest.sources, kept_manifest.partitions) == (sources, partitions):
        return kept_manifest
    try:
        _remove_old_files(folder)
        writer = _LineSplitter(folder / FOLDER, partitions)
        header = _write_lines(paths, read_lines, writer)
        manifest = SplitManifest(sources=sources, partitions=partitions, header=header, parts=writer.finish())
        _write_manifest(folder, manifest)
    except OSError as error:
        raise UsageError(f"{folder / FOLDER} cannot be written: {error}") from None
    return manifest


def _source_of_file(path: Path) -> RecordingSource:
    """The path, size and time of a recording file. Raises UsageError if it cannot be read."""
    try:
        file_status = path.stat()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    return RecordingSource(
        path=str(path.resolve()), size_bytes=file_status.st_size, modified_ns=file_status.st_mtime_ns
    )


def _find_manifest(folder: Path) -> SplitManifest | None:
    """The manifest; None if there is none, or none that can be read."""
    try:
        return msgspec.json.decode((folder / FOLDER / _MANIFEST).read_bytes(), type=SplitManifest)
    except (OSError, *JSON_DECODE_ERRORS):
        return None


def _remove_old_files(folder: Path) -> None:
    """Remove the files of an earlier run, the manifest first."""
    lines_folder = folder / FOLDER
    lines_folder.mkdir(parents=True, exist_ok=True)
    (lines_folder / _MANIFEST).unlink(missing_ok=True)
    for path in lines_folder.glob("part-*.jsonl.gz"):
        path.unlink()


def _write_manifest(folder: Path, manifest: SplitManifest) -> None:
    """Write the manifest beside its place and rename it, so that it is whole or not there. Raises OSError."""
    partial_path = folder / FOLDER / f"{_MANIFEST}.partial"
    partial_path.write_bytes(msgspec.json.encode(manifest))
    partial_path.replace(folder / FOLDER / _MANIFEST)


def _write_lines(paths: Sequence[Path], read_lines: ReadLines, writer: "_LineSplitter") -> RecordingHeader:
    """Write all lines, and return the header. Raises UsageError, and OSError where a file cannot be written."""
    headers = [_write_lines_of_file(path, read_lines, writer) for path in paths]
    for path, header in zip(paths, headers, strict=True):
        if header != headers[0]:
            raise UsageError(f"{path} has another header than {paths[0]}; run the recordings of each controller alone")
    return headers[0]


def _write_lines_of_file(path: Path, read_lines: ReadLines, writer: "_LineSplitter") -> RecordingHeader:
    """Write the lines of one recording, and return its header. Raises UsageError with the line."""
    header: RecordingHeader | None = None
    for line_number, line in _numbered_lines(path, read_lines):
        try:
            if header is None:
                header = recording.read_header(line)
            else:
                writer.add(key_of(line), line.rstrip(b"\n"))
        except RecordingError as error:
            raise UsageError(f"{path}: line {line_number}: {error}") from None
    if header is None:
        raise UsageError(f"{path}: line 1: the recording is empty; its first line must be a header")
    return header


def _numbered_lines(path: Path, read_lines: ReadLines) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1. Raises UsageError if the file cannot be read."""
    line_number = 0
    try:
        for line_number, line in enumerate(read_lines(path), 1):
            if line and not line.isspace():
                yield line_number, line
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: after line {line_number}: {error}") from None


class _KeyMetadata(msgspec.Struct, frozen=True):
    """The part of an autoscaler's metadata that identifies it."""

    name: str
    namespace: str


class _KeyedObject(msgspec.Struct, frozen=True):
    """The part of an autoscaler that identifies it."""

    metadata: _KeyMetadata


class _KeyedLine(msgspec.Struct, frozen=True):
    """The fields of a line that identify its autoscaler."""

    hpa: _KeyedObject | None = None
    deleted: str = ""


_KEYED_LINE = msgspec.json.Decoder(_KeyedLine)


def key_of(line: bytes) -> str:
    """The autoscaler (`namespace/name`) of a line after the header, also of one about its deletion.

    Raises RecordingError if the line is not JSON, or names no autoscaler.
    """
    try:
        keyed_line = _KEYED_LINE.decode(line)
    except JSON_DECODE_ERRORS as error:
        raise RecordingError(str(error)) from None
    if keyed_line.hpa is not None:
        metadata = keyed_line.hpa.metadata
        return f"{metadata.namespace}/{metadata.name}"
    if not keyed_line.deleted:
        raise RecordingError("it has neither `hpa` nor `deleted`")
    return keyed_line.deleted


class _PartWriter:
    """Writes one file of lines, as gzip members of a full buffer each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._buffer = bytearray()
        self._digest = hashlib.blake2b(digest_size=16)
        self._keys: set[str] = set()

    def add(self, key: str, line: bytes) -> None:
        """Append a line, given without its line end, of the autoscaler with that key."""
        self._keys.add(key)
        self._buffer += line
        self._buffer += b"\n"
        if len(self._buffer) >= _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Append the buffer to the file as a gzip member, which can be read as a part of the whole file."""
        self._digest.update(self._buffer)
        with self._path.open("ab") as file:
            file.write(gzip.compress(self._buffer, _GZIP_LEVEL, mtime=0))
        self._buffer.clear()

    def finish(self) -> SplitPart:
        """Write the rest of the buffer, and return what the manifest has of the file."""
        self._flush()
        name = self._path.name.removesuffix(".jsonl.gz")
        return SplitPart(name=name, digest=self._digest.hexdigest(), keys=tuple(sorted(self._keys)))


class _LineSplitter:
    """Writes each line to the file of its autoscaler, which the hash of the autoscaler's key chooses."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self._folder = folder
        self._partitions = partitions
        self._part_writers: dict[int, _PartWriter] = {}

    def add(self, key: str, line: bytes) -> None:
        """Append a line to the file of its autoscaler, which is made with its first line."""
        index = zlib.crc32(key.encode()) % self._partitions
        part_writer = self._part_writers.get(index)
        if part_writer is None:
            part_writer = self._part_writers[index] = _PartWriter(self._folder / f"part-{index:07}.jsonl.gz")
        part_writer.add(key, line)

    def finish(self) -> tuple[SplitPart, ...]:
        """Write what is still in buffers; the files in the order of their numbers."""
        return tuple([self._part_writers[index].finish() for index in sorted(self._part_writers)])
