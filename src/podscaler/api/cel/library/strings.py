"""CEL functions on strings: `'a,b'.split(',')`, `substring`, `indexOf`, `replace`, `trim`, `join`, `format`, ...

`environment` joins FUNCTIONS, to which a new function is added, to the table of all functions. Negative counts mean
"without limit".

Source: the documentation of cel-go's strings extension, version 2.
"""

import re

from podscaler.api.cel.library import formatting
from podscaler.api.cel.library.functions import table
from podscaler.api.cel.values.budget import CHARACTERS_PER_STEP, Budget, charged
from podscaler.api.cel.values.errors import EvaluationError

_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
# the characters of Unicode's White_Space, which Go's strings.TrimSpace removes
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_TRIMMED = re.compile(f"^[{_SPACE}]+|[{_SPACE}]+\\Z")


def _char_at(text: str, index: int) -> str:
    """The character; empty at the end of the text. Raises EvaluationError beyond it."""
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


@charged
def _index_of(budget: Budget, text: str, substring: str, start: int = 0) -> int:
    """The index of the first occurrence from `start` on; -1 without one. Raises EvaluationError, BudgetError."""
    budget.spend(len(text) // CHARACTERS_PER_STEP)
    if not substring:
        return _check_start(text, start) if start else 0
    _check_start(text, start)
    return text.find(substring, start)


def _check_start(text: str, start: int) -> int:
    """The index. Raises EvaluationError if it is not within the text or at its end."""
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    return start


def _last_index_of(text: str, substring: str, start: int | None = None) -> int:
    """The index of the last occurrence that begins at `start` at the latest; -1 without one. Raises EvaluationError."""
    if start is None:
        return text.rfind(substring)
    _check_start(text, start)
    return start if not substring else text.rfind(substring, 0, start + len(substring))


@charged
def _replace(budget: Budget, text: str, old: str, new: str, count: int = -1) -> str:
    """The text with the first `count` occurrences of `old` replaced. Raises BudgetError."""
    replaced_count = text.count(old) if count < 0 else min(count, text.count(old))
    budget.spend_on_text(len(text) + replaced_count * max(0, len(new) - len(old)))
    return text.replace(old, new, max(count, -1))


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    """The parts of a text, at most `count` (the last is the rest) if it is not negative.

    An empty separator separates each character.
    """
    if not count:
        return []
    if count == 1:
        return [text]
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    characters = list(text)
    if count < 0 or len(characters) <= count:
        return characters
    return [*characters[: count - 1], "".join(characters[count - 1 :])]


def _substring(text: str, start: int, end: int | None = None) -> str:
    """The characters from `start` to before `end`, or to the end of the text. Raises EvaluationError."""
    if end is None:
        return text[_check_start(text, start) :]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[_check_start(text, start) : _check_start(text, end)]


@charged
def _join(budget: Budget, texts: list[str], separator: str = "") -> str:
    """The texts with a separator between them. Raises EvaluationError for an item that is no text, BudgetError."""
    for text in texts:
        if not isinstance(text, str):
            raise EvaluationError(f"join: invalid input: {text}")
    budget.spend_on_text(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _quote(unquoted: str) -> str:
    """The text in double quotes, with escapes."""
    escapes = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    escapes |= {character: f"\\{character}" for character in '\\"'}
    return '"' + "".join(escapes.get(character, character) for character in unquoted) + '"'


@charged
def _format(budget: Budget, pattern: str, args: list[object]) -> str:
    formatted = formatting.format_values(pattern, args, budget)
    budget.spend_on_text(len(formatted))
    return formatted


FUNCTIONS = table(
    {
        "string.charAt(int) -> string": _char_at,
        "string.indexOf(string) -> int": _index_of,
        "string.indexOf(string, int) -> int": _index_of,
        "string.lastIndexOf(string) -> int": _last_index_of,
        "string.lastIndexOf(string, int) -> int": _last_index_of,
        "string.lowerAscii() -> string": lambda text: text.translate(_LOWER),
        "string.upperAscii() -> string": lambda text: text.translate(_UPPER),
        "string.replace(string, string) -> string": _replace,
        "string.replace(string, string, int) -> string": _replace,
        "string.split(string) -> list<string>": _split,
        "string.split(string, int) -> list<string>": _split,
        "string.substring(int) -> string": _substring,
        "string.substring(int, int) -> string": _substring,
        "string.trim() -> string": lambda text: _TRIMMED.sub("", text),
        "string.format(list<dyn>) -> string": _format,
        ":strings.quote(string) -> string": _quote,
        "list<string>.join() -> string": _join,
        "list<string>.join(string) -> string": _join,
    }
)
