"""A controller is killed, and another one goes on: no window is cut short, and only the metrics scale anything up."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from podscaler.controller.history import history_record, stored_map
from podscaler.controller.history.history_record import HEARTBEAT_S, LAZY_S, Heartbeat, HistoryRecord
from podscaler.controller.history.store import HistorySnapshot
from podscaler.core.limits import stabilization
from podscaler.core.model import history, stored_history
from podscaler.core.model.history import EMPTY, History, Recommendation
from podscaler.core.model.settings import SECOND_NS, Settings

PERIOD_S = 15
LONGER_NS = 120 * SECOND_NS
"""By how much a window may last longer after a kill."""
HOUR_NS = 3600 * SECOND_NS


class Course(NamedTuple):
    """What happens to an autoscaler.

    Attributes:
        proposals: what the metrics propose at each sync; the kill comes between the last and the next, when what
            is urgent has been saved.
        saves: whether a change is saved at that sync, though it need not be yet.
        maximum: the spec's.
        window_s: that holds scale-downs.
        up_window_s: that holds scale-ups, where there is a behavior.
        is_written: whether a last rescale was written before the kill, or stored only.
        gone_s: for how long nobody is at work.
        proposal: what the metrics propose then.
    """

    proposals: list[int]
    saves: list[bool]
    maximum: int
    window_s: int
    up_window_s: int
    is_written: bool
    gone_s: int
    proposal: int


COUNTS = st.integers(1, 9)
COURSES = st.integers(1, 40).flatmap(
    lambda syncs: st.builds(
        Course,
        proposals=st.lists(COUNTS, min_size=syncs, max_size=syncs),
        saves=st.lists(st.booleans(), min_size=syncs, max_size=syncs),
        maximum=st.integers(3, 9),
        window_s=st.integers(0, 400),
        up_window_s=st.integers(0, 400),
        is_written=st.booleans(),
        gone_s=st.integers(0, 400),
        proposal=COUNTS,
    )
)


@dataclass
class Process:
    """A controller at work on one autoscaler, which keeps its history as the archive does.

    Attributes:
        all_past: every recommendation, whether a window still reaches it or not.
    """

    course: Course
    has_behavior: bool
    past: History = EMPTY
    all_past: History = EMPTY
    replicas: int = 3
    record: HistoryRecord | None = None
    saved_at: int = 0
    beat: Heartbeat = field(default_factory=lambda: Heartbeat(0))

    def stabilize(self, past: History, proposal: int, now: int) -> stabilization.Stabilized:
        """A proposal, held by recommendations, as the spec says."""
        recommendations, windows_s = past.recommendations, (self.course.window_s, self.course.up_window_s)
        down_ns, up_ns = (window_s * SECOND_NS for window_s in windows_s)
        if not self.has_behavior:
            flags = Settings(downscale_stabilization_ns=down_ns)
            return stabilization.by_flag(recommendations, proposal, now, flags)
        return stabilization.by_behavior(
            recommendations, proposal, self.replicas, now_ns=now, windows_ns=(down_ns, up_ns)
        )

    def run(self) -> int:
        """Sync until the kill; its instant."""
        now = 0
        for number, proposal in enumerate(self.course.proposals):
            now = number * PERIOD_S * SECOND_NS
            self._sync(proposal, now, number)
        return now

    def _sync(self, proposal: int, now: int, number: int) -> None:
        if now - self.beat.at >= HEARTBEAT_S * SECOND_NS:
            self.beat = Heartbeat(now)
        self.past = history.with_first_recommendation(self.past, self.replicas, now)
        self.all_past = stored_history.merged(
            history.with_first_recommendation(self.all_past, self.replicas, now),
            History((Recommendation(proposal, now),)),
        )
        held = self.stabilize(self.past, proposal, now)
        self.past = History(held.recommendations)
        desired = min(held.step.result, self.course.maximum)
        is_rescale, is_last = desired != self.replicas, number == len(self.course.proposals) - 1
        if is_rescale:
            self._save(HistorySnapshot("u", self.past, desired, now, rescaled_from=self.replicas), now)
        elif number == 0 or self.course.saves[number] or self._is_due(now):
            self._save(HistorySnapshot("u", self.past, self.replicas, now), now)
        if not is_last or self.course.is_written:
            self.replicas = desired

    def _is_due(self, now: int) -> bool:
        """Whether a change is saved now at the latest."""
        if now - self.saved_at >= LAZY_S * SECOND_NS:
            return True
        assert self.record is not None
        return history_record.prolongs(self.record, self.past, replicas=self.replicas, at=now)

    def _save(self, latest: HistorySnapshot, now: int) -> None:
        record = stored_map.record_of(latest, "w", now_ns=now, reach_ns=HOUR_NS)
        self.saved_at = now
        if self.record is None or not history_record.is_as_good(self.record, record):
            self.record = record


def next_decisions(process: Process, began: int) -> Iterator[tuple[int, int, int]]:
    """What is left of the proposal after the kill, until no window reaches back to it.

    Yields what the next process makes of it, what the killed one would have made of it, and what two minutes before.
    """
    course = process.course
    assert process.record is not None
    found = history_record.restored(process.record, process.beat, began)
    past = history_record.resumed(found, process.replicas, began, has_behavior=process.has_behavior)
    for second in range(0, max(course.window_s, course.up_window_s) + 150, 5):
        now = began + second * SECOND_NS
        looks = ((past, now), (process.all_past, now), (process.all_past, now - LONGER_NS))
        result, without_kill, before = (process.stabilize(look[0], course.proposal, look[1]) for look in looks)
        yield result.step.result, without_kill.step.result, before.step.result


@given(COURSES, st.booleans())
@settings(deadline=None)
def test_what_the_target_has_is_held(course: Course, has_behavior: bool) -> None:
    """As long as without the kill, and up to two minutes longer; only the metrics add replicas."""
    process = Process(course, has_behavior)
    began = process.run() + course.gone_s * SECOND_NS
    present, proposal = process.replicas, course.proposal
    for result, without_kill, before in next_decisions(process, began):
        assert min(without_kill, present) <= result <= max(present, proposal)
        assert result <= max(before, proposal)


@given(COURSES)
@settings(deadline=None)
def test_a_scale_up_is_held(course: Course) -> None:
    """By a window that a behavior has for it: as long as without the kill, and up to two minutes longer."""
    process = Process(course, has_behavior=True)
    began = process.run() + course.gone_s * SECOND_NS
    assume(course.proposal > process.replicas)
    for result, without_kill, before in next_decisions(process, began):
        assert before <= result <= without_kill
