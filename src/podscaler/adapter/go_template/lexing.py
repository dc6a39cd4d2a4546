"""Divides a template into text and actions, and an action into tokens.

Called by `go_template.parsing`. `sum(<<.Series>>)` becomes the text `sum(`, an action with the token `.Series`, and the
text `)`.

Source: documentation of Go's package text/template (text and spaces, comments, arguments).
"""

import re
from dataclasses import dataclass

from podscaler.api.text import go_strings

LEFT, RIGHT = "<<", ">>"
_SPACE = " \t\r\n"
_COMMENT = re.compile(r"(- )?/\*.*?\*/( -)?>>", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
      | (?P<number>[+-]?[0-9]+)
      | (?P<field>(?:\.[A-Za-z_][A-Za-z0-9_]*)+)
      | (?P<variable>\$[A-Za-z0-9_]*)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<mark>:=|[|(),=.])""",
    re.VERBOSE,
)
_STRING_OR_END = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|>>')


class TemplateError(ValueError):
    """A template cannot be parsed or evaluated; str() says why."""


@dataclass(frozen=True, slots=True)
class TemplateToken:
    """A token of an action.

    Attributes:
        kind: "string", "number", "field", "variable", "word" or "mark".
        text: the token as it is written; of strings the value.
    """

    kind: str
    text: str


Piece = str | tuple[TemplateToken, ...]
"""A text, or the tokens of an action."""


def split(template_text: str) -> list[Piece]:
    """Text and actions in their order, without comments. Raises TemplateError."""
    pieces: list[Piece] = []
    position, is_trimmed = 0, False  # whether the action before `position` trims the text behind it
    while True:
        start = template_text.find(LEFT, position)
        literal = template_text[position:] if start < 0 else template_text[position:start]
        literal = literal.lstrip(_SPACE) if is_trimmed else literal
        if start < 0:
            return [*pieces, literal] if literal else pieces
        start += len(LEFT)
        if _trims_before(template_text[start : start + 2]):
            literal = literal.rstrip(_SPACE)
        if literal:
            pieces.append(literal)
        if comment := _COMMENT.match(template_text, start):
            position, is_trimmed = comment.end(), comment[2] is not None
            continue
        end = _end_of_action(template_text, start)
        action = template_text[start:end]
        is_trimmed = _trims_after(action)
        pieces.append(tuple(_tokens(_without_trim_markers(action))))
        position = end + len(RIGHT)


def _end_of_action(template_text: str, start: int) -> int:
    """The offset of the right delimiter. Raises TemplateError."""
    for match in _STRING_OR_END.finditer(template_text, start):
        if match[0] == RIGHT:
            return match.start()
    raise TemplateError("unclosed action")


def _trims_before(action: str) -> bool:
    """Whether an action begins with `- `, which trims the text before it."""
    return action[:1] == "-" and action[1:2] in tuple(_SPACE)  # a tuple: the empty text is in every text


def _trims_after(action: str) -> bool:
    """Whether an action ends with ` -`, which trims the text behind it."""
    return action[-1:] == "-" and action[-2:-1] in tuple(_SPACE)


def _without_trim_markers(action: str) -> str:
    """The action without the markers (`- ` and ` -`) that trim the text around it."""
    unmarked = action[1:] if _trims_before(action) else action
    return unmarked[:-1] if _trims_after(unmarked) else unmarked


def _tokens(action: str) -> list[TemplateToken]:
    """The tokens of an action. Raises TemplateError."""
    tokens: list[TemplateToken] = []
    position = 0
    while position < len(action):
        match = _TOKEN.match(action, position)
        if match is None:
            raise TemplateError(f"unexpected {action[position]!r} in action {action.strip()!r}")
        position, kind = match.end(), match.lastgroup or ""
        if kind == "string":
            tokens.append(TemplateToken(kind, _unquoted(match[0])))
        elif kind != "space":
            tokens.append(TemplateToken(kind, match[0]))
    return tokens


def _unquoted(literal: str) -> str:
    """The value of a string literal. Raises TemplateError."""
    try:
        return go_strings.unquote(literal)
    except ValueError as error:
        raise TemplateError(str(error)) from error
