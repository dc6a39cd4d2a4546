"""Defines the exceptions of the evaluation of CEL expressions.

Raised by `planning`, by operators and by functions of the library; callers of programs handle both. `&&`, `||` and the
quantifiers (`all`, `exists`) ignore an EvaluationError of one operand where another one decides the result:
`false && 1/0 == 0` is false.
"""


class EvaluationError(Exception):
    """The expression has no value; str() is the message of cel-go (`division by zero`)."""


class BudgetError(Exception):
    """The cost budget is exceeded; no operator ignores it."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload() -> EvaluationError:
    """The error of an operator or function that does not accept values of these types."""
    return EvaluationError("no such overload")
