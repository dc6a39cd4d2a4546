"""`podscaler top` driven by keys: the list, one autoscaler, explanations, and what goes wrong."""

import pytest
from textual.widgets import DataTable, Input, Static, TabbedContent

from podscaler.base.errors import PodscalerError
from podscaler.cli.top.detail_screen import DetailScreen
from podscaler.cli.top.list_screen import ListScreen
from podscaler.cli.top.text_screens import TextScreen
from podscaler.cli.top.top_app import TopApp
from podscaler.observe.views import AutoscalerRow, DecisionView, Notice
from podscaler.testing import views
from podscaler.testing.clock import VirtualClock
from podscaler.testing.views import ScriptedViews

ROWS = [
    views.row("shop", "web"),
    views.row("shop", "api", state="AtMaximum", severity=2, reason="10 is the maximum."),
    views.row("jobs", "queue", state="NoMetrics", severity=3),
]


def new_source(rows: list[AutoscalerRow] | None = None) -> ScriptedViews:
    """Three autoscalers, each with a detail."""
    source = ScriptedViews(ROWS if rows is None else rows)
    for row in source.listed:
        source.details[row.namespace, row.name] = views.detail(row)
    return source


def new_app(source: ScriptedViews, **options: object) -> TopApp:
    """The program, at the instant of the views."""
    clock = VirtualClock(views.START_MS * 1_000_000)
    return TopApp(source, cluster="test", clock=clock, **options)  # type: ignore[arg-type] # options of the test


def names(app: TopApp) -> list[str]:
    """The names in the list, from the top."""
    table = app.list_screen.query_one(DataTable)
    return [str(table.get_row_at(index)[1]) for index in range(table.row_count)]


def state_line(app: TopApp) -> str:
    """The first line of the screen."""
    return str(app.screen.query_one("#state", Static).content)


def shown_text(app: TopApp) -> str:
    """The text of an open TextScreen."""
    assert isinstance(app.screen, TextScreen)
    return app.screen.text


async def test_problems_come_first() -> None:
    """The list has all autoscalers, and counts those with problems."""
    app = new_app(new_source())
    async with app.run_test():
        assert names(app) == ["queue", "api", "web"]
        assert state_line(app) == "test  ·  3 of 3 autoscalers  ·  2 with problems  ·  by problems"


async def test_a_filter_acts_while_it_is_typed() -> None:
    """`/` narrows the list, Enter keeps it, Escape ends it."""
    app = new_app(new_source())
    async with app.run_test() as pilot:
        await pilot.press("slash", *"shop", "space", *"max")
        assert names(app) == ["api"]
        await pilot.press("enter")
        assert not app.list_screen.query_one(Input).display
        await pilot.press("escape")
        assert names(app) == ["queue", "api", "web"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param(["s"], ["queue", "api", "web"], id="by name"),
        pytest.param(["p"], ["queue", "api"], id="problems only"),
        pytest.param(["2"], ["api", "web"], id="the second namespace"),
        pytest.param(["2", "0"], ["queue", "api", "web"], id="all namespaces again"),
        pytest.param(["colon", *"ns", "space", *"jobs", "enter"], ["queue"], id="a command"),
        pytest.param(["colon", *"nonsense", "enter"], ["queue", "api", "web"], id="no such command"),
    ],
)
async def test_keys_of_the_list(keys: list[str], expected: list[str]) -> None:
    """Keys and commands choose what the list has."""
    app = new_app(new_source())
    async with app.run_test() as pilot:
        await pilot.press(*keys)
        assert names(app) == expected


async def test_the_cursor_stays_on_its_autoscaler() -> None:
    """When the order changes, the cursor moves with the row."""
    source = new_source()
    app = new_app(source)
    async with app.run_test() as pilot:
        await pilot.press("j")
        source.listed = [views.row("shop", "api", severity=3), *(row for row in ROWS if row.name != "api")]
        app.refresh_rows()
        await pilot.pause()
        assert app.list_screen.selected == ("shop", "api")


async def test_changed_cells_are_updated() -> None:
    """A row whose counts change shows the new ones."""
    source = new_source()
    app = new_app(source)
    async with app.run_test() as pilot:
        source.listed = [*ROWS[1:], views.row("shop", "web", replicas=5, desired=7)]
        app.refresh_rows()
        await pilot.pause()
        assert str(app.list_screen.query_one(DataTable).get_cell("shop/web", "REPLICAS (WANTED)")) == "5 (7)"


