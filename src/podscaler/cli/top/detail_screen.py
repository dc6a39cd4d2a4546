"""Shows one autoscaler in `podscaler top`: plots of replicas and metrics, and its details as tables.

`podscaler.cli.top.top_app` opens it. It reads the autoscaler every READ_PERIOD_S while it is open. An autoscaler that
disappears, and a cluster that cannot be read, are stated in the first line; plots and tables stay. A new tab is a line
of TAB_COLUMNS, and its rows in `tab_rows`.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Static, TabbedContent, TabPane

from podscaler.base.errors import PodscalerError
from podscaler.cli.top import list_rows, text_plots
from podscaler.cli.top.text_plots import Cell, TextBand, TextSeries, TimeWindow
from podscaler.cli.top.text_screens import plain
from podscaler.observe.views import DecisionTimeline, Detail, Mark, PlottedMetric, ViewSource

READ_PERIOD_S = 2.0
RANGES_MIN = (5, 15, 30, 60, 360, 1440)
"""The ranges of time that the plots can show, in minutes."""
FIRST_RANGE_MIN = 30
REPLICAS_HEIGHT = 7
METRIC_HEIGHT = 5
"""The height of plots, in lines of text."""
TAB_COLUMNS = {
    "decisions": ("AGE", "DECISION", "REPLICAS", "SUMMARY"),
    "events": ("AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"),
    "pods": ("NAME", "PHASE", "READY", "AGE", "CPU", "NOT COUNTED AS IT IS"),
    "lint": ("RULE", "SEVERITY", "FIELD", "FINDING", "FIX"),
    "conditions": ("TYPE", "STATUS", "AGE", "REASON", "MESSAGE"),
}

METRICS_WIDTH_MAX = 40
"""The most characters of the metrics in the first line."""
_PLOT_WIDTH_MIN = 20
_MINUTE_MS = 60_000

TabRow = tuple[str, ...]


class DetailScreen(Screen[None]):
    """One autoscaler.

    Args:
        key: its namespace and name.
        source: is read periodically.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "back"),
        Binding("d", "open('explanation')", "explain"),
        Binding("y", "open('yaml')", "YAML"),
        Binding("minus", "range(1)", "longer", key_display="-"),
        Binding("plus,equals_sign", "range(-1)", "shorter", key_display="+"),
        *(Binding(str(index), f"tab({index - 1})", show=False) for index in range(1, len(TAB_COLUMNS) + 1)),
    ]

    class DecisionOpened(Message):
        """The user opens the explanation of a decision, which is a mark of the time line."""

        def __init__(self, key: tuple[str, str], mark: Mark) -> None:
            super().__init__()
            self.key = key
            self.mark = mark

    class PartOpened(Message):
        """The user opens the latest `explanation`, or the `yaml`."""

        def __init__(self, key: tuple[str, str], part: str) -> None:
            super().__init__()
            self.key = key
            self.part = part

    def __init__(self, key: tuple[str, str], source: ViewSource) -> None:
        super().__init__()
        self.key = key
        self._source = source
        self._range_min = FIRST_RANGE_MIN
        self._marks: Sequence[Mark] = ()
        self._shown_rows: dict[str, Sequence[TabRow]] = {}
        self.detail: Detail | None = None
        """What was read last; None: nothing yet."""

    def compose(self) -> ComposeResult:
        """The state, the plots, the tables, and the keys."""
        yield Static(id="state", classes="title")
        with VerticalScroll(can_focus=False, id="plots"):
            yield Static(id="plot")
        with TabbedContent():
            for index, (name, columns) in enumerate(TAB_COLUMNS.items(), start=1):
                with TabPane(f"{index} {name}", id=name):
                    table = DataTable[Text](cursor_type="row", id=f"table-{name}")
                    table.add_columns(*columns)
                    yield table
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one("#state", Static).update(Text(f"{'/'.join(self.key)}: reading", style="bold"))
        self.set_interval(READ_PERIOD_S, self.read)
        self.read()
        self.query_one("#table-decisions", DataTable).focus()

    def on_resize(self) -> None:
        """Draw the plots in the new width."""
        if self.detail is not None:
            self._show_plots(self.detail)

    @work(exclusive=True)
    async def read(self) -> None:
        """Read the autoscaler and show it; a failure is shown in place of the state."""
        try:
            detail = await self._source.detail(*self.key, from_ms=None, to_ms=None)
        except PodscalerError as error:
            note = f"{'/'.join(self.key)}: {plain(str(error))}"
            self.query_one("#state", Static).update(Text(note, style="bold red"))
            return
        self.detail = detail
        self._show_state(detail)
        self._show_plots(detail)
        self._show_tables(detail)

    def _show_state(self, detail: Detail) -> None:
        """Show the name, the state, and the reason for it."""
        row = detail.row
        first_line = "  ".join(
            [
                f"{row.namespace}/{row.name}",
                f"{list_rows.SEVERITY_SIGNS[row.severity]} {row.state}",
                f"{row.target}  {list_rows.replicas_text(row)} replicas ({row.min}-{row.max})",
                list_rows.metrics_text(row.metrics, METRICS_WIDTH_MAX),
            ]
        )
        lines = [first_line, row.reason, *detail.notes]
        state_text = Text(plain("\n".join(line for line in lines if line)))
        state_text.stylize("bold", 0, len(first_line))
        self.query_one("#state", Static).update(state_text)

    def _show_plots(self, detail: Detail) -> None:
        """Show the plots of the chosen span."""
        width = max(self.size.width - 2, _PLOT_WIDTH_MIN)
        window = TimeWindow(detail.timeline.at, detail.now - self._range_min * _MINUTE_MS, detail.now)
        plots_text = replicas_plot(detail.timeline, window, width)
        for metric in detail.timeline.metrics:
            plots_text.append("\n")
            plots_text.append_text(metric_plot(metric, window, width))
        span = list_rows.age(self._range_min * _MINUTE_MS)
        plots_text.append(f"\n{f'{span} ago':<{width - 3}}now", style="bright_black")
        if not detail.timeline.at and detail.since_reason:
            plots_text.append(f"\n{plain(detail.since_reason)}")
        self.query_one("#plot", Static).update(plots_text)

    def _show_tables(self, detail: Detail) -> None:
        """Fill those tables whose rows have changed."""
        self._marks = detail.decisions[::-1]
        for name, rows in tab_rows(detail).items():
            if rows != self._shown_rows.get(name):
                self._shown_rows[name] = rows
                _refill_table(self.query_one(f"#table-{name}", DataTable), rows)

    def action_range(self, step: int) -> None:
        """Show a longer (1) or a shorter (-1) range of time."""
        index = RANGES_MIN.index(self._range_min) + step
        self._range_min = RANGES_MIN[min(max(index, 0), len(RANGES_MIN) - 1)]
        if self.detail is not None:
            self._show_plots(self.detail)

    def action_tab(self, index: int) -> None:
        """Show a tab, counted from 0."""
        name = list(TAB_COLUMNS)[index]
        self.query_one(TabbedContent).active = name
        self.query_one(f"#table-{name}", DataTable).focus()

    def action_open(self, part: str) -> None:
        """Open the latest explanation, or the YAML."""
        self.post_message(self.PartOpened(self.key, part))

    @on(DataTable.RowSelected, "#table-decisions")
    def open_decision(self, event: DataTable.RowSelected) -> None:
        """Open the explanation of the decision on which the user pressed Enter."""
        if event.cursor_row < len(self._marks):
            self.post_message(self.DecisionOpened(self.key, self._marks[event.cursor_row]))


