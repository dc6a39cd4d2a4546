"""`podscaler replay`: decides recorded syncs again and writes the decisions to files or standard output.

`podscaler.cli.main` registers the command. `podscaler.core.replay` decides; this command opens, unpacks and writes
files. The commands explain, timeline, backtest and dashboard read recordings with `open_input` and `read_lines`, too. A
new flag of deciding is an attribute of ReplayOptions, or an item of its `flags`.
"""

import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple, cast

import click
import msgspec

from podscaler.base.errors import UsageError
from podscaler.cli.options import settings
from podscaler.core import replay

STANDARD_STREAM = "-"
"""The name that means standard input or output."""
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW_BITS = 31
"""zlib's window size for data with a gzip header (15 bits, plus 16)."""
CHUNK_BYTES = 1 << 20

EXAMPLE = """\b
Examples:
  podscaler replay web.recording.jsonl.gz
  podscaler replay --out-dir decisions recordings/*.recording.jsonl.gz
  zcat web.recording.jsonl.gz | podscaler replay - --trace
"""


class ReplayOptions(NamedTuple):
    """The arguments of `podscaler.core.replay.decisions`; an empty `version` and absent flags are the recording's."""

    with_trace: bool
    version: str
    flags: Mapping[str, str]


@click.command(epilog=EXAMPLE)
@click.argument("recordings", type=click.Path(), metavar="RECORDING...", nargs=-1, required=True)
@click.option("--out", metavar="FILE", help="where to write all decisions ('-', the default: standard output)")
@click.option("--out-dir", metavar="DIR", help="a folder for NAME.decisions.jsonl of each NAME.recording.jsonl[.gz]")
@click.option("--trace", is_flag=True, help="add to each decision how it came about (docs/trace.md)")
@click.option("--emulate", type=settings.VERSION, help="decide by another Kubernetes version: 1.37 or 1.38")
@click.option("--algorithm", type=settings.ALGORITHM, help="decide by another algorithm: current or v1.1")
def command(
    recordings: tuple[str, ...],
    out: str | None,
    out_dir: str | None,
    trace: bool,
    emulate: str | None,
    algorithm: str | None,
) -> None:
    """Decide recorded syncs again, one line for each.

    A RECORDING is a file of JSON Lines, plain or gzip ('-': standard input). Where a line cannot be used, the decisions
    up to there are written, the line is named, and the exit status is 2.
    """
    options = ReplayOptions(trace, emulate or "", {"algorithm": algorithm} if algorithm else {})
    if out is not None and out_dir is not None:
        raise UsageError("--out and --out-dir cannot be used together")
    if out_dir is not None:
        _replay_to_folder(recordings, Path(out_dir), options)
        return
    with _open_output(out or STANDARD_STREAM) as sink:
        for recording in recordings:
            _write_decisions(recording, sink, options)


def _replay_to_folder(recordings: tuple[str, ...], folder: Path, options: ReplayOptions) -> None:
    """Replay each recording to a file of its own. Raises UsageError if two would have the same name."""
    outputs: dict[Path, str] = {}
    for recording in recordings:
        output = folder / f"{_stem(recording)}.decisions.jsonl"
        if output in outputs:
            raise UsageError(f"{outputs[output]} and {recording} would both be written to {output}")
        outputs[output] = recording
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}") from None
    for output, recording in outputs.items():
        with _open_output(str(output)) as sink:
            _write_decisions(recording, sink, options)


def _stem(recording: str) -> str:
    """`web` of `recordings/web.recording.jsonl.gz`."""
    name = "stdin" if recording == STANDARD_STREAM else Path(recording).name
    for suffix in (".gz", ".jsonl", ".recording"):
        name = name.removesuffix(suffix)
    return name


def _write_decisions(recording: str, sink: IO[bytes], options: ReplayOptions) -> None:
    """Write the decisions of one recording. Raises UsageError naming the file and the line."""
    encode = msgspec.json.Encoder().encode
    name = "standard input" if recording == STANDARD_STREAM else recording
    with open_input(recording) as source:
        try:
            for decision in replay.decisions(read_lines(source), **options._asdict()):
                sink.write(encode(decision) + b"\n")
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None


def open_input(recording: str) -> AbstractContextManager[BufferedReader]:
    """The bytes of a file, or of standard input for `-`. Raises UsageError if it cannot be opened."""
    if recording == STANDARD_STREAM:
        return nullcontext(cast(BufferedReader, sys.stdin.buffer))
    try:
        return Path(recording).open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {recording}: {error.strerror}") from None


@contextmanager
def _open_output(output: str) -> Iterator[IO[bytes]]:
    """The file to write to, or standard output. Raises UsageError."""
    if output == STANDARD_STREAM:
        yield sys.stdout.buffer
        return
    try:
        with Path(output).open("wb") as sink:
            yield sink
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from None


def read_lines(source: BufferedReader) -> Iterable[bytes]:
    """The lines of plain or gzip text; the first bytes show which. Raises OSError or EOFError for broken gzip."""
    first_bytes = source.read(len(GZIP_MAGIC))
    chunks = chain([first_bytes], iter(partial(source.read1, CHUNK_BYTES), b""))
    return _split_lines(_unpacked(chunks) if first_bytes == GZIP_MAGIC else chunks)


def _split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, without their ends, of text in chunks that may end within a line."""
    unfinished_line = b""
    for chunk in chunks:
        *lines, unfinished_line = (unfinished_line + chunk).split(b"\n")
        yield from lines
    if unfinished_line:
        yield unfinished_line


def _unpacked(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The unpacked gzip data (one member or several), in chunks of bounded size.

    The standard library's reader does the same in pieces of 8 KiB, which takes twice the time.
    """
    unpacker = zlib.decompressobj(GZIP_WINDOW_BITS)
    for chunk in chunks:
        packed = chunk
        while packed:
            if unpacker.eof:  # a further member begins
                unpacker = zlib.decompressobj(GZIP_WINDOW_BITS)
            try:
                yield unpacker.decompress(packed, CHUNK_BYTES)
            except zlib.error as error:
                raise OSError(f"broken gzip data: {error}") from None
            packed = unpacker.unused_data or unpacker.unconsumed_tail  # of a further member, or beyond CHUNK_BYTES
    if not unpacker.eof:
        yield unpacker.flush()
        raise EOFError("the gzip data ends too early")
