"""Errors of evaluation.

Raised by operators and functions; `&&`, `||` and the quantifiers ignore an EvaluationError where another operand
decides.
"""


class EvaluationError(Exception):
    """The expression has no value; str() is upstream's sentence."""


class BudgetError(Exception):
    """The budget is used up. No operator ignores it."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload() -> EvaluationError:
    """The error of an operator or function that does not accept values of these types."""
    return EvaluationError("no such overload")
