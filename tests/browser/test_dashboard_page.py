"""The dashboard in a real browser: login, list, detail, decisions, what-if, live updates, errors, colours, a phone."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser_page import WatchedPage
from click.testing import CliRunner
from playwright.sync_api import Browser, Page, expect
from served_dashboard import ServedDashboard, serve

from dashboard_world import open_viewer
from patience import WITHIN_S
from podscaler.cli.main import cli
from podscaler.dashboard import sessions
from podscaler.dashboard.server import DashboardOptions
from podscaler.testing.autoscaling import spec
from podscaler.testing.cluster import HPAS, RESOURCE_METRICS, FakeCluster, refusal

HOSTILE = '<img src=x onerror="document.title=1">'
DECISION = "[role=option]"
EXAMPLE = Path(__file__).parents[2] / "examples" / "simulation" / "step.yaml"
ROW = "tbody tr"


@pytest.fixture
def served() -> Iterator[ServedDashboard]:
    """A dashboard with one autoscaler, that was just scaled from 2 to 4."""
    with serve() as dashboard:
        yield dashboard


@pytest.fixture
def opened(watched: WatchedPage, served: ServedDashboard) -> WatchedPage:
    """The list, logged in."""
    watched.page.goto(served.login_link())
    await_row(watched.page, served)
    return watched


def await_row(page: Page, served: ServedDashboard) -> None:
    """Let virtual time pass, in which the stream has its rounds, until the list has a row."""
    deadline_s = time.monotonic() + WITHIN_S
    row = page.locator(ROW).first
    while not row.is_visible():
        assert time.monotonic() < deadline_s, page.content()
        served.advance(2)
        page.wait_for_timeout(20)


def log_in(page: Page, token: str) -> None:
    """Type a token into the form."""
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()


def open_detail(page: Page) -> None:
    """Follow the link of the first row."""
    page.locator(f"{ROW} th a").first.click()
    page.locator("figure canvas").first.wait_for()


def explain_first(page: Page) -> str:
    """The explanation of the first decision, once it was read."""
    page.locator(DECISION).first.click()
    page.locator(".steps").first.wait_for()
    return page.locator("section[aria-label=Explanation]").inner_text()


def test_login_shows_the_list(opened: WatchedPage) -> None:
    """The link logs in, its token leaves the address, and the row has state, counts and metric."""
    row = opened.page.locator(ROW).first.inner_text()
    assert "shop/web" in row
    assert "cpu 100%/50%" in row
    assert "token" not in opened.page.url
    assert opened.complaints == []


@pytest.mark.parametrize("token", ["wrong", "used"])
def test_a_token_that_does_not_log_in(watched: WatchedPage, served: ServedDashboard, token: str) -> None:
    """The page says what happened, and how to log in."""
    link = served.login_link()
    if token == "used":
        watched.page.goto(link)
        watched.page.locator(ROW).first.wait_for()
        watched.page.context.clear_cookies()
    watched.page.goto("about:blank")
    watched.page.goto(link if token == "used" else f"{served.url}/#token=nonsense")
    message = watched.page.locator(".message")
    message.wait_for()
    assert "login token" in message.inner_text()
    assert "Open the newest link" in message.inner_text()


def test_a_token_of_the_cluster(watched: WatchedPage) -> None:
    """It is typed into the page; one that the API server does not know is said, and the next one may be tried."""
    with serve(options=DashboardOptions(open_viewer=open_viewer)) as served:
        watched.page.goto(served.url)
        log_in(watched.page, "unknown")
        expect(watched.page.get_by_role("alert")).to_contain_text("login token is wrong")
        log_in(watched.page, "shop")
        watched.page.locator(ROW).first.wait_for()


def test_a_login_link_in_an_open_page(watched: WatchedPage, served: ServedDashboard) -> None:
    """It logs in without a reload, its token leaves the address, and it may be typed into the form as a whole."""
    watched.page.goto(served.url)
    watched.page.get_by_role("alert").wait_for()
    log_in(watched.page, served.login_link())
    watched.page.locator(ROW).first.wait_for()
    watched.page.context.clear_cookies()
    watched.page.goto(served.login_link())
    watched.page.locator(ROW).first.wait_for()
    assert "token" not in watched.page.url


def test_a_damaged_address(opened: WatchedPage, served: ServedDashboard) -> None:
    """What cannot be unescaped is the name of nothing."""
    opened.page.goto(f"{served.url}/#/shop/%zz")
    expect(opened.page.locator("main .error").first).to_contain_text("there is no autoscaler")


def test_a_forbidden_namespace(watched: WatchedPage) -> None:
    """The list leaves it out, and a link to one of its autoscalers names the permission that is missing."""
    with serve(options=DashboardOptions(open_viewer=open_viewer)) as served:
        watched.page.goto(served.url)
        log_in(watched.page, "other")
        expect(watched.page.locator("main")).to_contain_text("There is none that you may see")
        assert watched.page.locator(ROW).count() == 0
        watched.page.goto(f"{served.url}/#/shop/web")
        expect(watched.page.locator("main .error").first).to_contain_text(
            "you may not get horizontalpodautoscalers in shop"
        )


def test_metrics_that_cannot_be_read(opened: WatchedPage, served: ServedDashboard) -> None:
    """The row says it in a word, and the decision which metric failed and why."""
    served.change(lambda cluster: cluster.fail(refusal(503, "ServiceUnavailable", "down"), below=RESOURCE_METRICS))
    served.advance(20)
    expect(opened.page.locator(ROW).first).to_contain_text("NoMetrics")
    opened.page.reload()  # the page takes the server's clock, which moves at once here, with the list
    open_detail(opened.page)
    opened.page.locator(DECISION).last.click()
    shown = opened.page.locator("section[aria-label=Explanation]")
    expect(shown).to_contain_text("unable to get metrics for resource cpu")


def test_an_expired_session(opened: WatchedPage, served: ServedDashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page asks for after that shows how to log in again."""
    monkeypatch.setattr(sessions, "SESSION_IDLE_S", 60.0)
    served.advance_long(61)
    opened.page.reload()
    expect(opened.page.locator("h1")).to_have_text("Log in")


