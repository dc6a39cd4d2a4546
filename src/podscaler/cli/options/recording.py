"""Defines the flag `--record` with its options, and opens the file that the facts of every sync are written to.

`podscaler.cli.commands.controller` and `podscaler.cli.up.up` put `record_options` on their commands, give the values to
`record_file`, and work inside `open_recording`, as `podscaler.cli.dashboard` does. A new flag: an option of
`record_options`, and its value in `record_file`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click

from podscaler.api.machinery import quantity
from podscaler.api.typed import recording
from podscaler.base.clock import Clock
from podscaler.base.errors import UsageError
from podscaler.cli.options.flags import FlagType, Option, flag_group
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.file_recording import FileRecording
from podscaler.controller.recording.record_file import RecordFile
from podscaler.controller.recording.recording import Recording

SIZE_MIN_BYTES = 4096


def parse_size(size_text: str) -> int:
    """The number of bytes of a text such as `64Mi`. Raises ValueError."""
    size_bytes = quantity.parse(size_text).value()
    if size_bytes < SIZE_MIN_BYTES:
        raise ValueError(f"must be at least {SIZE_MIN_BYTES // 1024}Ki")
    return size_bytes


SIZE = FlagType("size", parse_size)


record_options = flag_group(
    click.option(
        "--record",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="record the facts of every sync, for replay and explain (gzip; only you may read it)",
    ),
    Option("record-max-size", SIZE, "64Mi", "compressed; a full FILE is numbered, and a fresh one is begun"),
    click.option(
        "--record-max-files", type=click.IntRange(1, 1000), default=8, show_default=True, help="how many files are kept"
    ),
)
"""Puts the flags on a command; give what they set to `record_file`."""


def record_file(options: Mapping[str, Any], settings: ControllerSettings) -> RecordFile | None:
    """The file for the values of `record_options` (by click's names), not opened yet; None if nothing is recorded."""
    path: Path | None = options["record"]
    if path is None:
        return None
    version = f"{settings.decision.emulation.version}.0"  # a recording names a patch release
    return RecordFile(
        path.expanduser().absolute(),
        recording.header_line(version, settings.flags),
        max_bytes=options["record_max_size"],
        files=options["record_max_files"],
    )


@asynccontextmanager
async def open_recording(file: RecordFile | None, clock: Clock) -> AsyncIterator[Recording]:
    """The recording, complete at the end; file None: records nothing. Raises UsageError for an unwritable file."""
    if file is None:
        yield Recording()
        return
    await asyncio.to_thread(_begin_file, file)
    file_recording = FileRecording(file, clock)
    try:
        yield file_recording
    finally:
        await file_recording.close()


def _begin_file(file: RecordFile) -> None:
    """Check and begin the file; blocks. Raises UsageError."""
    file.check()
    try:
        file.begin()
    except OSError as error:
        raise UsageError(f"--record: cannot write {file.path}: {error.strerror}") from error
