"""Shows the list of `podscaler top`: all autoscalers, problems first, with a filter, orders and commands.

`podscaler.cli.top.top_app` opens it, calls `update_rows` once a second, and handles `Opened`. Only cells that changed
are written, so that a thousand autoscalers cost little. A new key is a Binding with its `action_` method, and a line of
`podscaler.cli.top.text_screens.HELP`; a new command is a case in `execute`, and a line there.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from podscaler.cli.top import list_rows
from podscaler.cli.top.list_rows import COLUMNS, ORDERS, ListView
from podscaler.cli.top.text_screens import plain
from podscaler.observe.views import AutoscalerRow

SEVERITY_STYLES = ("green", "cyan", "yellow", "bold red")
"""The style of the state, by severity."""
NAMESPACE_KEYS = 9
"""How many namespaces can be chosen by the keys 1 to 9."""

Key = tuple[str, str]
"""The namespace and the name of an autoscaler."""


class ListScreen(Screen[None]):
    """All autoscalers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "move(1)", "down", show=False),
        Binding("k", "move(-1)", "up", show=False),
        Binding("g", "first", "first", show=False),
        Binding("G", "last", "last", show=False),
        Binding("d", "open('explanation')", "explain"),
        Binding("y", "open('yaml')", "YAML"),
        Binding("slash", "prompt('/')", "filter", key_display="/"),
        Binding("colon", "prompt(':')", "command", key_display=":"),
        Binding("s", "next_order", "sort"),
        Binding("p", "toggle_problems", "problems"),
        Binding("escape", "reset", "reset", show=False),
        *(Binding(str(index), f"namespace({index})", show=False) for index in range(NAMESPACE_KEYS + 1)),
    ]

    class Opened(Message):
        """The user opens an autoscaler; `part` is `detail`, `explanation` or `yaml`."""

        def __init__(self, key: Key, part: str) -> None:
            super().__init__()
            self.key = key
            self.part = part

    def __init__(self, view: ListView) -> None:
        super().__init__()
        self.view = view
        self._rows: Sequence[AutoscalerRow] = ()
        self._now_ms = 0
        self._cluster = ""
        self._shown_cells: dict[Key, tuple[str, ...]] = {}

    def compose(self) -> ComposeResult:
        """The line of the state, the table, the input, and the keys."""
        yield Static(id="state", classes="title")
        yield DataTable[Text](cursor_type="row", id="autoscalers")
        yield Input(id="prompt", select_on_focus=False)
        yield Footer()

    def on_mount(self) -> None:
        """Make the columns; the input is hidden until a filter or a command is typed."""
        self._table.add_columns(*((name, name) for name in COLUMNS))
        self.query_one("#prompt").display = False
        self._table.focus()
        self._show()

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one("#autoscalers", DataTable)

    @property
    def selected(self) -> Key | None:
        """The autoscaler under the cursor; None if the list is empty."""
        keys = list(self._shown_cells)
        row = self._table.cursor_row
        return keys[row] if 0 <= row < len(keys) else None

    def update_rows(self, rows: Sequence[AutoscalerRow], now_ms: int, cluster: str) -> None:
        """Show those of the rows that the view selects."""
        self._rows, self._now_ms, self._cluster = rows, now_ms, cluster
        if self.is_mounted:
            self._show()

    def _show(self) -> None:
        """Show the chosen rows; if they are the same as before, only their changed cells."""
        try:
            table = self._table
        except NoMatches:  # between two screens
            return
        selected = list_rows.select(self._rows, self.view)
        cells_by_key = {(row.namespace, row.name): list_rows.cells(row, self._now_ms) for row in selected}
        styles = {(row.namespace, row.name): SEVERITY_STYLES[row.severity] for row in selected}
        if list(cells_by_key) == list(self._shown_cells):
            self._update_cells(table, cells_by_key, styles)
        else:
            self._refill(table, cells_by_key, styles)
        self._shown_cells = cells_by_key
        self.query_one("#state", Static).update(Text(self._state_line(len(cells_by_key)), style="bold"))

    def _update_cells(
        self, table: DataTable[Text], cells_by_key: dict[Key, tuple[str, ...]], styles: dict[Key, str]
    ) -> None:
        """Write the cells that have changed since they were shown; the rows are the same."""
        for key, new_cells in cells_by_key.items():
            old_cells = self._shown_cells[key]
            if new_cells == old_cells:
                continue
            for column, new_cell, old_cell in zip(COLUMNS, new_cells, old_cells, strict=True):
                if new_cell != old_cell:
                    table.update_cell("/".join(key), column, _cell(column, new_cell, styles[key]), update_width=True)

    def _refill(self, table: DataTable[Text], cells_by_key: dict[Key, tuple[str, ...]], styles: dict[Key, str]) -> None:
        """Make all rows again; the cursor stays on its autoscaler."""
        selected, keys = self.selected, list(cells_by_key)
        table.clear()
        for key, row_cells in cells_by_key.items():
            cells = [
                _cell(column, cell_text, styles[key]) for column, cell_text in zip(COLUMNS, row_cells, strict=True)
            ]
            table.add_row(*cells, key="/".join(key))
        if selected in cells_by_key:
            table.move_cursor(row=keys.index(selected), animate=False)

    def _state_line(self, shown_count: int) -> str:
        """The first line: the cluster, how many autoscalers are shown, and the filters that apply."""
        parts = [plain(self._cluster) or "connecting", f"{shown_count} of {len(self._rows)} autoscalers"]
        if problems := sum(row.severity >= list_rows.PROBLEM_SEVERITY for row in self._rows):
            parts.append(f"{problems} with problems")
        if self.view.namespace:
            parts.append(f"namespace {self.view.namespace}")
        if self.view.words:
            parts.append(f"filter {' '.join(self.view.words)}")
        if self.view.only_problems:
            parts.append("problems only")
        return "  ·  ".join([*parts, f"by {self.view.order}"])

    def _change_view(self, **changes: object) -> None:
        """Replace attributes of the view, and show what it selects."""
        self.view = msgspec.structs.replace(self.view, **changes)
        self._show()

    def action_move(self, rows: int) -> None:
        """Move the cursor by rows."""
        self._table.move_cursor(row=max(self._table.cursor_row + rows, 0), animate=False)

    def action_first(self) -> None:
        """Move the cursor to the first row."""
        self._table.move_cursor(row=0, animate=False)

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self._table.move_cursor(row=max(len(self._shown_cells) - 1, 0), animate=False)

    def action_next_order(self) -> None:
        """Sort by the next order."""
        self._change_view(order=list_rows.next_order(self.view.order))

    def action_toggle_problems(self) -> None:
        """Show problems only, or everything again."""
        self._change_view(only_problems=not self.view.only_problems)

    def action_namespace(self, index: int) -> None:
        """Show one namespace, counted from 1 in alphabetical order; 0: all."""
        names = sorted({row.namespace for row in self._rows})
        if index == 0:
            self._change_view(namespace="")
        elif index <= len(names):
            self._change_view(namespace=names[index - 1])

    def action_reset(self) -> None:
        """End the filter, and show everything."""
        self._change_view(words=(), only_problems=False)

    def action_open(self, part: str) -> None:
        """Open a part of the autoscaler under the cursor."""
        if (key := self.selected) is not None:
            self.post_message(self.Opened(key, part))

    @on(DataTable.RowSelected)
    def open_detail(self) -> None:
        """Open the autoscaler on which the user pressed Enter."""
        self.action_open("detail")

    def action_prompt(self, sign: str) -> None:
        """Ask for a filter (`/`) or a command (`:`)."""
        prompt = self.query_one("#prompt", Input)
        prompt.value, prompt.display = sign, True
        prompt.focus()
        prompt.cursor_position = len(sign)

    @on(Input.Changed, "#prompt")
    def filter_while_typing(self, event: Input.Changed) -> None:
        """Apply a filter while it is typed."""
        if event.value.startswith("/"):
            self._change_view(words=tuple(event.value[1:].split()))

    @on(Input.Submitted, "#prompt")
    def submit(self, event: Input.Submitted) -> None:
        """Hide the input; a filter stays, and a command is executed."""
        self.query_one("#prompt").display = False
        self._table.focus()
        if event.value.startswith(":"):
            self.execute(event.value[1:])

    def execute(self, command: str) -> None:
        """Execute a command of the prompt; a message names one that does not exist."""
        match command.split():
            case ["q" | "quit"]:
                self.app.exit()
            case ["ns" | "namespace", name]:
                self._change_view(namespace=name)
            case ["all"]:
                self._change_view(namespace="", words=(), only_problems=False)
            case ["problems"]:
                self._change_view(only_problems=True)
            case ["sort", order] if order in ORDERS:
                self._change_view(order=order)
            case _:
                self.notify(f"no command {plain(command)!r}; ? lists them", severity="warning", markup=False)


def _cell(column: str, cell_text: str, style: str) -> Text:
    return Text(plain(cell_text), style=style if column == "STATE" else "", no_wrap=True)
