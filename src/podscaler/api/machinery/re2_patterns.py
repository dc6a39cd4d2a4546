r"""Compiles and matches regular expressions in RE2's syntax, which is Go's, in time that is linear in the text.

    matches("^a+$", "aaa")      True
    find_error("(")             "error parsing regexp: missing closing ): `(`"

Called for the patterns in schemas of custom resources and in CEL expressions, which clients write: Python's `re` would
take exponential time for some. The library google-re2 is imported when the first pattern is compiled.

Source: documentation of Go's packages regexp/syntax (its error messages, too) and regexp (which matches are found).
Differs: Unicode classes have RE2's names, so `\p{Cn}`, `\p{LC}`, `\p{Letter}` and `\p{greek}`, which Go 1.25 added,
are invalid; expressions may nest more than 1,000 deep.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

_PROGRAM_BYTES = 8 << 20
_PROGRAM_BYTES_MAX = 64 << 20
"""RE2's memory for a compiled pattern with its match states: its default, and for patterns too large for that."""

_TOO_LARGE = "pattern too large"
_ESCAPES = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL)
"""A quoted part (`\\Q...\\E`), or an escape, whose character is group 1."""
_GO_ERRORS = {
    _TOO_LARGE: "expression too large",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
"""Error of the library -> of Go, where the two differ."""


class PatternError(ValueError):
    """A pattern is invalid; str() is the message of Go's package regexp."""


class Pattern:
    """One compiled pattern.

    Attributes:
        program_size: the number of instructions, to which the time of a slow match is proportional.
    """

    __slots__ = ("_search", "program_size")

    def __init__(self, expression: Any) -> None:
        self._search = expression.search
        self.program_size: int = expression.programsize

    def matches(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self._search(text.encode()) is not None

    def find_all(self, text: str) -> Iterator[str]:
        """The leftmost matches that do not overlap, without empty ones that directly follow a match."""
        encoded = text.encode()
        position, previous_end = 0, -1
        while position <= len(encoded):
            match = self._search(encoded, position)
            if match is None:
                return
            start, end = match.span()
            if start < end or start != previous_end:
                yield match.group().decode()
            previous_end = end
            position = end if end > position else _next_character(encoded, position)


def _next_character(encoded: bytes, position: int) -> int:
    """The offset after the UTF-8 character at `position`."""
    position += 1
    while position < len(encoded) and encoded[position] & 0xC0 == 0x80:
        position += 1
    return position


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Pattern:
    """The compiled pattern. Raises PatternError where it is invalid."""
    if r"\C" in pattern and any(match[1] == "C" for match in _ESCAPES.finditer(pattern)):
        raise PatternError(r"error parsing regexp: invalid escape sequence: `\C`")
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    message = ""
    for size in (_PROGRAM_BYTES, _PROGRAM_BYTES_MAX):
        options.max_mem = size
        try:
            return Pattern(re2.compile(pattern, options))
        except re2.error as error:
            message = error.args[0].decode()
        if not message.startswith(_TOO_LARGE):
            break
    raise PatternError(f"error parsing regexp: {_go_message(message, pattern)}")


def _go_message(message: str, pattern: str) -> str:
    """The message of Go's package regexp for the library's message, which is `CODE: PART`."""
    code, _, part = message.partition(": ")
    if code.startswith(_TOO_LARGE):
        return f"{_GO_ERRORS[_TOO_LARGE]}: `{pattern}`"
    if part in ("(?<=", "(?<!"):
        capture, end, _ = pattern[pattern.index(part) :].partition(">")
        return f"invalid named capture: `{capture}{end}`"
    return f"{_GO_ERRORS.get(code, code)}: `{part}`"


def find_error(pattern: str) -> str:
    """Why a pattern is invalid: Go's message; empty where it is valid."""
    try:
        compiled(pattern)
    except PatternError as error:
        return str(error)
    return ""


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text. Raises PatternError where the pattern is invalid."""
    return compiled(pattern).matches(text)
