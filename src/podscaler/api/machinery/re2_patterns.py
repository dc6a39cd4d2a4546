r"""Compiles and matches regular expressions in RE2's syntax, which is Go's, in time that is linear in the text.

    matches("^a+$", "aaa")      True
    find_error("(")             "error parsing regexp: missing closing ): `(`"

Called for the patterns in schemas of custom resources, in CEL expressions and in rules of the adapter, which users
write: Python's `re` would take exponential time for some. The library google-re2 is imported when the first pattern is
compiled; an error that it words differently from Go is added to `_GO_ERRORS`.

Source: documentation of Go's packages regexp/syntax (its error messages, too) and regexp (which matches are found).
Differs: Unicode classes have RE2's names, so `\p{Cn}`, `\p{LC}`, `\p{Letter}` and `\p{greek}`, which Go 1.25 added,
are invalid; expressions may nest more than 1,000 deep.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

_PROGRAM_BYTES = 8 << 20
"""RE2's default memory for a compiled pattern with its match states."""
_PROGRAM_BYTES_MAX = 64 << 20
"""The memory of the second attempt, for a pattern that is too large for the default."""

_TOO_LARGE = "pattern too large"
"""The beginning of the library's message about a pattern that needs too much memory."""
_GROUP_REFERENCE = re.compile(r"\$\$|\$\{(\w+)\}|\$(\w+)")
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

    Args:
        re2_expression: the compiled expression of the library.

    Attributes:
        program_size: the number of instructions, to which the time of a slow match is proportional.
    """

    __slots__ = ("_search", "program_size")

    def __init__(self, re2_expression: Any) -> None:
        self._search = re2_expression.search
        self.program_size: int = re2_expression.programsize

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


class CapturingPattern:
    """One compiled pattern with its groups.

    Args:
        re2_expression: the compiled expression of the library.

    Attributes:
        group_count: the number of groups.
    """

    __slots__ = ("_expression", "_names", "group_count")

    def __init__(self, re2_expression: Any) -> None:
        self._expression = re2_expression
        self._names: dict[str, int] = {_as_text(name): number for name, number in re2_expression.groupindex.items()}
        self.group_count: int = re2_expression.groups

    def find_groups(self, text: str) -> Sequence[str] | None:
        """The leftmost match, then its groups, empty if a group has no part in it; None if nothing matches."""
        match = self._expression.search(text.encode())
        if match is None:
            return None
        return [match.group().decode(), *((group or b"").decode() for group in match.groups())]

    def find_group_number(self, name: str) -> int | None:
        """The number of a named group, from 1; None if there is none."""
        return self._names.get(name)

    def expand(self, template: str, groups: Sequence[str]) -> str:
        """The template with `$1`, `${1}`, `$name` and `${name}` replaced; unknown groups are empty, `$$` is a dollar.

        Args:
            template: a name goes as far as letters, digits and underscores do.
            groups: the result of `find_groups`.
        """

        def replace(match: re.Match[str]) -> str:
            if match[0] == "$$":
                return "$"
            name = match[1] or match[2]
            is_number = name.isascii() and name.isdigit()
            number = int(name) if is_number else self._names.get(name, len(groups))
            return groups[number] if number < len(groups) else ""

        return _GROUP_REFERENCE.sub(replace, template)


def _as_text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _next_character(encoded: bytes, position: int) -> int:
    """The offset after the UTF-8 character at `position`."""
    position += 1
    # Bytes of the form 10xxxxxx continue a character.
    while position < len(encoded) and encoded[position] & 0xC0 == 0x80:
        position += 1
    return position


@lru_cache(maxsize=256)
def compile_cached(pattern: str) -> Pattern:
    """The compiled pattern, from the cache if it was compiled before. Raises PatternError if it is invalid."""
    return Pattern(_compile(pattern, captures=False))


def compile_with_groups(pattern: str) -> CapturingPattern:
    """The compiled pattern with its groups. Raises PatternError if it is invalid."""
    return CapturingPattern(_compile(pattern, captures=True))


def _compile(pattern: str, *, captures: bool) -> Any:
    """The library's compiled expression; `captures`: whether it is used for groups. Raises PatternError."""
    if r"\C" in pattern and any(match[1] == "C" for match in _ESCAPES.finditer(pattern)):
        raise PatternError(r"error parsing regexp: invalid escape sequence: `\C`")
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    message = ""
    for max_memory_bytes in (_PROGRAM_BYTES, _PROGRAM_BYTES_MAX):
        options.max_mem = max_memory_bytes
        try:
            return re2.compile(pattern, options)
        except re2.error as error:
            message = error.args[0].decode()
        if not message.startswith(_TOO_LARGE):
            break
    raise PatternError(f"error parsing regexp: {_go_message(message, pattern)}")


def _go_message(message: str, pattern: str) -> str:
    """The message of Go's package regexp for the library's message, which is `CODE: PART OF THE PATTERN`."""
    error_code, _, pattern_part = message.partition(": ")
    if error_code.startswith(_TOO_LARGE):
        return f"{_GO_ERRORS[_TOO_LARGE]}: `{pattern}`"
    if pattern_part in ("(?<=", "(?<!"):
        capture, end, _ = pattern[pattern.index(pattern_part) :].partition(">")
        return f"invalid named capture: `{capture}{end}`"
    return f"{_GO_ERRORS.get(error_code, error_code)}: `{pattern_part}`"


def find_error(pattern: str) -> str:
    """Go's message about an invalid pattern; empty for a valid one."""
    try:
        compile_cached(pattern)
    except PatternError as error:
        return str(error)
    return ""


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text. Raises PatternError if the pattern is invalid."""
    return compile_cached(pattern).matches(text)