async def test_enter_opens_an_autoscaler_and_a_decision() -> None:
    """The decisions are there, the newest first; Enter shows the explanation, Escape goes back."""
    source = new_source()
    source.explanations = {each.id: DecisionView({}, f"because {each.to}") for each in views.detail(ROWS[0]).decisions}
    app = new_app(source)
    async with app.run_test() as pilot:
        await pilot.press("G", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert isinstance(app.screen, DetailScreen)
        assert "shop/web  ok Steady  Deployment/web  4 replicas (2-10)  cpu 63%/70%" in state_line(app)
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert shown_text(app) == "because 4"
        await pilot.press("escape", "escape")
        assert isinstance(app.screen, ListScreen)


async def test_plots_of_an_autoscaler() -> None:
    """The replicas and each metric have a plot, in 80 columns."""
    app = new_app(new_source())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("G", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        lines = str(app.screen.query_one("#plot", Static).content).splitlines()
        titles = [line.split("   ")[0] for line in lines if "─" in line and "   " in line and "│" not in line]
        assert titles == ["replicas", "cpu %"]
        assert max(map(len, lines)) <= 80


async def test_a_narrow_terminal_gets_narrow_plots() -> None:
    """Plots follow the size of the terminal."""
    app = new_app(new_source())
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("G", "enter")
        await app.workers.wait_for_complete()
        await pilot.resize_terminal(50, 20)
        await pilot.pause()
        plot = str(app.screen.query_one("#plot", Static).content)
        assert max(len(line) for line in plot.splitlines() if "│" in line) <= 50


async def test_tabs() -> None:
    """Digits choose the tables of an autoscaler."""
    app = new_app(new_source())
    async with app.run_test() as pilot:
        await pilot.press("G", "enter", "5")
        await pilot.pause()
        assert app.screen.query_one(TabbedContent).active == "conditions"


async def test_yaml_and_the_latest_explanation() -> None:
    """`y` and `d` work on the list."""
    source = new_source()
    latest = views.detail(ROWS[0]).decisions[-1].id
    source.explanations[latest] = DecisionView({}, "because of the load")
    app = new_app(source)
    async with app.run_test() as pilot:
        await pilot.press("G", "y")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "name: web" in shown_text(app)
        await pilot.press("escape", "d")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert shown_text(app) == "because of the load"


async def test_an_autoscaler_that_disappears() -> None:
    """The open screen says so, keeps the last state, and the list goes on."""
    source = new_source()
    app = new_app(source)
    async with app.run_test() as pilot:
        await pilot.press("G", "enter")
        await app.workers.wait_for_complete()
        del source.details["shop", "web"]
        source.listed = ROWS[1:]
        assert isinstance(app.screen, DetailScreen)
        app.screen.read()
        await app.workers.wait_for_complete()
        assert state_line(app) == "shop/web: there is no autoscaler shop/web any more"
        await pilot.press("escape")
        app.refresh_rows()
        assert names(app) == ["queue", "api"]


async def test_a_lost_connection_is_said_until_it_is_back() -> None:
    """The notice is above the list, and goes when reads succeed again."""
    notices: list[Notice | None] = [Notice("error", "the API server cannot be reached")]
    app = new_app(new_source(), find_notice=lambda: notices[0])
    async with app.run_test() as pilot:
        await pilot.pause()
        assert str(app.screen.query_one("#notice", Static).content) == "the API server cannot be reached"
        notices[0] = None
        app.refresh_rows()
        await pilot.pause()
        assert not app.screen.query("#notice")


async def test_an_explanation_that_cannot_be_read() -> None:
    """What failed is shown; the list stays open."""
    source = new_source()
    source.error = PodscalerError("pods may not be listed in shop")
    app = new_app(source)
    async with app.run_test() as pilot:
        await pilot.press("G", "d")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert isinstance(app.screen, ListScreen)
        messages = [each.message for each in app._notifications]  # Textual has no other way to read them
        assert messages == ["shop/web: pods may not be listed in shop"]


async def test_hostile_names_are_plain_text() -> None:
    """Markup and control characters of names are shown, not interpreted."""
    rows = [views.row("shop", "[red]web[/red]\x1b[2J")]
    app = new_app(new_source(rows))
    async with app.run_test():
        assert names(app) == ["[red]web[/red]�[2J"]


async def test_a_thousand_autoscalers() -> None:
    """All are in the list; the last one can be reached by one key."""
    rows = [views.row("shop", f"web-{index:04}") for index in range(1000)]
    app = new_app(new_source(rows))
    async with app.run_test() as pilot:
        await pilot.press("G")
        assert app.list_screen.selected == ("shop", "web-0999")


async def test_help() -> None:
    """`?` lists the keys."""
    app = new_app(new_source())
    async with app.run_test() as pilot:
        await pilot.press("question_mark")
        assert "problems first" in shown_text(app)