def _refill_table(table: "DataTable[Text]", rows: Sequence[TabRow]) -> None:
    """Replace the rows of a table; the cursor stays in its row as far as there is one."""
    cursor = table.cursor_row
    table.clear()
    for row in rows:
        table.add_row(*(Text(plain(cell), no_wrap=True) for cell in row))
    table.move_cursor(row=min(cursor, max(len(rows) - 1, 0)), animate=False)


def tab_rows(detail: Detail) -> dict[str, list[TabRow]]:
    """The rows of each tab, by its name; the newest first where they have an age."""
    now_ms = detail.now

    def age(at_ms: int | None) -> str:
        return list_rows.UNKNOWN if at_ms is None else list_rows.age(now_ms - at_ms)

    tabs: dict[str, list[TabRow]] = {name: [] for name in TAB_COLUMNS}
    count = list_rows.count_text
    for decision in reversed(detail.decisions):
        replicas = f"{count(decision.from_)}->{count(decision.to)}"
        tabs["decisions"].append((age(decision.at), str(decision.kind), replicas, decision.summary))
    for event in detail.events:
        message = _with_count(event.message, event.count)
        tabs["events"].append((age(event.at), event.type, event.reason, event.object, message))
    for pod in detail.pods:
        phase, ready = f"{pod.phase} {pod.reason}".strip(), "yes" if pod.ready else "no"
        cpu = f"{_millicores_text(pod.usage.get('cpu'))} of {_millicores_text(pod.requests.get('cpu'))}"
        tabs["pods"].append((pod.name, phase, ready, age(pod.started_at), cpu, pod.ignored))
    for finding in detail.lint:
        tabs["lint"].append((finding.rule, finding.severity, finding.place, finding.message, finding.fix))
    for condition in detail.conditions:
        changed = age(condition.last_transition_at)
        tabs["conditions"].append((condition.type, condition.status, changed, condition.reason, condition.message))
    return tabs


