"""Defines the content of a report as plain values, from which `html_page` makes the page.

`podscaler simulate`, `backtest` and `tune` fill a `ReportData`; `html_page` writes it as a page. Its JSON form, with
camelCase names, is what the page's script reads, so that another page can show the same content. A new field or color
needs the script and the styles of the page, too.

Invariant: times are seconds since the start of the simulation; texts are plain text, never markup.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from podscaler.explain.explanation_parts import Section

SeriesColor = Literal["blue", "orange", "green", "purple", "red", "teal", "pink", "gray"]
"""The colors of lines; the page has a shade of each for light and for dark."""

COLORS: tuple[SeriesColor, ...] = ("blue", "orange", "green", "purple", "red", "teal", "pink", "gray")
"""In the order in which lines without a meaning of their own take them."""

DecisionKind = Literal["up", "down", "held", "failed", "recovered"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base class of all parts."""


class PlotSeries(_Part, frozen=True, kw_only=True):
    """One line of a plot; a value holds until the next one.

    Attributes:
        values: one for each instant of the plot; None, NaN and infinities: there is no value.
        keeps_changes: whether the page keeps every change of the value, as for counts of pods, rather than the highest
            and lowest values alone.
    """

    label: str
    values: Sequence[float | None]
    color: SeriesColor = "blue"
    is_dashed: bool = False
    is_filled: bool = False
    keeps_changes: bool = False


class PlotBand(_Part, frozen=True, kw_only=True):
    """An area between two values at each instant, such as a tolerance; None if there is none."""

    label: str
    low: Sequence[float | None]
    high: Sequence[float | None]


class DrawnSyncs(_Part, frozen=True, kw_only=True):
    """How many of a plot's instants the page draws.

    Attributes:
        every_change: whether each change of the series with `keeps_changes` is among them.
    """

    drawn: int
    total: int
    every_change: bool


class TimePlot(_Part, frozen=True, kw_only=True):
    """Lines over time.

    Attributes:
        unit: of the values, such as `cores`; `bytes` are shown with binary prefixes.
        at_s: the instants, increasing.
        has_decisions: whether the decisions of its autoscaler are marked in it.
        drawn: None if the page has every instant. `html_page` sets it.
    """

    title: str
    unit: str
    at_s: Sequence[float]
    series: tuple[PlotSeries, ...]
    band: PlotBand | None = None
    has_decisions: bool = False
    drawn: DrawnSyncs | None = None


class ExplainedDecision(_Part, frozen=True, kw_only=True):
    """A sync that changed something, with its explanation in the words of `podscaler explain`.

    Attributes:
        kind: `up` and `down`: the scale was written; `held`: limits began to hold the replicas; `failed` and
            `recovered`: metrics or the scale could not be read any more, and could be again.
        before, after: the replicas of the scale; `after` is equal unless the scale was written.
        wanted: the replicas that the metrics ask for; None if there is no conclusion.
        advice: for failures, most important first.
        sections: the steps, in order.
    """

    at_s: float
    kind: DecisionKind
    before: int
    after: int
    wanted: int | None
    summary: str
    advice: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()


class AutoscalerPart(_Part, frozen=True, kw_only=True):
    """One autoscaler: its plots, and its decisions in order of time.

    Attributes:
        autoscaler, workload: their keys, `namespace/name`.
        decisions_total: how many there were; more than `decisions` where only the largest are explained.
    """

    autoscaler: str
    workload: str
    plots: tuple[TimePlot, ...]
    decisions: tuple[ExplainedDecision, ...] = ()
    decisions_total: int = 0


class ReportTable(_Part, frozen=True, kw_only=True):
    """A table of texts.

    Attributes:
        columns: the headings; the first column names the row.
        rows: as many texts each as there are columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ExpectationResult(_Part, frozen=True, kw_only=True):
    """What was expected, and the sentence about what was not so; empty if all was as expected."""

    expected: str
    failure: str = ""


class ScatterPoint(_Part, frozen=True, kw_only=True):
    """One candidate in a ScatterPlot.

    Attributes:
        kind: `front`: no other candidate is better in both measures; `present`: the spec in use; `chosen`: the
            recommended one.
        lines: what is shown when it is selected, such as the fields that differ.
    """

    label: str
    x: float
    y: float
    kind: Literal["candidate", "front", "present", "chosen"] = "candidate"
    lines: tuple[str, ...] = ()


class ScatterPlot(_Part, frozen=True, kw_only=True):
    """Candidates by two measures; points with a value that is not finite are left out of the page."""

    title: str
    x_label: str
    y_label: str
    points: tuple[ScatterPoint, ...]


class ReportData(_Part, frozen=True, kw_only=True):
    """A report.

    Attributes:
        notes: sentences about the source, the engine and the result, most important first.
        start_ns: the instant of the start since the epoch; None: times are only relative.
        tables: a summary, or a table of candidates.
        plots: of several candidates on one axis.
        autoscalers: each with plots of its own.
    """

    title: str
    notes: tuple[str, ...] = ()
    start_ns: int | None = None
    tables: tuple[ReportTable, ...] = ()
    expectations: tuple[ExpectationResult, ...] = ()
    plots: tuple[TimePlot, ...] = ()
    scatter: ScatterPlot | None = None
    autoscalers: tuple[AutoscalerPart, ...] = ()
