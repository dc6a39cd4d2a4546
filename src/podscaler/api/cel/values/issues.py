"""Compile errors, rendered with the line of the source as upstream's compiler does.

Called by `parsing` and `checking`, which collect issues, and by `programs`, which raises them all at once.

Source: cel-go's error display (documented behaviour): sorted by place, a line of the source, a caret below.
"""

from collections.abc import Iterable
from dataclasses import dataclass

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Issue:
    """One error at `offset`, in characters from the beginning; NOWHERE for the whole expression."""

    offset: int
    text: str


class CompileError(ValueError):
    """An expression is invalid; str() is the whole text that upstream shows after `compilation failed: `."""


def rendered(source: str, issues: Iterable[Issue]) -> str:
    """All distinct issues in the order of the source, each with its line and a caret below its column."""
    placed = sorted((_place(source, issue.offset), issue.text) for issue in dict.fromkeys(issues))
    lines = source.split("\n")
    return "\n".join(_shown(lines, place, text) for place, text in placed)


def _place(source: str, offset: int) -> tuple[int, int]:
    if offset == NOWHERE:
        return NOWHERE, NOWHERE
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1)


def _shown(lines: list[str], place: tuple[int, int], text: str) -> str:
    line, column = place
    if line == NOWHERE:
        return f"ERROR: <input>:{line}:{column + 1}: {text}"
    shown = lines[line - 1].replace("\t", " ")
    dots = "".join("．" if _is_wide(character) else "." for character in shown[:column]).ljust(column, ".")
    caret = "＾" if column < len(shown) and _is_wide(shown[column]) else "^"
    return f"ERROR: <input>:{line}:{column + 1}: {text}\n | {shown}\n | {dots}{caret}"


def _is_wide(character: str) -> bool:
    return len(character.encode("utf-8", "surrogatepass")) > 1
