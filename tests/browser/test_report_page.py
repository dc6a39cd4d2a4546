"""Reports of simulations in a real browser: plots, explanations, keys, zoom, colours, a phone, hostile names."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser_page import WatchedPage
from click.testing import CliRunner
from playwright.sync_api import Browser, Page

from podscaler.cli.main import cli
from podscaler.simulation import report
from podscaler.simulation.report import (
    AutoscalerPart,
    ExplainedDecision,
    PlotSeries,
    ReportData,
    ReportTable,
    ScatterPlot,
    ScatterPoint,
    TimePlot,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "simulation" / "step.yaml"
HOSTILE = '</script><img src=x onerror="document.title=1"><b>web'

DECISION = "[role=option]"
DRAWN = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.some((value, index) => index % 4 === 3 && value > 0);
}"""
"""Whether a canvas has a pixel that is not transparent."""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the report of an example."""
    path = tmp_path_factory.mktemp("report") / "step.html"
    result = CliRunner().invoke(cli, ["simulate", str(EXAMPLE), "--report", str(path)])
    assert result.exit_code == 0, result.output
    return path.as_uri()


@pytest.fixture
def opened(watched: WatchedPage, simulated: str) -> WatchedPage:
    """The page with the report of the example."""
    watched.page.goto(simulated)
    watched.page.locator(DECISION).first.wait_for()
    return watched


def explanation(page: Page) -> str:
    """The text of the explanation that is shown."""
    return page.locator("section[aria-label=Explanation]").inner_text()


def span(page: Page) -> str:
    """The shown span of time."""
    return page.locator("output[aria-label='Shown span']").inner_text()


def test_plots_are_drawn_without_complaints(opened: WatchedPage) -> None:
    """Each plot has a canvas with pixels, and the console is empty."""
    titles = opened.page.locator("figure h3").all_inner_texts()
    assert [title.split(" ")[0] for title in titles][:4] == ["Requests", "CPU", "Replicas", "Metric:"]
    canvases = opened.page.locator("figure canvas")
    assert canvases.count() == len(titles)
    assert all(canvas.evaluate(DRAWN) for canvas in canvases.all())
    assert opened.complaints == []


def test_expectations_and_summary(opened: WatchedPage) -> None:
    """What the scenario expects is listed with its result; the summary has a row for the autoscaler."""
    assert "web: replicas 2 between 0:00 and 5:00" in opened.page.locator(".expectations li").first.inner_text()
    row = opened.page.locator("table tbody tr").first.inner_text()
    assert row.split()[0] == "default/web"


def test_a_click_on_a_decision_explains_it(opened: WatchedPage) -> None:
    """The list of decisions leads to the words of `podscaler explain`."""
    opened.page.locator(DECISION).nth(1).click()
    assert "default/web goes from 4 to 7" in explanation(opened.page)
    assert "proposal" in explanation(opened.page)


def test_a_click_on_a_mark_explains_it(opened: WatchedPage) -> None:
    """The mark of 8 replicas at 6:45 of 30:00 is at that place of the plot, whose top is a tenth above."""
    figure = opened.page.locator("figure", has=opened.page.locator("h3", has_text="Replicas"))
    plot = figure.locator(".u-over")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    plot.click(position={"x": box["width"] * 6.75 / 30, "y": box["height"] * (1 - 8 / 8.8)})
    assert "default/web goes from 7 to 8" in explanation(opened.page)


def test_keys(opened: WatchedPage) -> None:
    """Arrows move in the list, and Enter explains."""
    opened.page.locator(DECISION).first.focus()
    opened.page.keyboard.press("ArrowDown")
    opened.page.keyboard.press("Enter")
    assert "default/web goes from 4 to 7" in explanation(opened.page)


def test_zoom_of_all_plots(opened: WatchedPage) -> None:
    """A drag zooms every plot, and Reset shows everything again."""
    assert span(opened.page) == "0:00 to 30:00"
    box = opened.page.locator(".u-over").first.bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20, steps=5)
    opened.page.mouse.up()
    begin, end = (text.split(":")[0] for text in span(opened.page).split(" to "))
    assert (begin, end) in {("7", "15"), ("7", "14"), ("8", "15")}
    opened.page.get_by_role("button", name="Reset zoom").click()
    assert span(opened.page) == "0:00 to 30:00"


def test_dark_colours(opened: WatchedPage) -> None:
    """The switch changes the colours of the page."""
    background = "getComputedStyle(document.body).backgroundColor"
    light = opened.page.evaluate(background)
    opened.page.get_by_role("button", name="Dark colours").click()
    assert opened.page.evaluate(background) != light
    assert opened.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, simulated: str, scheme: str) -> None:
    """No violation of WCAG that axe knows, in both colours."""
    context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type] # one of the two
    page = context.new_page()
    page.goto(simulated)
    page.locator(DECISION).first.click()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    context.close()


def test_a_phone(browser: Browser, simulated: str) -> None:
    """At 360 pixels nothing is wider than the screen."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto(simulated)
    page.locator(DECISION).first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


