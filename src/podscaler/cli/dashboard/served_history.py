"""Reads recordings into the history that the dashboard shows, before its controller starts.

Called by `podscaler.cli.dashboard.dashboard_run` for the files of `--recording`, and by
`podscaler.cli.dashboard.cluster_watch` for what an earlier run wrote to the file of `--record`.
"""

import logging
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from podscaler.api.typed import recording
from podscaler.api.typed.recording import RecordingError
from podscaler.base.errors import UsageError
from podscaler.cli.commands import replay
from podscaler.controller.recording.record_file import RecordFile
from podscaler.observe.decision_history import DecisionHistory

log = logging.getLogger(__name__)


def load(history: DecisionHistory, recordings: Sequence[str]) -> None:
    """Read recordings, which are given oldest first. The call blocks.

    Of a recording that is damaged or ends early, the syncs before that are used, and a warning is logged. Raises
    UsageError if a file cannot be opened, or does not begin as a recording.
    """
    for name in recordings:
        with replay.open_input(name) as source:
            lines = iter(replay.read_lines(source))
            try:
                header = _read_header(lines, name)
                loaded_count = history.load(chain([header], lines))
            except RecordingError as error:
                log.warning("%s: %s; what came before it is used", name, error)
            except (OSError, EOFError) as error:  # its writer was killed, or writes it now
                log.warning("%s ends early (%s); what came before it is used", name, error)
            else:
                log.info("%d syncs of %s are used", loaded_count, name)


def _read_header(lines: Iterator[bytes], name: str) -> bytes:
    """The first line. Raises UsageError if it is not the header of a recording."""
    first_line = next(lines, b"")
    try:
        recording.read_header(first_line)
    except RecordingError as error:
        raise UsageError(f"{name}: {error}") from None
    return first_line


def load_earlier_runs(history: DecisionHistory, file: RecordFile) -> None:
    """Read what earlier runs wrote to the file of `--record`, before it begins. The call blocks. Raises UsageError."""
    load(history, [str(path) for path in file.existing() if _has_content(path)])


def _has_content(path: Path) -> bool:
    """Whether the file exists and is not empty."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
