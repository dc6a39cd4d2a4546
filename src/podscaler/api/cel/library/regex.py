"""Regular expressions of rules: in time that is linear in the text, as upstream's are.

A table for `library`; `standard` has `matches`. `find` and `findAll` go through Python's matcher, which tries one way
after the other: they take patterns whose repetitions neither nest nor follow each other in ways that multiply.

Source: Kubernetes' regex library; RE2's syntax. Differs: patterns that Python cannot read, and those for `find` that
could take long, are errors.
"""

import re
from functools import lru_cache
from re import _constants as ops  # type: ignore[attr-defined]  # typeshed has no stub of the parser's opcodes
from re import _parser as parser  # type: ignore[attr-defined]  # nor of the parser
from typing import Any

from podscaler.api.cel.library.functions import table
from podscaler.api.cel.values.budget import Budget, charged
from podscaler.api.cel.values.faults import EvaluationError
from podscaler.api.machinery import linear_patterns, patterns

_WAYS_MAX = 5_000_000
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_CLASS = re.compile(rf"\[:({'|'.join(_CLASSES)}):\]")


@charged
def matches(budget: Budget, text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere in the text. Raises EvaluationError for a pattern that is none."""
    pattern = _with_classes(pattern)
    expression = _compiled(pattern)
    budget.spend(len(text) // 4)
    matcher = linear_patterns.matcher(pattern)
    if matcher is not None:
        return matcher(text)
    _check_ways(expression, text)
    return expression.search(text) is not None


def _with_classes(pattern: str) -> str:
    """The pattern with the classes of POSIX spelled out, which Python does not know."""
    return _CLASS.sub(lambda match: _CLASSES[match.group(1)], pattern) if "[:" in pattern else pattern


def fault(pattern: str) -> str:
    """What is wrong with a pattern in upstream's words, empty if nothing is."""
    pattern = _with_classes(pattern)
    if patterns.compiled(pattern) is not None or patterns.is_foreign(pattern):
        return ""
    return patterns.pattern_fault(pattern)


def _compiled(pattern: str) -> re.Pattern[str]:
    expression = patterns.compiled(pattern)
    if expression is None:
        raise EvaluationError(patterns.pattern_fault(pattern))
    return expression


def _find(text: str, pattern: str) -> str:
    expression = _for_finding(pattern, text)
    found = expression.search(text)
    return found.group() if found else ""


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    expression = _for_finding(pattern, text)
    found = [match.group() for match in expression.finditer(text)]
    return found if count < 0 else found[:count]


def _for_finding(pattern: str, text: str) -> re.Pattern[str]:
    expression = patterns.compiled(_with_classes(pattern))
    if expression is None:
        raise EvaluationError(f"Illegal regex: {patterns.pattern_fault(pattern)}")
    _check_ways(expression, text)
    return expression


def _check_ways(expression: re.Pattern[str], text: str) -> None:
    """Raise EvaluationError where the matcher might try too many ways."""
    repeats = _repeats(expression.pattern)
    if repeats is None or (len(text) + 1) ** (repeats + 1) > _WAYS_MAX:
        raise EvaluationError("this server cannot bound the time of this regular expression on this text")


@lru_cache(maxsize=256)
def _repeats(pattern: str) -> int | None:
    """How many unbounded repetitions a pattern has, None if they nest."""
    return _count(parser.parse(pattern), is_inside=False)


def _count(nodes: Any, *, is_inside: bool) -> int | None:
    total = 0
    for operation, argument in nodes:
        found = _count_node(operation, argument, is_inside=is_inside)
        if found is None:
            return None
        total += found
    return total


def _count_node(operation: Any, argument: Any, *, is_inside: bool) -> int | None:
    if operation in (ops.MAX_REPEAT, ops.MIN_REPEAT):
        if is_inside and argument[1] > 1:
            return None
        below = _count(argument[2], is_inside=argument[1] > 1)
        return None if below is None else below + (argument[1] > 1)
    if operation is ops.SUBPATTERN:
        return _count(argument[3], is_inside=is_inside)
    if operation is ops.BRANCH:
        below_each = [_count(choice, is_inside=is_inside) for choice in argument[1]]
        if is_inside or any(one is None for one in below_each):
            return None
        return sum(one or 0 for one in below_each)
    return 0


FUNCTIONS = table(
    {
        "string.find(string) -> string": _find,
        "string.findAll(string) -> list<string>": _find_all,
        "string.findAll(string, int) -> list<string>": _find_all,
    }
)