def test_filter_and_keys(opened: WatchedPage, served: ServedDashboard) -> None:
    """A filter narrows the list; `j` and Enter open an autoscaler."""

    def add(cluster: FakeCluster) -> None:
        for name in ("api", "queue"):
            cluster.put_deployment(name, 1)
            cluster.put_autoscaler(name, spec(name))

    served.change(add)
    expect(opened.page.locator(ROW)).to_have_count(3)
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("shop/api")
    expect(opened.page.locator(ROW)).to_have_count(1)
    opened.page.keyboard.press("Escape")
    expect(opened.page.locator(ROW)).to_have_count(3)
    opened.page.keyboard.press("j")
    opened.page.keyboard.press("Enter")
    expect(opened.page.locator("h1")).to_have_text(re.compile("shop/"))


def test_a_row_follows_the_cluster(opened: WatchedPage, served: ServedDashboard) -> None:
    """An edit is shown without a reload, and a deleted autoscaler leaves the list."""
    served.change(lambda cluster: cluster.put_autoscaler("web", spec(maximum=37)))
    expect(opened.page.locator(ROW).first).to_contain_text("1–37")
    served.change(lambda cluster: cluster.delete(HPAS, "web"))
    expect(opened.page.locator(ROW)).to_have_count(0)


def test_a_decision_is_explained(opened: WatchedPage) -> None:
    """The picture of the steps and the words; the words are those of `podscaler explain`."""
    open_detail(opened.page)
    shown = explain_first(opened.page)
    path = "/api/autoscalers/shop/web"
    mark = opened.page.evaluate(f"fetch('{path}').then(r => r.json()).then(d => d.decisions[0].id)")
    decision: dict[str, Any] = opened.page.evaluate(f"fetch('{path}/decisions/{mark}').then(r => r.json())")
    assert decision["explanation"]["summary"] in shown
    for section in decision["explanation"]["steps"]:
        assert section["title"] in shown
        assert all(line["text"] in shown for line in section["lines"])
    boxes = opened.page.locator(".steps").first.locator("h4").all_inner_texts()
    assert boxes[0] == "Replicas now"
    assert boxes[-1] == "Result"
    assert opened.complaints == []


def test_plots_have_pixels(opened: WatchedPage) -> None:
    """The replicas and the metric are drawn."""
    open_detail(opened.page)
    drawn = """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
      .some((value, index) => index % 4 === 3 && value > 0)"""
    canvases = opened.page.locator("figure canvas")
    assert [canvas.evaluate(drawn) for canvas in canvases.all()] == [True, True]