def test_without_scripts(browser: Browser, simulated: str) -> None:
    """The summary is there as a table."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(simulated)
    assert "default/web" in page.locator("noscript").inner_text()
    context.close()


def hostile_report() -> ReportData:
    """A report with markup in every text."""
    plot = TimePlot(
        title=HOSTILE,
        unit=HOSTILE,
        at_s=[0, 15],
        series=(PlotSeries(label=HOSTILE, values=[1, 2]),),
        has_decisions=True,
    )
    decision = ExplainedDecision(at_s=15, kind="up", before=1, after=2, wanted=2, summary=HOSTILE, advice=(HOSTILE,))
    points = (
        ScatterPoint(label=HOSTILE, x=1, y=2, lines=(HOSTILE,)),
        ScatterPoint(label="present", x=2, y=1, kind="present"),
    )
    return ReportData(
        title=HOSTILE,
        notes=(HOSTILE,),
        tables=(ReportTable(title=HOSTILE, columns=(HOSTILE, "b"), rows=((HOSTILE, "c"),)),),
        scatter=ScatterPlot(title=HOSTILE, x_label=HOSTILE, y_label="y", points=points),
        autoscalers=(AutoscalerPart(autoscaler=HOSTILE, workload=HOSTILE, plots=(plot,), decisions=(decision,)),),
    )


def test_hostile_names_are_text(watched: WatchedPage, tmp_path: Path) -> None:
    """Markup in names is shown; nothing of it runs, and no element is made of it."""
    path = tmp_path / "hostile.html"
    report.write(path, hostile_report())
    watched.page.goto(path.as_uri())
    watched.page.locator(DECISION).first.click()
    assert watched.page.title() == HOSTILE
    assert watched.page.locator("img").count() == 0
    assert watched.page.locator("h1").inner_text() == HOSTILE
    assert HOSTILE in explanation(watched.page)
    assert watched.complaints == []


def test_candidates_by_keys(watched: WatchedPage, tmp_path: Path) -> None:
    """The scatter plot leads from candidate to candidate, and names what differs."""
    path = tmp_path / "tune.html"
    points = (
        ScatterPoint(label="candidate 7", x=1, y=3, kind="front", lines=("maxReplicas: 10 -> 8",)),
        ScatterPoint(label="present spec", x=2, y=2, kind="present"),
    )
    scatter = ScatterPlot(title="Candidates", x_label="pod-hours", y_label="under-amount", points=points)
    report.write(path, ReportData(title="Tuning", scatter=scatter))
    watched.page.goto(path.as_uri())
    watched.page.locator(".scatter .canvas").focus()
    watched.page.keyboard.press("ArrowRight")
    details = watched.page.locator("section[aria-label='Selected candidate']")
    assert details.inner_text().splitlines()[0] == "candidate 7"
    assert "maxReplicas: 10 -> 8" in details.inner_text()
    watched.page.keyboard.press("ArrowRight")
    assert details.inner_text().splitlines()[0] == "present spec"
