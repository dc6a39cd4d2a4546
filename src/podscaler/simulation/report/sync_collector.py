"""Collects the syncs of a simulation as the plots and decisions of a report.

`podscaler simulate` adds every sync to a `SyncCollector` while the simulation runs. A sync costs 8 bytes for each
line of a plot; explanations are limited (`decision_log`).
"""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from podscaler.core.model.metric_spec import Metric, ResourceMetric, Utilization
from podscaler.core.model.trace import MetricStep, Trace
from podscaler.simulation.model import results
from podscaler.simulation.model.results import MetricReading, SimulatedSync, TimelineRow
from podscaler.simulation.report.decision_log import EXPLAINED_MAX, DecisionLog
from podscaler.simulation.report.page_data import AutoscalerPart, PlotBand, PlotSeries, SeriesColor, TimePlot

NAN = math.nan
_Column: TypeAlias = "array[float]"


class SyncCollector:
    """Makes an AutoscalerPart of each autoscaler.

    Args:
        explained_max: how many decisions of an autoscaler are explained.
    """

    def __init__(self, explained_max: int = EXPLAINED_MAX) -> None:
        self._explained_max = explained_max
        self._columns: dict[str, _AutoscalerColumns] = {}

    def add(self, sync: SimulatedSync) -> None:
        """Collect one sync; syncs come in order."""
        key = sync.autoscaler.spec.key
        columns = self._columns.get(key)
        if columns is None:
            log = DecisionLog(self._explained_max)
            columns = self._columns[key] = _AutoscalerColumns(sync.autoscaler.workload, log)
        columns.add(sync)

    def autoscalers(self) -> tuple[AutoscalerPart, ...]:
        """The parts so far, in the order of the first sync of each autoscaler."""
        return tuple([columns.autoscaler_part(key) for key, columns in self._columns.items()])


@dataclass(slots=True)
class _MetricColumns:
    """One metric over time.

    Attributes:
        unit: the unit of the plotted values.
        divisor: by which the values of a trace are divided for them.
        columns: `current`, `target`, and the bounds `low` and `high` of the tolerance; NaN without a value.
    """

    name: str
    unit: str
    divisor: int
    columns: Mapping[str, _Column] = field(
        default_factory=lambda: {name: array("d") for name in ("current", "target", "low", "high")}
    )

    def add(self, sync_index: int, reading: MetricReading, trace: Trace) -> None:
        """Append what the sync with that index (from 0) read of the metric."""
        target = _divide_or_nan(reading.target, self.divisor)
        self._pad(sync_index)
        self.columns["current"].append(_divide_or_nan(reading.current, self.divisor))
        self.columns["target"].append(target)
        self.columns["low"].append(target * (1 - (trace.tolerance_down or 0)))
        self.columns["high"].append(target * (1 + (trace.tolerance_up or 0)))

    def plot(self, at_s: _Column) -> TimePlot:
        """The plot of the metric over these instants, with its target and tolerance."""
        self._pad(len(at_s))
        current, target = self.columns["current"], self.columns["target"]
        lines = (_line("current", current, "blue"), _line("target", target, "gray", is_dashed=True))
        band = PlotBand(label="tolerance", low=self.columns["low"], high=self.columns["high"])
        return TimePlot(title=f"Metric: {self.name}", unit=self.unit, at_s=at_s, series=lines, band=band)

    def _pad(self, size: int) -> None:
        """Append NaN up to `size` values, for the syncs that did not read the metric."""
        for column in self.columns.values():
            column.extend([NAN] * (size - len(column)))


_COLUMN_NAMES = (
    "requests",
    "demand",
    "used",
    "memory",
    "wanted",
    "limited",
    "pods",
    "ready",
    "unscheduled",
    "nodes",
    "latency",
    "lost",
    "backlog",
)


