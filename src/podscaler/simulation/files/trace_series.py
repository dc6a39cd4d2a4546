"""Turns the points of a trace into a series, and rejects gaps, missing values and points out of order.

Called by `loads` for CSV, Parquet and Prometheus. A point counts from its instant until the next one. A new value of
Gaps: its case in `_StepBuilder` and `_series_of_requests`.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from podscaler.base.errors import UsageError
from podscaler.simulation.files.traces import TracePoint
from podscaler.simulation.model import step_series
from podscaler.simulation.model.expectations import clock_text
from podscaler.simulation.model.step_series import StepSeries

Gaps = Literal["error", "hold", "zero"]
TraceUnit = Literal["value", "count", "requests"]

GAP_STEPS = 2.5
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
        """The error that names the source and a location in it, such as `line 7`."""
        return UsageError(f"{self.name}: {location}: {sentence}")


def to_series(points: Iterable[TracePoint], rules: PointRules, per_unit: int) -> StepSeries:
    """The series of the points within the scenario, whose values are times `per_unit`. Raises UsageError."""
    trimmed_points = _check_and_trim(points, rules)
    first_point = next(trimmed_points, None)
    if first_point is None:
        raise UsageError(f"{rules.name} has no rows{_section_text(rules)}")
    start_ms = first_point.at_ms if rules.start_ms is None else rules.start_ms
    if first_point.at_ms > start_ms and rules.unit != "requests":
        raise rules.error(
            first_point.location, "the first row is after the start of the section; choose a later `from`"
        )
    relative_points = (
        point._replace(at_ms=point.at_ms - start_ms) for point in itertools.chain([first_point], trimmed_points)
    )
    scenario_points = itertools.takewhile(lambda point: point.at_ms < rules.duration_ms, relative_points)
    if rules.unit == "requests":
        return _series_of_requests(scenario_points, rules, per_unit)
    return _series_of_values(scenario_points, rules, per_unit)


def _section_text(rules: PointRules) -> str:
    return " at or after the start of the section" if rules.start_ms is not None else ""


def _check_and_trim(points: Iterable[TracePoint], rules: PointRules) -> Iterator[TracePoint]:
    """The points from the last one at or before the start on, which has the value at the start.

    Of requests, those before the start are dropped. Raises UsageError for points that are not in the order of time.
    """
    start_ms = rules.start_ms
    start_point = previous_point = None
    for point in points:
        if previous_point is not None:
            _check_order(previous_point, point, rules)
        previous_point = point
        if start_ms is not None and point.at_ms <= start_ms and rules.unit != "requests":
            start_point = point  # the last one of these is yielded
            continue
        if start_ms is not None and point.at_ms < start_ms:  # a request before the start
            continue
        if start_point is not None:
            yield start_point
            start_point = None
        yield point
    if start_point is not None:  # no point is after the start
        yield start_point


def _check_order(previous_point: TracePoint, point: TracePoint, rules: PointRules) -> None:
    """Raises UsageError unless a point is later than the one before; requests may be at one instant."""
    if point.at_ms < previous_point.at_ms:
        raise rules.error(
            point.location, f"the instant is earlier than that of {previous_point.location}; sort the rows by time"
        )
    if point.at_ms == previous_point.at_ms and rules.unit != "requests":
        raise rules.error(
            point.location, f"the instant is the same as that of {previous_point.location}; one row each is needed"
        )


def _series_of_values(points: Iterator[TracePoint], rules: PointRules, per_unit: int) -> StepSeries:
    """The series of values, or of counts as rates per second. Raises UsageError where the usual step is unknown."""
    first_points = list(itertools.islice(points, _STEP_SAMPLE))
    usual_step_ms = rules.every_ms or _median_step_ms(first_points)
    if usual_step_ms is None and first_points and first_points[0].at_ms < 0:
        raise UsageError(f"{rules.name} has no rows after the start of the section: `from` is after the last row")
    if usual_step_ms is None:
        raise UsageError(f"{rules.name} has one row; state its interval as `every`, or a constant in place of the file")
    factor = per_unit / (usual_step_ms / 1000) if rules.unit == "count" else per_unit
    builder = _StepBuilder(rules, usual_step_ms, factor)
    for point in itertools.chain(first_points, points):
        builder.add(point)
    return builder.to_series()


def _median_step_ms(points: list[TracePoint]) -> int | None:
    """The median distance of neighboring points; None for less than two points."""
    steps_ms = sorted(later.at_ms - earlier.at_ms for earlier, later in itertools.pairwise(points))
    return steps_ms[len(steps_ms) // 2] if steps_ms else None


@dataclass(slots=True)
class _StepBuilder:
    """Collects the steps of a series from points in order, and checks or fills gaps.

    Attributes:
        usual_step_ms: the usual distance of two points.
        factor: from a value to the units of the series.
        last_point: the last point with a value.
    """

    rules: PointRules
    usual_step_ms: int
    factor: float
    last_point: TracePoint | None = None
    steps: list[tuple[int, int]] = field(default_factory=list)

    def add(self, point: TracePoint) -> None:
        """Add a point, after the gap before it, if there is one. Raises UsageError for a value that is missing."""
        if point.value is None:
            if self.rules.gaps == "error":
                raise self.rules.error(point.location, f"the value is missing; {_GAP_ADVICE}")
            return
        self._check_gap_before(point.at_ms, point.location)
        self.steps.append((max(point.at_ms, 0), round(point.value * self.rules.scale * self.factor)))
        self.last_point = point

    def to_series(self) -> StepSeries:
        """The series. Raises UsageError if the points end before the scenario."""
        if self.last_point is None:
            raise UsageError(f"{self.rules.name} has no values")
        if self.rules.duration_ms - self.last_point.at_ms > GAP_STEPS * self.usual_step_ms:
            if self.rules.gaps == "error":
                raise _early_end_error(self.last_point, self.rules)
            self._end_last_value()
        return step_series.from_steps(self.steps)

    def _check_gap_before(self, at_ms: int, location: str) -> None:
        """Raise UsageError for a gap before a point at `at_ms`, or fill it as `rules.gaps` says."""
        if self.last_point is None:
            if at_ms > 0 and self.rules.gaps == "hold":
                raise self.rules.error(location, "the values before this one are missing, and there is none to hold")
            if at_ms > 0:
                self.steps.append((0, 0))
            return
        distance_ms = at_ms - self.last_point.at_ms
        if distance_ms <= GAP_STEPS * self.usual_step_ms:
            return
        if self.rules.gaps == "error":
            distance, usual_distance = clock_text(distance_ms), clock_text(self.usual_step_ms)
            raise self.rules.error(
                location,
                f"a gap of {distance} since {self.last_point.location}, usual is {usual_distance}; {_GAP_ADVICE}",
            )
        self._end_last_value()

    def _end_last_value(self) -> None:
        """In a gap the last value holds (`hold`), or is followed by zero after the usual step (`zero`)."""
        if self.rules.gaps == "zero" and self.last_point is not None:
            self.steps.append((max(self.last_point.at_ms + self.usual_step_ms, 0), 0))


_GAP_ADVICE = "state `gaps: hold` (the last value) or `gaps: zero`, or add the rows"


def _series_of_requests(points: Iterator[TracePoint], rules: PointRules, per_unit: int) -> StepSeries:
    """The rate of requests in bins of `rules.every_ms`; each point is one request. Raises UsageError for an early end.

    A bin without requests is a rate of 0 for every value of `gaps`, since no request is no gap.
    """
    every_ms = rules.every_ms or _REQUEST_BIN_MS
    counts = [0] * max(math.ceil(rules.duration_ms / every_ms), 1)
    last_point = None
    for last_point in points:
        counts[last_point.at_ms // every_ms] += 1
    if last_point is not None and rules.gaps == "error":
        missing_ms = rules.duration_ms - last_point.at_ms
        if missing_ms > GAP_STEPS * every_ms:
            raise _early_end_error(last_point, rules)
    factor = rules.scale * per_unit * 1000 / every_ms
    return step_series.from_steps((index * every_ms, round(count * factor)) for index, count in enumerate(counts))


def _early_end_error(last_point: TracePoint, rules: PointRules) -> UsageError:
    """The error of points that end before the scenario does."""
    duration_text, end_text = clock_text(rules.duration_ms), clock_text(max(last_point.at_ms, 0))
    sentence = (
        f"the rows end {end_text} after the start, and the scenario lasts {duration_text}; shorten `duration`, or state"
    )
    hold_advice = "" if rules.unit == "requests" else " or `gaps: hold`"
    return rules.error(last_point.location, f"{sentence} `gaps: zero`{hold_advice}")
