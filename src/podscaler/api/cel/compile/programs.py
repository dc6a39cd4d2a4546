"""Compiled expressions: the entry point of the package.

`compiled` parses, checks and plans an expression; the program evaluates any number of values.

Invariants: a program has no state, so it may be kept and shared; running it costs no more than its budget.

Source: the CEL specification; Kubernetes' use of it in rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podscaler.api.cel.compile import checking, literals, parsing, planning
from podscaler.api.cel.library import environment
from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import BudgetError
from podscaler.api.cel.values.issues import NOWHERE, CompileError, Issue, rendered
from podscaler.api.cel.values.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """One checked expression.

    Attributes:
        source: its text.
        result: the type of what it returns.
        uses: the variables that it names.
        step: the closure that evaluates it.
        fault: the error of a constant conversion, with which every evaluation ends; empty without.
    """

    source: str
    result: Type
    uses: frozenset[str]
    step: planning.Step
    fault: str = ""

    def run(self, values: Mapping[str, Any], budget: Budget) -> Any:
        """The value of the expression. Raises EvaluationError, and BudgetError when the budget is used up."""
        try:
            return self.step(planning.Scope(dict(values), budget))
        except RecursionError:
            raise BudgetError from None


def compiled(source: str, variables: Mapping[str, Type]) -> Program:
    """The program of an expression over variables of these types. Raises CompileError with all errors."""
    try:
        return _compiled(source, variables)
    except RecursionError:
        raise CompileError(rendered(source, [Issue(NOWHERE, parsing.TOO_DEEP)])) from None


def _compiled(source: str, variables: Mapping[str, Type]) -> Program:
    tree = parsing.parsed(source)
    checker = checking.Checker(environment.FUNCTIONS, {**environment.TYPE_IDENTS, **variables})
    result = checker.type_of(tree)
    issues = checker.issues or literals.issues(tree, checker.elements)
    if issues:
        raise CompileError(rendered(source, issues))
    used = frozenset(checker.used & variables.keys())
    return Program(source, result, used, planning.planned(tree), literals.constant_error(tree))