def _with_count(message: str, count: int) -> str:
    return message if count < 2 else f"{message} (x{count})"


def _millicores_text(millicores: int | None) -> str:
    return list_rows.UNKNOWN if millicores is None else f"{millicores}m"


def replicas_plot(timeline: DecisionTimeline, window: TimeWindow, width: int) -> Text:
    """The plot of replicas: ready ones as an area, those that the metrics ask for, and those after limits, as lines."""
    series = [
        TextSeries("ready", timeline.ready, "▒", "green", is_filled=True),
        TextSeries("wanted", timeline.desired, "·", "yellow"),
        TextSeries("limited", timeline.limited, "─", "bold cyan"),
    ]
    title = "replicas   ▒ ready   · wanted by metrics   ─ after limits"
    return _plot_text(title, text_plots.plot(window, series, width=width, height=REPLICAS_HEIGHT))


def metric_plot(metric: PlottedMetric, window: TimeWindow, width: int) -> Text:
    """The plot of a metric against its target, with the band of the tolerance."""
    factor = 1 if metric.unit == "percent" else 1000  # other values are in thousandths
    current = [None if sample is None else sample / factor for sample in metric.current]
    target = [None if sample is None else sample / factor for sample in metric.target]
    band = TextBand(
        [None if sample is None else sample * (1 - metric.tolerance_down) for sample in target],
        [None if sample is None else sample * (1 + metric.tolerance_up) for sample in target],
    )
    series = [TextSeries("target", target, "─", "cyan"), TextSeries("current", current, "•", "bold yellow")]
    unit = " %" if metric.unit == "percent" else ""
    title = f"{plain(metric.name)}{unit}   • current   ─ target   ░ tolerance"
    return _plot_text(title, text_plots.plot(window, series, width=width, height=METRIC_HEIGHT, band=band))


def _plot_text(title: str, lines: Sequence[Sequence[Cell]]) -> Text:
    """The title and the lines of a plot as one text with styles."""
    plot_text = Text(title, style="bold", no_wrap=True)
    for line in lines:
        plot_text.append("\n")
        for cell in line:
            plot_text.append(cell.sign, style=cell.style or "not bold")
    return plot_text
