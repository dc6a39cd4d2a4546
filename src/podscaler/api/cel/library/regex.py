"""CEL functions with regular expressions: `'abc'.matches('b')`, `'a1 b2'.findAll('[0-9]')`.

`environment` joins FUNCTIONS, to which a new function is added, to the table of all functions (`functions` explains
signatures); `matches` is in the table of `standard`.

Source: the documentation of Kubernetes' CEL regex library.
"""

from podscaler.api.cel.library.functions import table
from podscaler.api.cel.values.budget import Budget, charged
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.machinery import re2_patterns
from podscaler.api.machinery.re2_patterns import Pattern


@charged
def matches(budget: Budget, text: str, pattern: str) -> bool:
    """Whether the pattern matches anywhere in the text. Raises EvaluationError for an invalid pattern, BudgetError."""
    expression = _compile(pattern)
    _spend_on_search(budget, expression, text)
    return expression.matches(text)


@charged
def _find_first(budget: Budget, text: str, pattern: str) -> str:
    """The text of the first match; empty without one. Raises as `_find_all`."""
    return "".join(_find_all(budget, text, pattern, 1))


@charged
def _find_all(budget: Budget, text: str, pattern: str, count: int = -1) -> list[str]:
    """The texts of the first `count` matches; -1 for all. Raises EvaluationError (invalid pattern), BudgetError."""
    expression = _compile(pattern, "Illegal regex: ")
    _spend_on_search(budget, expression, text)
    found_texts: list[str] = []
    for matched_text in expression.find_all(text) if count else ():
        found_texts.append(matched_text)
        if len(found_texts) == count:
            break
        budget.spend(1 + len(text) // 1000)  # the next search may read the rest of the text
    return found_texts


def _compile(pattern: str, prefix: str = "") -> Pattern:
    """The compiled pattern. Raises EvaluationError for an invalid one; `prefix` begins its message."""
    try:
        return re2_patterns.compile_cached(pattern)
    except re2_patterns.PatternError as error:
        raise EvaluationError(f"{prefix}{error}") from None


def _spend_on_search(budget: Budget, expression: Pattern, text: str) -> None:
    """Spend the cost of one search: a step for 4 characters, and for 1000 products of program size and text length.

    A step is a microsecond; the time of a slow search grows with program size times text length.
    """
    budget.spend(len(text) // 4 + len(text) * expression.program_size // 1000)


FUNCTIONS = table(
    {
        "string.find(string) -> string": _find_first,
        "string.findAll(string) -> list<string>": _find_all,
        "string.findAll(string, int) -> list<string>": _find_all,
    }
)
