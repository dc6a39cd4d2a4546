"""Keeps the decisions of the last day in memory, as a recording that a controller reports each sync to.

`podscaler.observe.live_cluster` reads it for views; `podscaler up` gives one to its controller, `podscaler dashboard`
to a dry run. Invariants: never more than `max_bytes` and never older than `max_age_s`, both checked once a second; a
report never waits. For each autoscaler it keeps

* the numbers of each sync (`sync_columns.SyncColumns`), thinned after an hour;
* the sync itself, so that it can be decided again, where its outcome differs from the one before, and otherwise once
  every SAMPLE_PERIOD_MS (`kept_syncs.KeptSyncs`).
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from podscaler.api.typed import recording
from podscaler.api.typed.recording import RecordingError
from podscaler.base.clock import Clock
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.recording import Recording, SyncRecord, SyncsEnd
from podscaler.core import replay
from podscaler.core.decision import Decision
from podscaler.core.replay import RecordedSync, Replay
from podscaler.kube.informers.cache import Key
from podscaler.observe import kept_syncs, sync_points
from podscaler.observe.kept_syncs import KeptSync, KeptSyncs
from podscaler.observe.sync_columns import SyncColumns
from podscaler.observe.sync_points import MILLISECOND_NS, DecisionOutcome, SyncPoint

MAX_AGE_S = 86_400.0
MAX_BYTES = 128 * 1024 * 1024
SAMPLE_PERIOD_MS = 60_000
TIDY_PERIOD_S = 1.0
SYNCS_MIN_RATIO = 1 / 4
"""The part of the limit of bytes that kept syncs may use in any case; points may use the rest."""
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000
_ENCODER = msgspec.json.Encoder()


def header_of(settings: ControllerSettings) -> bytes:
    """The header line of a recording with these settings."""
    return recording.header_line(f"{settings.decision.emulation.version}.0", settings.flags)


@dataclass(slots=True)
class DecisionTrack:
    """The decisions of one autoscaler.

    Attributes:
        columns: the numbers of its syncs.
        latest: its newest sync; None if this process has synced it not yet, or not any more.
        outcome: the outcome of the newest sync.
        sampled_at: the instant of the newest sync that is kept, in ms; 0 before the first.
        changed_at: the newest change of replicas or outcome, in ms; None if no change was observed.
        was_cut: whether the limit of bytes dropped points.
    """

    columns: SyncColumns = field(default_factory=SyncColumns)
    latest: SyncRecord | None = None
    outcome: DecisionOutcome | None = None
    sampled_at: int = 0
    changed_at: int | None = None
    was_cut: bool = False


class DecisionHistory(Recording):
    """The decisions of the last day.

    Args:
        header: the header line of a recording with the settings of the controller.
        clock: for the age.
        inner: gets every report, too; the caller closes it.
        max_bytes, max_age_s: the limits.

    Attributes:
        kept: the syncs that can be decided again.
        began_at: the instant from which this process reports, in ms since the epoch.
    """

    is_on = True

    def __init__(
        self,
        header: bytes,
        clock: Clock,
        *,
        inner: Recording | None = None,
        max_bytes: int = MAX_BYTES,
        max_age_s: float = MAX_AGE_S,
    ) -> None:
        self.header = header
        self.kept = KeptSyncs()
        self.began_at = clock.now_ns() // MILLISECOND_NS
        self._clock = clock
        self._inner = inner or Recording()
        self._max_bytes = max_bytes
        self._max_age_ms = round(max_age_s * 1000)
        self._tracks: dict[Key, DecisionTrack] = {}
        self._listeners: list[Callable[[Key], None]] = []

    def configure(self, header: bytes, inner: Recording) -> None:
        """Replace the arguments of the constructor; call it before the controller runs."""
        self.header, self._inner = header, inner

    @property
    def lines_written(self) -> int:  # type: ignore[override]  # a counter of the inner recording
        """How many lines the inner recording has written."""
        return self._inner.lines_written

    @property
    def lines_lost(self) -> int:  # type: ignore[override]  # a counter of the inner recording
        """How many lines the inner recording has lost."""
        return self._inner.lines_lost

    @property
    def size_bytes(self) -> int:
        """The size of what is kept, without the syncs that wait to be compressed."""
        return self.kept.size_bytes + sum(track.columns.size_bytes for track in self._tracks.values())

    @property
    def now_ms(self) -> int:
        """The clock's wall time in ms."""
        return self._clock.now_ns() // MILLISECOND_NS

    def listen(self, listener: Callable[[Key], None]) -> None:
        """Call `listener` with the key of each autoscaler that has a new decision."""
        self._listeners.append(listener)

    def find(self, key: Key) -> DecisionTrack | None:
        """The decisions of an autoscaler; None if no decision is known."""
        return self._tracks.get(key)

    def since(self, key: Key) -> tuple[int | None, str]:
        """The instant of the oldest known decision (ms; None if no decision is known), and why none is older."""
        track = self._tracks.get(key)
        if track is None or not track.columns.at:
            return None, "no decision about it was seen yet"
        oldest = track.columns.at[0]
        if track.was_cut:
            return oldest, "older decisions were dropped, because the limit of memory was reached"
        if oldest <= self.now_ms - self._max_age_ms + 2 * SAMPLE_PERIOD_MS:  # the next older point may be dropped
            return oldest, f"decisions are kept for {_span_text(self._max_age_ms)}"
        return oldest, self.since_reason(oldest)

    def since_reason(self, oldest: int) -> str:
        """Why nothing before the oldest known decision, at that instant in ms, is known."""
        if oldest < self.began_at:
            return "the recording that was read begins here"
        return "this process began to watch then; podscaler dashboard --recording FILE shows what a controller recorded"

    @property
    def oldest_at(self) -> int | None:
        """The instant of the oldest decision, in ms; None if no decision is known."""
        return min((track.columns.at[0] for track in self._tracks.values() if track.columns.at), default=None)

    def report(self, record: SyncRecord | SyncsEnd) -> None:
        """Keep the numbers of a sync, and the sync itself where `_is_kept`; pass the report on; never waits."""
        self._inner.report(record)
        if isinstance(record, SyncsEnd):
            if (ended_track := self._tracks.get(record.key)) is not None:
                ended_track.latest = None
            return
        key, decision = record.autoscaler.key, record.decision
        track = self._tracks.setdefault(key, DecisionTrack())
        point = sync_points.of(decision, record.observed.observation.pods)
        if self._is_kept(track, decision, point):
            mark = sync_points.mark(decision, is_carried_out=record.is_carried_out)
            is_sample = sync_points.outcome(decision) == track.outcome
            self.kept.add(KeptSync(key, mark, self.header, is_sample=is_sample, record=record))
        self._add_point(track, decision, point)
        track.latest = record
        for listener in self._listeners:
            listener(key)

    async def run(self) -> None:
        """Compress and tidy once a second, until cancelled; run the inner recording."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._inner.run())
            while True:
                await self._clock.sleep(TIDY_PERIOD_S)
                await self.kept.pack_waiting()
                self.tidy()

    def tidy(self) -> None:
        """Enforce both limits."""
        now_ms = self.now_ms
        oldest_ms = now_ms - self._max_age_ms
        self.kept.drop_before(oldest_ms)
        for key, track in list(self._tracks.items()):
            if track.columns.at and track.columns.at[0] < oldest_ms - SAMPLE_PERIOD_MS:
                track.columns.drop_before(oldest_ms)
            if not track.columns.at and track.latest is None:
                del self._tracks[key]
            track.columns.thin(now_ms)
        self._enforce_max_bytes()

    def _enforce_max_bytes(self) -> None:
        """Drop the oldest syncs, then halve the longest columns of points, until the limit of bytes is kept."""
        points_bytes = sum(track.columns.size_bytes for track in self._tracks.values())
        syncs_min_bytes = int(self._max_bytes * SYNCS_MIN_RATIO)
        self.kept.shrink(max(self._max_bytes - points_bytes, syncs_min_bytes))
        while points_bytes > self._max_bytes - syncs_min_bytes and self._tracks:
            longest = max(self._tracks.values(), key=lambda track: len(track.columns))
            points_bytes -= longest.columns.size_bytes
            longest.columns.halve()
            longest.was_cut = True
            points_bytes += longest.columns.size_bytes
            if len(longest.columns) == 0:  # so are all others
                break

    def load(self, lines: Iterable[bytes]) -> int:
        """Read a recording, which is older than what is here; returns how many syncs were added. The call blocks.

        Call it before the first report. Syncs older than the limit are skipped.

        Raises:
            RecordingError: a line cannot be used; what came before it stays.
        """
        numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
        first = next(numbered, None)
        if first is None:
            raise RecordingError("the recording is empty")
        _, header_line = first
        header, added_count = header_line.rstrip(b"\n") + b"\n", 0
        replayer = Replay(recording.read_header(header_line))
        for number, line in numbered:
            try:
                sync = replayer.parse(line)
                if sync is None:
                    continue
                added_count += self._add_recorded_sync(sync, replayer.decide(sync), header)
            except RecordingError as error:
                raise RecordingError(f"line {number}: {error}") from None
        self.tidy()
        return added_count

    def _add_recorded_sync(self, sync: RecordedSync, decision: Decision, header: bytes) -> bool:
        """Add a recorded sync, unless it is older than the limit; returns whether it was added."""
        if sync.now_ns // MILLISECOND_NS < self.now_ms - self._max_age_ms:
            return False
        namespace, _, name = sync.spec.key.partition("/")
        track = self._tracks.setdefault((namespace, name), DecisionTrack())
        point = sync_points.of(decision, sync.observation.pods)
        if self._is_kept(track, decision, point):
            line = msgspec.structs.replace(sync.line, history=replay.write_history(sync.prior_history))
            packed = kept_syncs.pack(_ENCODER.encode(line) + b"\n")
            mark = sync_points.mark(decision, is_carried_out=True)
            is_sample = sync_points.outcome(decision) == track.outcome
            self.kept.add(KeptSync((namespace, name), mark, header, is_sample=is_sample, packed=packed))
        self._add_point(track, decision, point)
        return True

    def _is_kept(self, track: DecisionTrack, decision: Decision, point: SyncPoint) -> bool:
        """Whether a sync is kept: its outcome is new, the last kept one is old, or the clock was set back.

        Compares with the attributes that `_add_point` sets, so it is called before.
        """
        has_new_outcome = sync_points.outcome(decision) != track.outcome
        return has_new_outcome or point.at - track.sampled_at >= SAMPLE_PERIOD_MS or point.at < track.sampled_at

    def _add_point(self, track: DecisionTrack, decision: Decision, point: SyncPoint) -> None:
        """Add the point of a decision to a track, and set its attributes that the decision changes."""
        outcome = sync_points.outcome(decision)
        has_new_outcome = outcome != track.outcome
        if self._is_kept(track, decision, point):
            track.sampled_at = point.at
        if track.outcome is not None and (has_new_outcome or point.replicas != track.columns.last("replicas")):
            track.changed_at = point.at
        track.outcome = outcome
        track.columns.append(point)


def _span_text(span_ms: int) -> str:
    """The span in words, in days or hours if it is a whole number of them, else in minutes."""
    if span_ms % _DAY_MS == 0:
        return "a day" if span_ms == _DAY_MS else f"{span_ms // _DAY_MS} days"
    return f"{span_ms // _HOUR_MS} h" if span_ms % _HOUR_MS == 0 else f"{span_ms // _MINUTE_MS} min"