class _AutoscalerColumns:
    """The numbers and decisions of one autoscaler."""

    def __init__(self, workload: str, log: DecisionLog) -> None:
        self._workload = workload
        self._log = log
        self._at_s: _Column = array("d")
        self._columns: dict[str, _Column] = {name: array("d") for name in _COLUMN_NAMES}
        self._metrics: dict[tuple[str, int], _MetricColumns] = {}

    def add(self, sync: SimulatedSync) -> None:
        """Append the numbers of one sync to the columns, and log its decision."""
        row = results.row(sync)
        self._add_metrics(row, sync)
        self._at_s.append(row.at_s)
        for column, value in zip(self._columns.values(), _row_values(row), strict=True):
            column.append(NAN if value is None else value)
        self._log.add(sync)

    def autoscaler_part(self, key: str) -> AutoscalerPart:
        """The plots and decisions so far; `key` is that of the autoscaler."""
        return AutoscalerPart(
            autoscaler=key,
            workload=self._workload,
            plots=tuple(self._plots()),
            decisions=self._log.decisions(),
            decisions_total=self._log.total,
        )

    def _add_metrics(self, row: TimelineRow, sync: SimulatedSync) -> None:
        """Append the readings of all metrics; metrics with one label are told apart by their order."""
        count_by_name: dict[str, int] = {}
        sync_index, trace, metrics = len(self._at_s), sync.decision.trace, sync.autoscaler.spec.metrics
        for step, reading, metric in zip(trace.metrics, row.metrics, metrics, strict=False):
            label = _metric_label(step)
            ordinal = count_by_name[label] = count_by_name.get(label, 0) + 1
            metric_columns = self._metrics.get((label, ordinal))
            if metric_columns is None:
                metric_columns = self._metrics[label, ordinal] = _MetricColumns(label, *_metric_unit(metric))
            metric_columns.add(sync_index, reading, trace)

    def _plots(self) -> Iterator[TimePlot]:
        """The plots that have values. A new plot: its column in _COLUMN_NAMES and `_row_values`, and its line here."""
        columns = self._columns
        if _has_values(columns["requests"]):
            yield self._plot("Requests", "requests/s", _line("arriving", columns["requests"], "blue", is_filled=True))
        if _has_values(columns["demand"]) or _has_values(columns["used"]):
            demand = _line("demand", columns["demand"], "orange")
            yield self._plot("CPU", "cores", demand, _line("used", columns["used"], "blue"))
        if _has_values(columns["memory"]):
            yield self._plot("Memory", "bytes", _line("demand", columns["memory"], "orange"))
        yield self._replicas_plot()
        for metric in self._metrics.values():
            yield metric.plot(self._at_s)
        if _has_values(columns["latency"]):
            yield self._plot("Mean response time", "ms", _line("response time", columns["latency"], "purple"))
        if _has_values(columns["lost"]):
            yield self._plot("Lost load", "%", _line("lost", columns["lost"], "red", is_filled=True))
        if _has_values(columns["backlog"]):
            yield self._plot(
                "Waiting work", "core-seconds", _line("waiting", columns["backlog"], "teal", is_filled=True)
            )

    def _replicas_plot(self) -> TimePlot:
        """The plot of the counts of pods, replicas and nodes."""
        columns = self._columns
        lines = [
            _count_line("ready pods", columns["ready"], "green", is_filled=True),
            _count_line("pods", columns["pods"], "teal"),
            _count_line("wanted by the metrics", columns["wanted"], "orange", is_dashed=True),
            _count_line("replicas after limits", columns["limited"], "blue"),
        ]
        if _has_values(columns["unscheduled"]):
            lines.append(_count_line("pods without a node", columns["unscheduled"], "red"))
        if _has_values(columns["nodes"]):
            lines.append(_count_line("nodes", columns["nodes"], "gray", is_dashed=True))
        return TimePlot(title="Replicas", unit="", at_s=self._at_s, series=tuple(lines), has_decisions=True)

    def _plot(self, title: str, unit: str, *series: PlotSeries) -> TimePlot:
        return TimePlot(title=title, unit=unit, at_s=self._at_s, series=series)


def _row_values(row: TimelineRow) -> Sequence[float | None]:
    """The values of _COLUMN_NAMES, in their order; None: there is no value at this sync."""
    return (
        row.requests_per_s,
        row.demand_cores,
        row.used_cores,
        row.demand_bytes,
        row.wanted,
        row.limited,
        row.pods,
        row.ready,
        row.unscheduled,
        row.nodes,
        row.latency_ms,
        100 * row.lost_ratio,
        row.backlog_core_s,
    )


def _line(label: str, values: _Column, color: SeriesColor, **style: bool) -> PlotSeries:
    """A line of a plot; `style` are further attributes of PlotSeries."""
    return PlotSeries(label=label, values=values, color=color, **style)


def _count_line(label: str, values: _Column, color: SeriesColor, **style: bool) -> PlotSeries:
    """The line of a count, whose every change is kept."""
    return _line(label, values, color, keeps_changes=True, **style)


def _has_values(column: _Column) -> bool:
    """Whether a column has a value other than 0."""
    return any(value and math.isfinite(value) for value in column)


def _metric_label(step: MetricStep) -> str:
    return f"{step.name} of {step.subject}" if step.subject else step.name


def _metric_unit(metric: Metric) -> tuple[str, int]:
    """The unit of a metric, and by what the numbers of its steps are divided."""
    if isinstance(metric.target, Utilization):
        return "%", 1
    if isinstance(metric, ResourceMetric):
        return {"memory": "bytes", "cpu": "cores"}.get(metric.resource, ""), 1000
    return "", 1000


def _divide_or_nan(value: int | None, divisor: int) -> float:
    return NAN if value is None else value / divisor
