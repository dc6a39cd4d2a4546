"""Reports as data and as HTML: escaping, the content policy, reduced plots, kept decisions, and the chart library."""

import base64
import hashlib
import json
import re
from importlib import resources
from pathlib import Path

import pytest

from podscaler.base.errors import UsageError
from podscaler.simulation import engine, report
from podscaler.simulation.files import scenario_file
from podscaler.simulation.report import (
    AutoscalerPart,
    PlotBand,
    PlotSeries,
    ReportData,
    ReportTable,
    SyncCollector,
    TimePlot,
    decimation,
    html_page,
)

EXAMPLES = Path(__file__).parents[3] / "examples" / "simulation"
STATIC = resources.files("podscaler.simulation.report") / "static"
UPLOT = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""The files of the npm package uplot 1.6.32 (MIT) and their SHA-256."""


def collected(name: str, explained_max: int = 1000) -> tuple[AutoscalerPart, ...]:
    """The autoscalers of an example."""
    collector = SyncCollector(explained_max)
    for sync in engine.simulate(scenario_file.read(EXAMPLES / name).scenario):
        collector.add(sync)
    return collector.autoscalers()


def island(page: str) -> ReportData:
    """The content that the script of a page reads."""
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    content: ReportData = json.loads(found.group(1))
    return content


@pytest.mark.parametrize("name", sorted(UPLOT))
def test_the_chart_library_is_the_published_one(name: str) -> None:
    """Its files are those of the package, with its licence."""
    assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == UPLOT[name]


def test_content_cannot_end_its_element() -> None:
    """`<`, `>`, `&` and line separators of texts are escaped, in JSON and in HTML."""
    hostile = "</script><script>alert(1)</script>&\u2028<!--"
    table = ReportTable(title=hostile, columns=(hostile, "b"), rows=((hostile, hostile),))
    page = report.html(ReportData(title=hostile, notes=(hostile,), tables=(table,)))
    assert "alert(1)</script>" not in page
    assert page.count("</script>") == 2
    assert island(page)["title"] == hostile  # type: ignore[index] # decoded JSON


def test_the_policy_allows_the_own_script_and_style_alone() -> None:
    """No request, no other script: the hashes are those of the page's own elements."""
    page = report.html(ReportData(title="empty"))
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)
    assert policy is not None
    script = page[page.rindex("<script>") + len("<script>") : page.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.group(1).startswith(f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'sha256-")
    assert "unsafe" not in policy.group(1)


def test_equal_content_gives_equal_pages() -> None:
    """Nothing of a page depends on the clock."""
    pages = {report.html(ReportData(title="step", autoscalers=collected("step.yaml"))) for _ in range(2)}
    assert len(pages) == 1


def test_decisions_of_an_example() -> None:
    """Each written scale is a decision with the sentence of `podscaler explain`."""
    (part,) = collected("step.yaml")
    assert [(each.at_s, each.kind, each.before, each.after) for each in part.decisions] == [
        (330.0, "up", 2, 4),
        (345.0, "up", 4, 7),
        (405.0, "up", 7, 8),
    ]
    assert part.decisions[2].summary == "default/web goes from 7 to 8: cpu is at 68 % of requests, target 60 %."
    assert [section.title for section in part.decisions[2].sections][-2:] == ["Decision", "Status and events"]


def test_the_largest_decisions_are_kept() -> None:
    """Where a report may explain two of three, it keeps those that change the most replicas."""
    (part,) = collected("step.yaml", explained_max=2)
    assert [(each.before, each.after) for each in part.decisions] == [(2, 4), (4, 7)]
    assert part.decisions_total == 3


def test_failures_and_limits_are_decisions() -> None:
    """An outage of metrics is a decision, and so is the first sync after a scale at which a limit holds."""
    decisions = collected("metrics-outage.yaml")[0].decisions
    found = [(each.at_s, each.kind, each.after) for each in decisions if each.kind not in ("up", "down")]
    assert found == [(600.0, "failed", 2), (1290.0, "held", 9)]


def test_a_metric_has_its_target_and_tolerance() -> None:
    """The band of the plot is the target with the tolerance."""
    (part,) = collected("step.yaml")
    metric = next(plot for plot in part.plots if plot.title.startswith("Metric"))
    assert metric.band is not None
    assert (metric.series[1].values[9], metric.unit) == (60.0, "%")
    assert (metric.band.low[9], metric.band.high[9]) == pytest.approx((54.0, 66.0))


def test_reduced_plots_keep_changes_and_peaks() -> None:
    """Of 10,000 instants 100 are drawn: each change of a count, and the peak of the other series."""
    size = 10_000
    count = [1.0] * 5000 + [2.0] * 5000
    load = [float(index % 7) for index in range(size)]
    load[6543] = 100.0
    series = (PlotSeries(label="pods", values=count, keeps_changes=True), PlotSeries(label="load", values=load))
    plot = TimePlot(title="both", unit="", at_s=[float(index) for index in range(size)], series=series)
    reduced = decimation.reduce_plot(plot, points_max=100)
    assert {0, 5000, 6543, 9999} <= set(reduced.at_s)
    assert len(reduced.at_s) <= 100
    assert max(value for value in reduced.series[1].values if value is not None) == 100
    assert reduced.drawn is not None
    assert (reduced.drawn.total, reduced.drawn.every_change) == (size, True)


def test_more_changes_than_points() -> None:
    """A count that changes always is reduced to its peaks, and the page says so."""
    count = [float(index % 2) for index in range(1000)]
    series = (PlotSeries(label="pods", values=count, keeps_changes=True),)
    reduced = decimation.reduce_plot(
        TimePlot(title="pods", unit="", at_s=list(range(1000)), series=series), points_max=100
    )
    assert len(reduced.at_s) <= 100
    assert reduced.drawn is not None
    assert not reduced.drawn.every_change


def test_values_that_json_lacks_are_gaps() -> None:
    """NaN and infinities are null in the page."""
    series = (PlotSeries(label="latency", values=[1.0, float("nan"), float("inf")]),)
    band = PlotBand(label="tolerance", low=[float("nan")] * 3, high=[1.0, 2.0, 3.0])
    plot = TimePlot(title="latency", unit="ms", at_s=[0, 1, 2], series=series, band=band)
    (found,) = json.loads(report.as_json(ReportData(title="gaps", plots=(plot,))))["plots"]
    assert found["series"][0]["values"] == [1, None, None]
    assert found["band"]["low"] == [None, None, None]


def test_a_json_file_has_the_content_alone(tmp_path: Path) -> None:
    """The dashboard reads it."""
    path = tmp_path / "step.json"
    report.write(path, ReportData(title="step", notes=("a note",)))
    assert {"title": "step", "notes": ["a note"]}.items() <= json.loads(path.read_text()).items()


def test_an_unwritable_file_is_one_sentence(tmp_path: Path) -> None:
    """The file is named, and no part of it is left."""
    with pytest.raises(UsageError, match=r"cannot write .*missing/report\.html: No such file or directory"):
        report.write(tmp_path / "missing" / "report.html", ReportData(title="empty"))
    folder = tmp_path / "folder.html"
    folder.mkdir()
    with pytest.raises(UsageError, match=r"cannot write .*folder\.html"):
        report.write(folder, ReportData(title="empty"))
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]


def test_the_script_has_its_parts_in_order() -> None:
    """Each part uses the names of those before it."""
    script = html_page.script()
    places = [
        script.index(name)
        for name in ("function element(", "class SharedZoom", "class DecisionPanel", "function draw(")
    ]
    assert places == sorted(places)
