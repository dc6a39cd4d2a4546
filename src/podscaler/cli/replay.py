"""`podscaler replay`: the decisions for recorded syncs, as files or on standard output.

The decisions are `podscaler.core.replay`'s; this command opens, unpacks, names and writes files.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO

import click
import msgspec

from podscaler.core import replay
from podscaler.errors import UsageError

STANDARD = "-"
GZIP_MAGIC = b"\x1f\x8b"

EXAMPLE = """\b
Examples:
  podscaler replay web.recording.jsonl.gz
  podscaler replay --out-dir decisions recordings/*.recording.jsonl.gz
  zcat web.recording.jsonl.gz | podscaler replay - --trace
"""


@click.command(epilog=EXAMPLE)
@click.argument("recordings", metavar="RECORDING...", nargs=-1, required=True)
@click.option("--out", metavar="FILE", help="where to write all decisions ('-', the default: standard output)")
@click.option("--out-dir", metavar="DIR", help="a folder for NAME.decisions.jsonl of each NAME.recording.jsonl[.gz]")
@click.option("--trace", is_flag=True, help="add to each decision how it came about (docs/trace.md)")
def command(recordings: tuple[str, ...], out: str | None, out_dir: str | None, trace: bool) -> None:
    """Decide recorded syncs again, one line for each.

    A RECORDING is a file of JSON Lines, plain or gzip ('-': standard input). Where a line cannot be used, the decisions
    up to there are written, the line is named, and the exit status is 2.
    """
    if out is not None and out_dir is not None:
        raise UsageError("--out and --out-dir cannot be used together")
    if out_dir is not None:
        _replay_to_folder(recordings, Path(out_dir), with_trace=trace)
        return
    with _writing(out or STANDARD) as sink:
        for recording in recordings:
            _replay(recording, sink, with_trace=trace)


def _replay_to_folder(recordings: tuple[str, ...], folder: Path, *, with_trace: bool) -> None:
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
        with _writing(str(output)) as sink:
            _replay(recording, sink, with_trace=with_trace)


def _stem(recording: str) -> str:
    name = "stdin" if recording == STANDARD else Path(recording).name
    for suffix in (".gz", ".jsonl", ".recording"):
        name = name.removesuffix(suffix)
    return name


def _replay(recording: str, sink: IO[bytes], *, with_trace: bool) -> None:
    """Write the decisions of one recording. Raises UsageError naming the file and the line."""
    encode = msgspec.json.Encoder().encode
    name = "standard input" if recording == STANDARD else recording
    with _reading(recording) as source:
        try:
            for decision in replay.decisions(_lines(source), with_trace=with_trace):
                sink.write(encode(decision) + b"\n")
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None


def _reading(recording: str) -> AbstractContextManager[IO[bytes]]:
    if recording == STANDARD:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(recording).open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {recording}: {error.strerror}") from None


@contextmanager
def _writing(output: str) -> Iterator[IO[bytes]]:
    if output == STANDARD:
        yield sys.stdout.buffer
        return
    try:
        with Path(output).open("wb") as sink:
            yield sink
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from None


def _lines(source: IO[bytes]) -> Iterable[bytes]:
    """The lines of plain or gzip text, which its first bytes tell. Raises OSError or EOFError for broken gzip."""
    buffered = source if isinstance(source, io.BufferedReader) else io.BufferedReader(source)
    if buffered.peek(2)[:2] != GZIP_MAGIC:
        return buffered
    return _unpacked_lines(buffered)


def _unpacked_lines(source: IO[bytes]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=source) as unpacked:
        try:
            yield from unpacked
        except zlib.error as error:
            raise OSError(f"broken gzip data: {error}") from None
