"""Patterns of RE2, the regular expressions of Go: reading, matching and refusing them.

Patterns stand in the schemas of custom resources and in CEL expressions.

Source: RE2's syntax (documentation of Go's package regexp/syntax).
Differs: patterns are read by Python, which reads RE2's syntax except for Unicode classes (`\\pL`) and flags in the
middle; what it cannot read for that reason matches everything. Patterns with flags are matched by Python, too.
"""

import re
from functools import lru_cache

from podscaler.api.machinery import linear_patterns


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """The pattern, None where it cannot be read."""
    try:
        return re.compile(_translated(pattern))
    except re.error:
        return None


def is_foreign(pattern: str) -> bool:
    """Whether a pattern uses what RE2 has and Python has not: it is kept, and not matched."""
    return r"\p" in pattern.lower() or "(?" in pattern[1:]


def _translated(pattern: str) -> str:
    text = pattern.replace(r"\z", r"\Z")
    for name, characters in _CLASSES.items():
        text = text.replace(f"[:{name}:]", characters)
    return text


def pattern_fault(pattern: str) -> str:
    """Why a pattern cannot be read, much as Go words it."""
    try:
        re.compile(_translated(pattern))
    except re.error as error:
        text = _GO_WORDS.get(error.msg, error.msg)
        return f"error parsing regexp: {text}: `{pattern}`"
    return ""


def definition_fault(pattern: str) -> str:
    """Why RE2 cannot read a pattern, as Go words it; empty where it can, or where only Python cannot."""
    refused = _only_in_python(pattern)
    if refused:
        return f"error parsing regexp: {refused}"
    return "" if is_foreign(pattern) else pattern_fault(pattern)


def _only_in_python(pattern: str) -> str:
    """What a pattern has that RE2 refuses and Python reads: looking around, references, possessive repetition."""
    for found in _TOKENS.finditer(pattern):
        token = found.group()
        if token.startswith("(?<"):
            return f"invalid named capture: `{pattern[found.start() :]}`"
        if token.startswith("(?"):
            return f"invalid or unsupported Perl syntax: `{token}`"
        if token[0] == "\\" and token[1] in "123456789":
            return f"invalid escape sequence: `{token}`"
        if token[0] in "*+?":
            return f"invalid nested repetition operator: `{token}`"
    return ""


_TOKENS = re.compile(
    r"""
    \\.                                          # an escape, or a reference
    | \[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]       # a class, in which nothing else means anything
    | \(\?(?:[=!>\#(]|<[=!])                      # what looks around, and other groups of Perl's
    | [*+?]\+                                     # repetition that gives nothing back
    """,
    re.VERBOSE | re.DOTALL,
)

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
"""The named classes of RE2, as they stand in brackets."""

_GO_WORDS = {
    "missing ), unterminated subpattern": "missing closing )",
    "unbalanced parenthesis": "unexpected )",
    "unterminated character set": "missing closing ]",
    "nothing to repeat": "missing argument to repetition operator",
}


def matches(pattern: str, value: str) -> bool:
    """Whether RE2 would find the pattern in the value; True where the pattern cannot be read."""
    matcher = linear_patterns.matcher(_translated(pattern))
    if matcher is not None:
        return matcher(value)
    expression = compiled(pattern)
    return expression is None or _found(expression, pattern, value)


def _found(expression: re.Pattern[str], pattern: str, value: str) -> bool:
    """Go's `$` is the end of the text, Python's also the place before a last line break."""
    if pattern.endswith("$") and value.endswith("\n") and not pattern.endswith("\\$"):
        return re.search(f"{pattern[:-1]}\\Z", value) is not None
    return expression.search(value) is not None