def test_what_if(opened: WatchedPage, served: ServedDashboard) -> None:
    """Another maximum is decided now and over time, with the patch; a field that is wrong is said."""
    open_detail(opened.page)
    opened.page.get_by_label("maxReplicas").fill("3")
    opened.page.get_by_role("button", name="What if?").click()
    result = opened.page.locator("section[aria-label=Result]")
    expect(result.locator("pre")).to_contain_text("maxReplicas: 3")
    assert "default" not in result.locator("ul").inner_text()
    expect(opened.page.locator("figure").first).to_contain_text("what if")
    with opened.page.expect_response(lambda response: "/api/autoscalers/shop/web" in response.url):
        served.advance(20)  # the page refreshes
    expect(opened.page.locator("figure").first).to_contain_text("what if")
    opened.page.get_by_label("scale-up policies").fill("many Pods")
    opened.page.get_by_role("button", name="What if?").click()
    expect(opened.page.locator(".what-if .error")).to_contain_text("is no policy")
    assert opened.complaints == []


def test_an_autoscaler_that_disappears(opened: WatchedPage, served: ServedDashboard) -> None:
    """The open page says that it is gone."""
    open_detail(opened.page)
    served.change(lambda cluster: cluster.delete(HPAS, "web"))
    expect(opened.page.locator("main .error").first).to_contain_text("was deleted")


def test_an_unknown_autoscaler(opened: WatchedPage, served: ServedDashboard) -> None:
    """A link to none says so, and leads back."""
    opened.page.goto(f"{served.url}/#/shop/none")
    expect(opened.page.locator("main .error").first).to_contain_text("there is no autoscaler none")
    opened.page.get_by_role("link", name="All autoscalers").click()
    opened.page.locator(ROW).first.wait_for()


@pytest.mark.parametrize(
    ("query", "note"),
    [("minutes=soon", "The address asks for “soon” minutes"), ("decision=17", "The decision “17” of the address")],
)
def test_an_address_with_unknown_parts(opened: WatchedPage, served: ServedDashboard, query: str, note: str) -> None:
    """The page says what is wrong with it, and shows the last hour."""
    opened.page.goto(f"{served.url}/#/shop/web?{query}")
    expect(opened.page.locator("main p[role=status]")).to_contain_text(note)
    opened.page.locator("figure canvas").first.wait_for()


def test_a_lost_server(opened: WatchedPage, served: ServedDashboard) -> None:
    """The banner says that what is shown may be old."""
    served.stop_server()
    expect(opened.page.locator("#banner")).to_contain_text("Trying again")
    expect(opened.page.locator("#connection")).to_have_text("reconnecting")
    assert opened.page.locator(ROW).count() == 1


def test_a_report(watched: WatchedPage, tmp_path: Path) -> None:
    """A report of a simulation is listed, and opens as in its own page."""
    arguments = ["simulate", str(EXAMPLE), "--report", str(tmp_path / "step.json")]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    with serve(options=DashboardOptions(reports=tmp_path)) as served:
        watched.page.goto(served.login_link())
        watched.page.get_by_role("link", name="Reports").click()
        watched.page.get_by_role("link", name="step").click()
        watched.page.locator(DECISION).nth(1).click()
        shown = watched.page.locator("section[aria-label=Explanation]")
        expect(shown).to_contain_text("default/web goes from 4 to 7")
    assert not [each for each in watched.complaints if "Failed to load" not in each]


def test_hostile_texts(opened: WatchedPage, served: ServedDashboard) -> None:
    """Markup in what the cluster says is shown as text."""

    def label(cluster: FakeCluster) -> None:
        cluster.label_autoscaler("web", hostile=HOSTILE)

    served.change(label)
    open_detail(opened.page)
    opened.page.locator("details", has_text="YAML").locator("summary").click()
    expect(opened.page.locator("details pre")).to_contain_text("onerror")
    assert opened.page.locator("img").count() == 0
    assert opened.page.title() != "1"


def test_dark_colours(opened: WatchedPage) -> None:
    """The switch changes the colours, also of the plots of an open autoscaler."""
    open_detail(opened.page)
    background = "getComputedStyle(document.body).backgroundColor"
    light = opened.page.evaluate(background)
    opened.page.get_by_role("button", name="Dark colours").click()
    assert opened.page.evaluate(background) != light
    assert opened.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, served: ServedDashboard, scheme: str) -> None:
    """No violation of WCAG that axe knows: the list, and an autoscaler with an explanation."""
    context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type] # one of the two
    page = context.new_page()
    page.goto(served.login_link())
    page.locator(ROW).first.wait_for()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    open_detail(page)
    explain_first(page)
    page.locator("details", has_text="Pods").locator("summary").click()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    context.close()


def test_a_phone(browser: Browser, served: ServedDashboard) -> None:
    """At 360 pixels neither page is wider than the screen."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto(served.login_link())
    page.locator(ROW).first.wait_for()
    width = "document.documentElement.scrollWidth"
    assert page.evaluate(width) <= 360
    open_detail(page)
    explain_first(page)
    assert page.evaluate(width) <= 360
    context.close()
