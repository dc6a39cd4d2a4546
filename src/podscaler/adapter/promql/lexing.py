"""Divides a PromQL expression into tokens.

Called by `promql.parsing`. `sum(up{a="b"})` becomes the word `sum`, the mark `(`, the word `up`, the mark `{`, and so
on; the string token has the value `b`.

Source: Prometheus' documentation (querying basics, operators).
"""

import re
from dataclasses import dataclass

from podscaler.api.text import go_strings

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
      | (?P<duration>(?:[0-9]+(?:ms|[smhdwy]))+(?![A-Za-z0-9_]))
      | (?P<number>(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_]))
      | (?P<word>[A-Za-z_:][A-Za-z0-9_:]*)
      | (?P<mark>=~|!~|!=|==|>=|<=|[-+*/%^<>=(){}\[\],:@])""",
    re.VERBOSE,
)


class PromQLError(ValueError):
    """An expression cannot be parsed; str() says why."""


@dataclass(frozen=True, slots=True)
class PromToken:
    """A token of an expression.

    Attributes:
        kind: "string", "duration", "number", "word", "mark" or "end".
        text: the token as it is written; of strings the value.
    """

    kind: str
    text: str


END = PromToken("end", "")


def tokens(expression: str) -> list[PromToken]:
    """The tokens of an expression, END last. Raises PromQLError."""
    found_tokens: list[PromToken] = []
    position, in_brackets = 0, False  # between `[` and `]`, of a range or subquery
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise PromQLError(f"unexpected character {expression[position]!r} at {position}")
        kind, matched_text = match.lastgroup or "", match[0]
        if in_brackets and kind == "word" and matched_text.startswith(":"):
            matched_text = ":"  # the separator of a subquery, directly before a word
            kind = "mark"
        position += len(matched_text)
        if kind == "string":
            found_tokens.append(PromToken(kind, _unquoted(match[0])))
        elif kind != "space":
            found_tokens.append(PromToken(kind, matched_text))
        in_brackets = (in_brackets or matched_text == "[") and matched_text != "]"
    return [*found_tokens, END]


def _unquoted(literal: str) -> str:
    """The value of a string literal. Raises PromQLError."""
    try:
        return go_strings.unquote(literal)
    except ValueError as error:
        raise PromQLError(str(error)) from error
