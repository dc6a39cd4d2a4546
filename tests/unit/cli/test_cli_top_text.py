"""The texts of `podscaler top`: cells of the list, filters, orders, ages, and plots."""

import pytest

from podscaler.cli.top import list_rows, text_plots
from podscaler.cli.top.list_rows import ListView
from podscaler.cli.top.text_plots import TextBand, TextSeries, TimeWindow
from podscaler.observe.views import MetricView
from podscaler.testing import views

NOW_MS = views.START_MS


def drawn(lines: list[list[text_plots.Cell]]) -> list[str]:
    """The characters of a plot."""
    return ["".join(cell.sign for cell in line).rstrip() for line in lines]


def test_cells_of_a_row() -> None:
    """The state has a sign beside its word; counts and metrics are as kubectl prints them."""
    row = views.row("shop", "web", state="AtMaximum", severity=2, desired=12, replicas=10, ready=None)
    expected = ("shop", "web", "! AtMaximum", "10 (12)", "-", "2-10", "cpu 63%/70%", "▄▆██", "60s")
    assert list_rows.cells(row, NOW_MS) == expected


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [
        pytest.param(-5, "0s", id="a clock behind the server's"),
        pytest.param(119_999, "119s", id="seconds"),
        pytest.param(120_000, "2m", id="minutes"),
        pytest.param(7_200_000, "2h", id="hours"),
        pytest.param(172_800_000, "2d", id="days"),
    ],
)
def test_ages(age_ms: int, text: str) -> None:
    """Ages have one unit."""
    assert list_rows.age(age_ms) == text


ROWS = [
    views.row("shop", "web", replicas=4, changed_at=NOW_MS - 9000),
    views.row("jobs", "queue", state="NoMetrics", severity=3, replicas=0, target="StatefulSet/queue"),
    views.row("shop", "api", severity=2, state="AtMaximum", replicas=10, changed_at=None),
]


@pytest.mark.parametrize(
    ("view", "names"),
    [
        pytest.param(ListView(), ["queue", "api", "web"], id="problems first"),
        pytest.param(ListView(order="name"), ["queue", "api", "web"], id="by namespace and name"),
        pytest.param(ListView(order="replicas"), ["api", "web", "queue"], id="most replicas first"),
        pytest.param(ListView(order="changed"), ["web", "queue", "api"], id="latest change first"),
        pytest.param(ListView(namespace="shop"), ["api", "web"], id="of a namespace"),
        pytest.param(ListView(only_problems=True), ["queue", "api"], id="problems only"),
        pytest.param(ListView(words=("SHOP", "max")), ["api"], id="every word counts"),
        pytest.param(ListView(words=("statefulset",)), ["queue"], id="a word of the target"),
        pytest.param(ListView(words=("nothing",)), [], id="no match"),
    ],
)
def test_selection(view: ListView, names: list[str]) -> None:
    """A view has the rows that the user wants, in order."""
    assert [row.name for row in list_rows.select(ROWS, view)] == names


@pytest.mark.parametrize(
    ("count", "width", "text"),
    [
        pytest.param(0, 20, "-", id="none"),
        pytest.param(2, 40, "m0 63%/70%, m1 63%/70%", id="all"),
        pytest.param(3, 22, "m0 63%/70% +2", id="as many as there is room for"),
        pytest.param(3, 10, "63%/70% +2", id="without the name"),
        pytest.param(1, 5, "63%/…", id="cut"),
    ],
)
def test_metrics_fit_their_column(count: int, width: int, text: str) -> None:
    """Metrics that are left out are counted."""
    metrics = [MetricView(f"m{index}", "Pods", 63, 70, "percent", "63%/70%") for index in range(count)]
    assert list_rows.metrics_text(metrics, width) == text


def test_sparkline_keeps_peaks() -> None:
    """A column has the largest of its values."""
    assert list_rows.sparkline([0, 8, 0, 0, 4, 0], 3) == "█▁▄"
    assert list_rows.sparkline([], 5) == ""


def test_table_is_aligned() -> None:
    """`--once` prints columns."""
    lines = list_rows.table([views.row("shop", "web")], NOW_MS).splitlines()
    assert [line.index(text) for line, text in zip(lines, ("NAME ", "web"), strict=True)] == [12, 12]
    assert list_rows.table([], NOW_MS) == "no autoscalers"


def test_plot_joins_steps() -> None:
    """A jump is a line over all rows between."""
    window = TimeWindow((0, 10, 20), 0, 30)
    lines = text_plots.plot(window, [TextSeries("replicas", (0, 0, 2), "#", "")], width=6, height=3)
    assert drawn(lines) == ["2 │  #", "  │  #", "0 │###"]


def test_plot_fills_columns_without_an_instant() -> None:
    """Between two syncs the last values hold; before the first one nothing is known."""
    window = TimeWindow((20, 60), 0, 80)
    lines = text_plots.plot(window, [TextSeries("ready", (2, 1), "#", "", is_filled=True)], width=11, height=3)
    assert drawn(lines) == ["2 │  ####", "  │  ######", "0 │  ######"]


def test_plot_shows_peaks_between_columns() -> None:
    """A value that held for less than a column is drawn."""
    window = TimeWindow((0, 1, 2, 10), 0, 20)
    lines = text_plots.plot(window, [TextSeries("cpu", (1, 9, 1, 1), "#", "")], width=5, height=3)
    assert drawn(lines) == ["9 │#", "  │#", "0 │##"]


def test_plot_has_the_band_behind_its_series() -> None:
    """The series is on top of the tolerance."""
    window = TimeWindow((0, 10), 0, 20)
    band = TextBand((1, 1), (2, 2))
    lines = text_plots.plot(window, [TextSeries("cpu", (None, 1), "#", "")], width=5, height=3, band=band)
    assert drawn(lines) == ["2 │░░", "  │░#", "0 │"]


def test_plot_without_values() -> None:
    """A plot of nothing has its axis alone."""
    assert drawn(text_plots.plot(TimeWindow((), 0, 20), [], width=12, height=2)) == ["1 │", "0 │"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(0.5, "0.5", id="fraction"),
        pytest.param(120.4, "120", id="whole"),
        pytest.param(12_345, "12.3k", id="thousands"),
        pytest.param(2.5e9, "2.5G", id="billions"),
    ],
)
def test_numbers_of_an_axis(value: float, text: str) -> None:
    """An axis has three significant digits."""
    assert text_plots.value_text(value) == text
