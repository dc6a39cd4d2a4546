"""Turns the points of a trace into a series, and rejects points that would make it a wrong one.

Called by `loads` for CSV, Parquet and Prometheus. A point counts from its instant until the next one.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from podscaler.base.errors import UsageError
from podscaler.simulation.files.traces import TracePoint
from podscaler.simulation.model import step_series
from podscaler.simulation.model.expectations import clock
from podscaler.simulation.model.step_series import StepSeries

Gaps = Literal["error", "hold", "zero"]
TraceUnit = Literal["value", "count", "requests"]

USUAL_STEPS = 2.5
"""A distance of two points beyond this many usual steps is a gap."""
_STEP_SAMPLE = 1000
"""The usual step is the median distance of this many first points."""
_REQUEST_BIN_MS = 15_000


@dataclass(frozen=True, slots=True)
class PointRules:
    """How the points of one trace are read.

    Attributes:
        name: of the source in messages.
        duration_ms: of the scenario; later points are not read.
        unit: `value`: values as they are; `count`: events from the point to the next; `requests`: each point is one.
        every_ms: the usual step, or the width of the bins of `requests`; None if it is found in the points.
        scale: a factor of all values.
        gaps: what a gap means: an error, the last value, or zero.
        start_ms: the instant of a point with which the scenario starts; None: that of the first point.
    """

    name: str
    duration_ms: int
    unit: TraceUnit = "value"
    every_ms: int | None = None
    scale: float = 1.0
    gaps: Gaps = "error"
    start_ms: int | None = None

    def error(self, location: str, sentence: str) -> UsageError:
        """The error that names source and place."""
        return UsageError(f"{self.name}: {location}: {sentence}")


def to_series(points: Iterable[TracePoint], rules: PointRules, per_unit: int) -> StepSeries:
    """The series of points in units of which `per_unit` are 1. Raises UsageError."""
    ordered = _ordered(points, rules)
    first = next(ordered, None)
    if first is None:
        raise UsageError(f"{rules.name} has no rows{_in_section(rules)}")
    start_ms = first.at_ms if rules.start_ms is None else rules.start_ms
    if first.at_ms > start_ms and rules.unit != "requests":
        raise rules.error(first.place, "the first row is after the start of the section; choose a later `from`")
    relative = (point._replace(at_ms=point.at_ms - start_ms) for point in itertools.chain([first], ordered))
    within = itertools.takewhile(lambda point: point.at_ms < rules.duration_ms, relative)
    if rules.unit == "requests":
        return _binned(within, rules, per_unit)
    return _stepped(within, rules, per_unit)


def _in_section(rules: PointRules) -> str:
    return " at or after the start of the section" if rules.start_ms is not None else ""


def _ordered(points: Iterable[TracePoint], rules: PointRules) -> Iterator[TracePoint]:
    """The points from the last one that is not after the start, checked for order."""
    start_ms, waiting, before = rules.start_ms, None, None
    for point in points:
        if before is not None:
            _check_order(before, point, rules)
        before = point
        if start_ms is not None and point.at_ms <= start_ms and rules.unit != "requests":
            waiting = point
            continue
        if start_ms is not None and point.at_ms < start_ms:
            waiting = None
            continue
        if waiting is not None:
            yield waiting
            waiting = None
        yield point
    if waiting is not None:
        yield waiting


def _check_order(before: TracePoint, point: TracePoint, rules: PointRules) -> None:
    if point.at_ms < before.at_ms:
        raise rules.error(point.place, f"the instant is earlier than that of {before.place}; sort the rows by time")
    if point.at_ms == before.at_ms and rules.unit != "requests":
        raise rules.error(point.place, f"the instant is the same as that of {before.place}; one row each is needed")


def _stepped(points: Iterator[TracePoint], rules: PointRules, per_unit: int) -> StepSeries:
    sample = list(itertools.islice(points, _STEP_SAMPLE))
    usual_ms = rules.every_ms or _median_step_ms(sample)
    if usual_ms is None and sample and sample[0].at_ms < 0:
        raise UsageError(f"{rules.name} has no rows after the start of the section: `from` is after the last row")
    if usual_ms is None:
        raise UsageError(f"{rules.name} has one row; state its interval as `every`, or a constant in place of the file")
    builder = _StepBuilder(rules, usual_ms, per_unit / (usual_ms / 1000) if rules.unit == "count" else per_unit)
    for point in itertools.chain(sample, points):
        builder.add(point)
    return builder.finished()


def _median_step_ms(points: list[TracePoint]) -> int | None:
    steps = sorted(later.at_ms - earlier.at_ms for earlier, later in itertools.pairwise(points))
    return steps[len(steps) // 2] if steps else None


@dataclass(slots=True)
class _StepBuilder:
    """Collects steps, and decides about gaps.

    Attributes:
        factor: from a value to the units of the series.
        last: the last point with a value.
    """

    rules: PointRules
    usual_ms: int
    factor: float
    last: TracePoint | None = None
    steps: list[tuple[int, int]] = field(default_factory=list)

    def add(self, point: TracePoint) -> None:
        """Add a point, after the gap before it, if there is one. Raises UsageError for a value that is missing."""
        if point.value is None:
            if self.rules.gaps == "error":
                raise self.rules.error(point.place, f"the value is missing; {_GAP_ADVICE}")
            return
        self._bridge(point.at_ms, point.place)
        self.steps.append((max(point.at_ms, 0), round(point.value * self.rules.scale * self.factor)))
        self.last = point

    def finished(self) -> StepSeries:
        """The series. Raises UsageError if the points end before the scenario."""
        if self.last is None:
            raise UsageError(f"{self.rules.name} has no values")
        if self.rules.duration_ms - self.last.at_ms > USUAL_STEPS * self.usual_ms:
            if self.rules.gaps == "error":
                raise _early_end(self.last, self.rules)
            self._fill()
        return step_series.from_steps(self.steps)

    def _bridge(self, at_ms: int, location: str) -> None:
        """Decide about the time between the last point and this one."""
        if self.last is None:
            if at_ms > 0 and self.rules.gaps == "hold":
                raise self.rules.error(location, "the values before this one are missing, and there is none to hold")
            if at_ms > 0:
                self.steps.append((0, 0))
            return
        distance_ms = at_ms - self.last.at_ms
        if distance_ms <= USUAL_STEPS * self.usual_ms:
            return
        if self.rules.gaps == "error":
            distance, usual = clock(distance_ms), clock(self.usual_ms)
            raise self.rules.error(
                location, f"a gap of {distance} since {self.last.place}, usual is {usual}; {_GAP_ADVICE}"
            )
        self._fill()

    def _fill(self) -> None:
        """The value within a gap."""
        if self.rules.gaps == "zero" and self.last is not None:
            self.steps.append((max(self.last.at_ms + self.usual_ms, 0), 0))


_GAP_ADVICE = "state `gaps: hold` (the last value) or `gaps: zero`, or add the rows"


def _binned(points: Iterator[TracePoint], rules: PointRules, per_unit: int) -> StepSeries:
    """The rate of requests, one point each."""
    every_ms = rules.every_ms or _REQUEST_BIN_MS
    counts = [0] * max(math.ceil(rules.duration_ms / every_ms), 1)
    last = None
    for last in points:
        counts[last.at_ms // every_ms] += 1
    if last is not None and rules.gaps == "error" and rules.duration_ms - last.at_ms > USUAL_STEPS * every_ms:
        raise _early_end(last, rules)
    factor = rules.scale * per_unit * 1000 / every_ms
    return step_series.from_steps((index * every_ms, round(count * factor)) for index, count in enumerate(counts))


def _early_end(last: TracePoint, rules: PointRules) -> UsageError:
    lasts, ends = clock(rules.duration_ms), clock(max(last.at_ms, 0))
    sentence = f"the rows end {ends} after the start, and the scenario lasts {lasts}; shorten `duration`, or state"
    return rules.error(
        last.place, f"{sentence} `gaps: zero`" + ("" if rules.unit == "requests" else " or `gaps: hold`")
    )
