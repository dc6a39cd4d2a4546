"""The timeline of the decisions of a recording: an entry for each stretch of syncs with the same outcome, and a plot.

Called by `podscaler.cli.diagnosis.timeline` for `--recording`. All syncs are decided again, as in a replay. A folder is
read file by file in the order of the first syncs, so that a recording and its rotated files (`web.1.jsonl.gz`) are one
timeline. What counts as the same outcome is in `_is_same_outcome`, the plot in `plot`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from podscaler.api.machinery import instants
from podscaler.api.typed import recording
from podscaler.api.typed.recording import RecordingError
from podscaler.base.errors import UsageError
from podscaler.cli.commands import replay as replay_command
from podscaler.cli.diagnosis.timeline_entries import EntryKind, TimelineEntry
from podscaler.cli.explain import explain_request
from podscaler.cli.explain.explain_request import ExplainRequest
from podscaler.core.decision import Decision
from podscaler.core.replay import Replay
from podscaler.explain import explained, verdict, wording
from podscaler.explain.verdict import Verdict

PLOT_WIDTH = 60
PLOT_HEIGHT = 8
REPLICAS_SIGN, DESIRED_SIGN = "#", "o"
SHOWN_NAMES_MAX = 10
"""How many autoscalers an error message lists."""
_SUFFIXES = (".jsonl", ".jsonl.gz")


class ReplicaPoint(NamedTuple):
    """One sync.

    Attributes:
        at_ns: its instant, since the epoch.
        replicas: of the target; None: not known.
        desired: the replicas that the metrics ask for; None: not known.
    """

    at_ns: int
    replicas: int | None
    desired: int | None


@dataclass(slots=True)
class RecordedTrack:
    """The decisions of one autoscaler, `namespace/name`.

    Attributes:
        entries: oldest first; each lasts until the next.
        points: one for each sync.
    """

    autoscaler: str
    entries: list[TimelineEntry] = field(default_factory=list)
    points: list[ReplicaPoint] = field(default_factory=list)
    _latest_outcome: Verdict | None = None

    def add(self, decision: Decision, at_ns: int) -> None:
        """Add the decision of the next sync: extend the latest entry if the outcome is the same, else add an entry."""
        outcome = verdict.of(decision.trace)
        self.points.append(ReplicaPoint(at_ns, outcome.current, outcome.wanted))
        if self._latest_outcome is not None and _is_same_outcome(self._latest_outcome, outcome):
            self.entries[-1] = _extended(self.entries[-1], at_ns)
            return
        if self.entries:  # the outcome before lasted until this sync, which does not count as one of its times
            self.entries[-1] = _extended(self.entries[-1], at_ns, added_times=0)
        self._latest_outcome = outcome
        summary = explained.of_decision(decision).summary
        self.entries.append(TimelineEntry(at_ns, EntryKind.DECISION, self.autoscaler, summary))


def _is_same_outcome(earlier: Verdict, later: Verdict) -> bool:
    """Whether two decisions had the same outcome, so that they are one entry."""
    return (
        earlier.ending == later.ending
        and earlier.current == later.current
        and earlier.desired == later.desired
        and earlier.write_error == later.write_error
    )


def _extended(entry: TimelineEntry, until_ns: int, added_times: int = 1) -> TimelineEntry:
    """The entry, which lasts until `until_ns` and was seen `added_times` more often."""
    return msgspec.structs.replace(entry, until=until_ns, times=entry.times + added_times)


def read(path: str, request: ExplainRequest) -> RecordedTrack:
    """The decisions of the requested autoscaler.

    Args:
        path: a file, a folder with files `*.jsonl` or `*.jsonl.gz`, or `-` for standard input.
        request: which autoscaler; it needs no name where the recording has one only.

    Raises UsageError if a file cannot be read, or no autoscaler is meant, or several are.
    """
    tracks: dict[str, RecordedTrack] = {}
    for file_path in _list_files(path):
        _read_file(file_path, tracks)
    matching = [track for key, track in tracks.items() if request.matches(key)]
    if len(matching) == 1:
        return matching[0]
    names = wording.listed(explain_request.distinct_names(list(tracks)), shown=SHOWN_NAMES_MAX)
    if matching:
        raise UsageError(f"{path} has {len(matching)} autoscalers that may be meant, name one: {names}")
    raise UsageError(
        f"{path} has no autoscaler {request.description}; it has {names}" if tracks else f"{path} has no syncs"
    )


def _list_files(path: str) -> list[str]:
    """The files of a folder in the order of their first syncs; a file alone. Raises UsageError if there is none."""
    if path == replay_command.STANDARD_STREAM or not Path(path).is_dir():
        return [path]
    file_paths = [str(file) for file in sorted(Path(path).iterdir()) if file.name.endswith(_SUFFIXES)]
    if not file_paths:
        raise UsageError(f"the folder {path} has no file *.jsonl or *.jsonl.gz")
    return sorted(file_paths, key=_first_instant_ns)


def _first_instant_ns(file_path: str) -> int:
    """The instant of the first line after the header; 0 if there is none."""
    for line in _read_lines(file_path):
        if line.strip() and b'"recording"' not in line[:20]:  # the header begins with that field
            try:
                return instants.parse(recording.read_line(line).time)
            except (RecordingError, ValueError):
                return 0
    return 0


def _read_lines(file_path: str) -> Iterator[bytes]:
    """The lines of a file; a compressed one that is still being written ends early. Raises UsageError."""
    with replay_command.open_input(file_path) as source:
        try:
            yield from replay_command.read_lines(source)
        except EOFError:
            return
        except OSError as error:
            raise UsageError(f"{file_path}: {error}") from None


def _read_file(file_path: str, tracks: dict[str, RecordedTrack]) -> None:
    """Decide the syncs of a recording again, and add them to the track of their autoscaler. Raises UsageError."""
    replay: Replay | None = None
    for number, line in enumerate(_read_lines(file_path), 1):
        if not line.strip():
            continue
        try:
            if replay is None:
                replay = Replay(recording.read_header(line))
            elif (sync := replay.parse(line)) is not None:
                track = tracks.setdefault(sync.spec.key, RecordedTrack(sync.spec.key))
                track.add(replay.decide(sync), sync.now_ns)
        except RecordingError as error:
            raise UsageError(f"{file_path}: line {number}: {error}") from None


def plot(points: Sequence[ReplicaPoint]) -> Iterator[str]:
    """The replicas (`#`), and what the metrics ask for (`o`), as lines of text; empty for fewer than two points."""
    shown = [point for point in points if point.replicas is not None]
    if len(shown) < 2:
        return
    columns = _columns(shown)
    highest = max(max(replicas, desired or 0) for replicas, desired in columns) or 1
    height = min(PLOT_HEIGHT, highest)
    width = len(str(highest))
    yield f"Replicas ({REPLICAS_SIGN}) and what the metrics wanted ({DESIRED_SIGN})"
    for row in range(height, 0, -1):
        label = ""
        if row == height:
            label = str(highest)
        elif row == 1:
            label = str(-(-highest // height))  # the replicas of one row, rounded up
        signs = "".join(_sign(column, row, highest / height) for column in columns)
        yield f"  {label:>{width}} |{signs}".rstrip()
    begin, end = wording.clock_time(shown[0].at_ns), wording.clock_time(shown[-1].at_ns)
    end_width = max(len(columns) + 1 - len(begin), len(end) + 1)
    yield f"  {'':>{width}} {begin}{end:>{end_width}}"


def _columns(points: Sequence[ReplicaPoint]) -> list[tuple[int, int | None]]:
    """The latest replicas, and what the metrics ask for (None: not known), in each of PLOT_WIDTH slices of time."""
    begin_ns, span_ns = points[0].at_ns, max(points[-1].at_ns - points[0].at_ns, 1)
    columns: list[tuple[int, int | None]] = []
    index = 0
    for column in range(PLOT_WIDTH):
        end_ns = begin_ns + span_ns * (column + 1) // PLOT_WIDTH
        while index + 1 < len(points) and points[index + 1].at_ns <= end_ns:
            index += 1
        columns.append((points[index].replicas or 0, points[index].desired))
    return columns


def _sign(column: tuple[int, int | None], row: int, step: float) -> str:
    """The character of a column in a row, counted from 1 at the bottom, of `step` replicas each."""
    replicas, desired = column
    if desired is not None and (row - 1) * step < desired <= row * step:
        return DESIRED_SIGN
    return REPLICAS_SIGN if replicas > (row - 1) * step else " "
