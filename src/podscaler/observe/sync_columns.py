"""Keeps the numbers of one autoscaler's syncs in columns of integers, and thins them with age.

`podscaler.observe.decision_history` has one SyncColumns for each autoscaler. A point of a sync with one metric takes 52
bytes. Points older than DETAILED_MS are thinned: those that change nothing stay once a minute. A new count: a name in
_COUNTS, an attribute of `sync_points.SyncPoint` and one of `views.DecisionTimeline`.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from podscaler.observe.sync_points import MetricPoint, SyncPoint
from podscaler.observe.views import DecisionTimeline, PlottedMetric

DETAILED_MS = 3_600_000
MINUTE_MS = 60_000
THINNED_AT_POINTS = 480
"""How many points since the last thinning cause the next one."""
POINTS_MAX = 2000
_UNKNOWN = -(2**31)
"""What a column of counts has for None."""
_UNKNOWN_LONG = -(2**63)
"""What a column of a metric has for None."""
_COUNT_MAX = 2**31 - 1
_VALUE_MAX = 2**63 - 1
_COUNTS = ("replicas", "desired", "limited", "ready", "min", "max")
_POINT_BYTES = 8 + 4 * len(_COUNTS)
"""The size of one point: an instant of 64 bits and counts of 32 bits."""
_METRIC_BYTES = 2 * 8
"""The size of one point of a metric: value and target."""


@dataclass(slots=True)
class _MetricColumns:
    """The columns of one metric, as long as those of the syncs."""

    unit: str
    current: "array[int]" = field(default_factory=lambda: array("q"))
    target: "array[int]" = field(default_factory=lambda: array("q"))

    def append(self, metric: MetricPoint | None, length: int) -> None:
        """Add the newest of `length` points, unknown for None; the points before a new metric are unknown, too."""
        current, target = (None, None) if metric is None else (metric.current, metric.target)
        for values, value in ((self.current, current), (self.target, target)):
            values.extend([_UNKNOWN_LONG] * (length - 1 - len(values)))
            values.append(_UNKNOWN_LONG if value is None else max(min(value, _VALUE_MAX), -_VALUE_MAX))


class SyncColumns:
    """The points of one autoscaler, oldest first.

    Attributes:
        at: the instants in ms.
    """

    def __init__(self) -> None:
        self.at: array[int] = array("q")
        self._counts: dict[str, array[int]] = {name: array("i") for name in _COUNTS}
        self._metrics: dict[str, _MetricColumns] = {}
        self._tolerances = (0.0, 0.0)  # down and up, of the newest point that has them
        self._length_thinned = 0  # how many points there were after the last thinning

    def __len__(self) -> int:
        return len(self.at)

    @property
    def size_bytes(self) -> int:
        """The size of all columns."""
        return len(self.at) * (_POINT_BYTES + _METRIC_BYTES * len(self._metrics))

    def append(self, point: SyncPoint) -> None:
        """Add the newest point; where the clock was set back, the points after it are dropped."""
        if self.at and point.at < self.at[-1]:
            self._keep_points(range(bisect_left(self.at, point.at)))
        self.at.append(point.at)
        for name, column in self._counts.items():
            value = getattr(point, name)
            column.append(_UNKNOWN if value is None else min(value, _COUNT_MAX))
        metrics_by_name = {metric.name: metric for metric in _with_distinct_names(point.metrics)}
        for metric in metrics_by_name.values():
            self._metrics.setdefault(metric.name, _MetricColumns(metric.unit)).unit = metric.unit  # it may change
        for name, columns in self._metrics.items():
            columns.append(metrics_by_name.get(name), len(self.at))
        if point.tolerances is not None:
            self._tolerances = point.tolerances

    def drop_before(self, at_ms: int) -> None:
        """Drop points older than an instant, and the metrics that no later point has."""
        self._keep_points(range(bisect_left(self.at, at_ms), len(self.at)))

    def thin(self, now_ms: int) -> None:
        """Thin old points, if THINNED_AT_POINTS were added since the last time."""
        if len(self.at) - self._length_thinned < THINNED_AT_POINTS:
            return
        self._keep_points(self._essential_indexes(now_ms - DETAILED_MS))
        self._length_thinned = len(self.at)

    def halve(self) -> None:
        """Drop the older half of the points."""
        self._keep_points(range((len(self.at) + 1) // 2, len(self.at)))

    def timeline(self, from_ms: int, to_ms: int) -> DecisionTimeline:
        """The points from one instant to another, both included; at most POINTS_MAX."""
        first, end = bisect_left(self.at, from_ms), bisect_left(self.at, to_ms + 1)
        indexes = self._decimated_indexes(first, end)
        counts = {name: _known_values(column, indexes, _UNKNOWN) for name, column in self._counts.items()}
        minima = tuple([count or 0 for count in counts.pop("min")])  # always known, as are the maxima
        maxima = tuple([count or 0 for count in counts.pop("max")])
        metrics = tuple([self._plotted_metric(name, columns, indexes) for name, columns in self._metrics.items()])
        at = tuple([self.at[index] for index in indexes])
        return DecisionTimeline(at=at, **counts, min=minima, max=maxima, metrics=metrics)

    def last(self, name: str) -> int | None:
        """The newest value of a count; None if the value is unknown."""
        column = self._counts[name]
        return column[-1] if column and column[-1] != _UNKNOWN else None

    def sampled(self, from_ms: int, to_ms: int, points: int) -> tuple[int, ...]:
        """The replicas at the end of each of `points` equal spans of a range of time, for the sparkline of a row.

        Spans that end before the first point of the range are left out, as are unknown counts.
        """
        column, replicas = self._counts["replicas"], []
        for number in range(1, points + 1):
            span_end_ms = from_ms + (to_ms - from_ms) * number // points
            latest = bisect_left(self.at, span_end_ms + 1) - 1
            if latest >= 0 and self.at[latest] >= from_ms and column[latest] != _UNKNOWN:
                replicas.append(column[latest])
        return tuple(replicas)

    def _plotted_metric(self, name: str, columns: _MetricColumns, indexes: Sequence[int]) -> PlottedMetric:
        """The points of a metric at these indexes, with the tolerances of the newest point."""
        tolerance_down, tolerance_up = self._tolerances
        return PlottedMetric(
            name=name,
            unit=columns.unit,
            current=_known_values(columns.current, indexes, _UNKNOWN_LONG),
            target=_known_values(columns.target, indexes, _UNKNOWN_LONG),
            tolerance_down=tolerance_down,
            tolerance_up=tolerance_up,
        )

    def _decimated_indexes(self, first: int, end: int) -> Sequence[int]:
        """The indexes of a range; of one with too many points those of the extremes in equal groups, and the last."""
        if end - first <= POINTS_MAX:
            return range(first, end)
        groups, kept_indexes = POINTS_MAX // 6, {first, end - 1}  # two extremes of three columns in each group
        series = [self._counts["replicas"], self._counts["desired"]]
        series += [columns.current for columns in self._metrics.values()][:1]  # of the first metric
        for group in range(groups):
            span = range(first + (end - first) * group // groups, first + (end - first) * (group + 1) // groups)
            for column in series:
                kept_indexes.add(min(span, key=column.__getitem__))
                kept_indexes.add(max(span, key=column.__getitem__))
        return sorted(kept_indexes)[:POINTS_MAX]

    def _essential_indexes(self, before_ms: int) -> Iterator[int]:
        """The indexes of the points that a thinning keeps: recent ones, one a minute, and changes of replicas."""
        last_minute, last_outcome = -1, None  # of the last point that is kept
        limited, replicas = self._counts["limited"], self._counts["replicas"]
        for index, at_ms in enumerate(self.at):
            outcome = (limited[index], replicas[index])
            if at_ms >= before_ms or outcome != last_outcome or at_ms // MINUTE_MS != last_minute:
                last_minute, last_outcome = at_ms // MINUTE_MS, outcome
                yield index

    def _keep_points(self, kept_indexes: Iterable[int]) -> None:
        """Drop all points but those at these indexes, and the metrics that have no known target any more."""
        indexes = list(kept_indexes)
        if len(indexes) == len(self.at):
            return
        self.at = array("q", [self.at[index] for index in indexes])
        for name, column in self._counts.items():
            self._counts[name] = array("i", [column[index] for index in indexes])
        for name, columns in list(self._metrics.items()):
            columns.current = array("q", [columns.current[index] for index in indexes])
            columns.target = array("q", [columns.target[index] for index in indexes])
            if all(value == _UNKNOWN_LONG for value in columns.target):
                del self._metrics[name]
        self._length_thinned = min(self._length_thinned, len(self.at))


def _known_values(column: "array[int]", indexes: Sequence[int], unknown: int) -> tuple[int | None, ...]:
    """The values at these indexes, with None for `unknown`."""
    return tuple([None if column[index] == unknown else column[index] for index in indexes])


def _with_distinct_names(metrics: Sequence[MetricPoint]) -> Iterator[MetricPoint]:
    """The metrics with distinct names: a second one of a name gets a number."""
    count_by_name: dict[str, int] = {}
    for metric in metrics:
        number = count_by_name[metric.name] = count_by_name.get(metric.name, 0) + 1
        yield metric if number == 1 else metric._replace(name=f"{metric.name} ({number})")
