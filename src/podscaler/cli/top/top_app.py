"""The terminal program of `podscaler top`: opens its screens, and refreshes the list.

`podscaler.cli.top.top` runs it. Every REFRESH_PERIOD_S the list gets the rows that are known, and the first line the
state of the connection. Screens send messages (`ListScreen.Opened`, `DetailScreen.PartOpened`), which are handled here;
a further part to open is a case in `show_part`.
"""

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from podscaler.base.clock import Clock
from podscaler.base.errors import PodscalerError
from podscaler.cli.top.detail_screen import DetailScreen
from podscaler.cli.top.list_rows import ListView
from podscaler.cli.top.list_screen import ListScreen
from podscaler.cli.top.text_screens import HELP, TextScreen, plain
from podscaler.observe.views import Notice, ViewSource

REFRESH_PERIOD_S = 1.0
STYLE = """
.title { padding: 0 1; height: auto; background: $panel; }
#notice { dock: top; height: auto; padding: 0 1; background: $error; color: $text; display: none; }
#prompt { dock: bottom; }
#plots { height: auto; max-height: 60%; padding: 0 1; }
#text { padding: 0 1; width: auto; }
TabbedContent { height: 1fr; min-height: 6; }
DataTable { height: 1fr; }
"""


class TopApp(App[None]):
    """The program.

    Args:
        source: the rows, details and explanations to show.
        cluster: its name, for the first line.
        view: what the list shows first.
        find_notice: returns what is wrong with the connection now; None: nothing.
    """

    CSS = STYLE
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
    ]

    def __init__(
        self,
        source: ViewSource,
        *,
        cluster: str,
        clock: Clock,
        view: ListView | None = None,
        find_notice: Callable[[], Notice | None] = lambda: None,
    ) -> None:
        super().__init__()
        self._source = source
        self._cluster = cluster
        self._clock = clock
        self._find_notice = find_notice
        self.list_screen = ListScreen(view or ListView())

    def compose(self) -> ComposeResult:
        """Nothing: the screens have everything."""
        yield from ()

    async def on_mount(self) -> None:
        """Open the list, and begin to refresh it."""
        await self.push_screen(self.list_screen)
        self.set_interval(REFRESH_PERIOD_S, self.refresh_rows)
        self.refresh_rows()

    def refresh_rows(self) -> None:
        """Give the list what is known now, and show what is wrong with the connection."""
        self.list_screen.update_rows(self._source.rows(), self._clock.now_ns() // 1_000_000, self._cluster)
        self._show_notice(self._find_notice())

    def _show_notice(self, notice: Notice | None) -> None:
        """Show, change or remove the line about what is wrong with the connection."""
        notices = self.screen.query("#notice")
        if notice is None:
            notices.remove()
        elif notices:
            notices.first(Static).update(Text(plain(notice.text)))
        else:
            line = Static(Text(plain(notice.text)), id="notice")
            self.screen.mount(line, before=0)
            line.display = True

    @on(ListScreen.Opened)
    def open_part(self, event: ListScreen.Opened) -> None:
        """Open an autoscaler of the list, or its latest explanation or YAML."""
        if event.part == "detail":
            self.push_screen(DetailScreen(event.key, self._source))
        else:
            self.show_part(event.key, event.part)

    @on(DetailScreen.PartOpened)
    def open_part_of_detail(self, event: DetailScreen.PartOpened) -> None:
        """Open the latest explanation, or the YAML."""
        self.show_part(event.key, event.part)

    @on(DetailScreen.DecisionOpened)
    def open_decision(self, event: DetailScreen.DecisionOpened) -> None:
        """Open the explanation of a decision."""
        self.show_explanation(event.key, event.mark.id)

    @work(exclusive=True, group="part")
    async def show_part(self, key: tuple[str, str], part: str) -> None:
        """Read an autoscaler, and open its `yaml` or the `explanation` of its latest decision; errors are shown."""
        name = "/".join(key)
        try:
            detail = await self._source.detail(*key, from_ms=None, to_ms=None)
        except PodscalerError as error:
            self._show_error(f"{name}: {error}")
            return
        if part == "yaml":
            self.push_screen(TextScreen(name, detail.yaml))
        elif detail.decisions:
            self.show_explanation(key, detail.decisions[-1].id)
        else:
            self._show_error(f"no decision about {name} is known yet. {detail.since_reason}")

    @work(exclusive=True, group="explanation")
    async def show_explanation(self, key: tuple[str, str], mark_id: str) -> None:
        """Read the explanation of a decision, and open it; errors are shown."""
        try:
            decision = await self._source.explanation(*key, mark_id)
        except PodscalerError as error:
            self._show_error(f"{'/'.join(key)}: {error}")
            return
        self.push_screen(TextScreen("/".join(key), decision.text))

    def _show_error(self, message: str) -> None:
        """Show a notification in the colour of errors."""
        self.notify(plain(message), severity="error", markup=False)

    def action_help(self) -> None:
        """Open the help."""
        self.push_screen(TextScreen("podscaler top", HELP))
