"""What ends an evaluation without a value.

Raised by everything that evaluates; `&&`, `||` and the quantifiers may do without the part that failed.
"""


class EvaluationError(Exception):
    """The expression has no value; str() is upstream's sentence."""


class BudgetError(Exception):
    """More work than a rule may cost. No operator absorbs it."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload() -> EvaluationError:
    """The operator or function does not take values of these types."""
    return EvaluationError("no such overload")
