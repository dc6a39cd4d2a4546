"""Compiles CEL expressions to programs, and runs them: the entry point of CEL.

    program = compiled("self.replicas <= 10", {"self": types.object_of("spec", {"replicas": types.INT})})
    program.run({"self": {"replicas": 3}}, Budget())      True

Called for the validation rules of custom resources (`podscaler.api.crd.rules`) and the expressions of admission
policies and webhooks. `compiled` parses, type-checks, validates literals and plans; a further phase is a call in
`_compile`.

Invariants: a program has no state, so it may be cached and shared; running it costs no more than its budget.

Source: the CEL specification; Kubernetes' use of it in x-kubernetes-validations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podscaler.api.cel.compile import checking, literal_checks, parsing, planning
from podscaler.api.cel.library import environment
from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import BudgetError
from podscaler.api.cel.values.issues import NOWHERE, CompileError, Issue, render_issues
from podscaler.api.cel.values.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """One type-checked expression.

    Attributes:
        source: the text of the expression.
        result: the type of its value.
        uses: the names of the variables that it reads.
        step: the closure that evaluates it.
        constant_error: the error of converting a constant (`int('x')`), with which every evaluation ends; else empty.
    """

    source: str
    result: Type
    uses: frozenset[str]
    step: planning.Step
    constant_error: str = ""

    def run(self, values: Mapping[str, Any], budget: Budget) -> Any:
        """The value of the expression for these variables. Raises EvaluationError, BudgetError (budget exceeded)."""
        try:
            return self.step(planning.Scope(dict(values), budget))
        except RecursionError:
            raise BudgetError from None


def compiled(source: str, variables: Mapping[str, Type]) -> Program:
    """The program of an expression that may use `variables` (name -> type). Raises CompileError with all errors."""
    try:
        return _compile(source, variables)
    except RecursionError:
        raise CompileError(render_issues(source, [Issue(NOWHERE, parsing.TOO_DEEP)])) from None


def _compile(source: str, variables: Mapping[str, Type]) -> Program:
    """The program of an expression. Raises CompileError for a syntax error, a type error or an invalid literal."""
    tree = parsing.parse(source)
    checker = checking.Checker(environment.FUNCTIONS, {**environment.TYPE_IDENTS, **variables})
    result_type = checker.type_of(tree)
    issues = checker.issues or literal_checks.issues(tree, checker.literal_parts)
    if issues:
        raise CompileError(render_issues(source, issues))
    uses, step = frozenset(checker.used_names & variables.keys()), planning.plan(tree)
    constant_error = literal_checks.constant_error(tree)
    return Program(source, result=result_type, uses=uses, step=step, constant_error=constant_error)
