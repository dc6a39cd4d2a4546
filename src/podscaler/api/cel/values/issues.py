"""Compile errors of CEL expressions ("issues" in cel-go), rendered with the line of the expression and a caret below.

    render_issues("1 + a", [Issue(4, "undeclared reference to 'a' (in container '')")])

    ERROR: <input>:1:5: undeclared reference to 'a' (in container '')
     | 1 + a
     | ....^

`parsing` and `checking` collect issues; `programs` raises them all at once as a CompileError.

Source: cel-go's error display (documented behaviour): sorted by line and column.
"""

from collections.abc import Iterable
from dataclasses import dataclass

NOWHERE = -1
"""The offset of an issue that concerns the whole expression."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One error of an expression.

    Attributes:
        offset: in characters from the beginning of the expression, or NOWHERE.
        text: the message.
    """

    offset: int
    text: str


class CompileError(ValueError):
    """An expression is invalid; str() is the text that kube-apiserver shows after `compilation failed: `."""


def render_issues(source: str, issues: Iterable[Issue]) -> str:
    """All distinct issues, by line and column, each with its line of `source` and a caret below its column."""
    located_texts = sorted((_line_and_column(source, issue.offset), issue.text) for issue in dict.fromkeys(issues))
    lines = source.split("\n")
    return "\n".join(_render_issue(lines, position, message) for position, message in located_texts)


def _line_and_column(source: str, offset: int) -> tuple[int, int]:
    """The line from 1 and the column from 0; NOWHERE twice for NOWHERE."""
    if offset == NOWHERE:
        return NOWHERE, NOWHERE
    text_before = source[:offset]
    return text_before.count("\n") + 1, offset - (text_before.rfind("\n") + 1)


def _render_issue(lines: list[str], position: tuple[int, int], message: str) -> str:
    """One issue with the line of the expression and a caret; without both for an issue of the whole expression."""
    line, column = position
    if line == NOWHERE:
        return f"ERROR: <input>:{line}:{column + 1}: {message}"
    line_text = lines[line - 1].replace("\t", " ")
    dots = "".join("．" if _is_wide(character) else "." for character in line_text[:column]).ljust(column, ".")
    caret = "＾" if column < len(line_text) and _is_wide(line_text[column]) else "^"
    return f"ERROR: <input>:{line}:{column + 1}: {message}\n | {line_text}\n | {dots}{caret}"


def _is_wide(character: str) -> bool:
    """Whether cel-go pads the line below a character with full-width characters: all beyond ASCII."""
    return len(character.encode("utf-8", "surrogatepass")) > 1
