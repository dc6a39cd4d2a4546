"""Shows texts as screens of `podscaler top`: explanations, YAML, and the help.

`podscaler.cli.top.top_app` opens them. A text is shown without markup and control characters. A new key: a binding in
`list_screen`, `detail_screen` or `top_app`, its line in HELP, and in docs/top.md.
"""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

HELP = """\
Everywhere
  ?              this help
  Esc            back
  q, Ctrl-C      quit
  :              a command: ns NAME, all, sort problems|name|replicas|changed, problems, q

The list
  j, k, arrows   the next, the previous autoscaler
  g, G           the first, the last one
  Enter          the autoscaler: plots, decisions, events, pods
  d              the explanation of its latest decision
  y              its YAML
  /              filter: words that must be in the name, state, target or metrics
  s              the next order: problems first, by name, replicas, latest change
  p              problems only
  0              all namespaces; 1 to 9: one of them, in alphabetical order

The autoscaler
  1 to 5         decisions, events, pods, lint findings, conditions
  Enter          the explanation of the decision
  -, +           a longer, a shorter range of time
  d, y           as in the list
"""


def plain(text: str) -> str:
    """The text with U+FFFD in place of control characters, which could move the cursor; newlines and tabs stay."""
    return "".join(character if character in "\n\t" or character.isprintable() else "�" for character in text)


class TextScreen(Screen[None]):
    """One text that can be scrolled.

    Args:
        title: one line above the text.
        text: any number of lines; both are shown without markup.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "back"),
        Binding("j,down", "scroll(1)", "down", show=False),
        Binding("k,up", "scroll(-1)", "up", show=False),
        Binding("pagedown,space", "scroll(10)", "page down", show=False),
        Binding("pageup", "scroll(-10)", "page up", show=False),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.title_text = plain(title)
        self.text = plain(text)

    def compose(self) -> ComposeResult:
        """The title, the text, and the keys."""
        yield Static(Text(self.title_text, style="bold"), classes="title")
        with VerticalScroll(can_focus=True):
            yield Static(Text(self.text), id="text")
        yield Footer()

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines; negative: up."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)
