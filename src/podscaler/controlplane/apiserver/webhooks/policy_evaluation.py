"""Evaluates the expressions of an admission policy for one write and one parameter object.

`admission_policies` calls `denials`, which reads the fields of the policy's spec that are evaluated here. Importing
this module imports the expression language, which takes a while.

Source: kube-apiserver's policy validator: the order of messages, and what counts as a failure of the policy.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import BudgetError, EvaluationError
from podscaler.api.cel.values.issues import CompileError
from podscaler.api.kinds.policy.admission_expressions import PolicyCompiler
from podscaler.api.resource.resources import Object

MESSAGE_MAX_BYTES: Final = 5 * 1024
"""A longer computed message is not used."""


@dataclass(frozen=True, slots=True)
class Denial:
    """A validation that failed.

    Attributes:
        message: for the client.
        reason: of the Status.
    """

    message: str
    reason: str = "Invalid"


class ExpressionFailure(Exception):
    """An expression cannot be evaluated; the text says why."""


class _ComposedVariables(dict[str, Any]):
    """The value of `variables` in expressions: each member is computed when it is read first.

    Args:
        names: of the composed variables.
        compute: the value of one. Raises EvaluationError, BudgetError.
    """

    def __init__(self, names: Iterable[str], compute: Callable[[str], Any]) -> None:
        super().__init__()
        self._names = frozenset(names)
        self._compute = compute

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._compute(name)
        return value


class _PolicyExpressions:
    """The expressions of a policy, evaluated with the variables of one write.

    A composed variable is one that `spec.variables` of the policy defines by an expression; its value is computed once.

    Args:
        spec: of the policy.
        variables: the values of `object`, `request` and so on, by name.
    """

    def __init__(self, spec: Object, variables: dict[str, Any]) -> None:
        self._variables = variables
        self._compiler = PolicyCompiler(
            has_params=spec.get("paramKind") is not None, is_composed=bool(spec.get("variables"))
        )
        self._composed_expressions: dict[str, str] = {}
        self._composed = _ComposedVariables(
            [variable["name"] for variable in spec.get("variables") or []], self._compute_composed
        )
        self._budget = Budget()
        for variable in spec.get("variables") or []:
            self._compiler.add_variable(variable["name"], variable["expression"])
            self._composed_expressions[variable["name"]] = variable["expression"]

    def evaluate(self, expression: str) -> Any:
        """The value of an expression. Raises ExpressionFailure."""
        try:
            return self._run(expression)
        except (EvaluationError, CompileError, BudgetError) as error:
            raise ExpressionFailure(f"expression '{expression}' resulted in error: {error}") from error

    def _run(self, expression: str) -> Any:
        """The value of an expression. Raises EvaluationError, CompileError, BudgetError."""
        variables = dict(self._variables)
        if self._composed_expressions:
            variables["variables"] = self._composed
        return self._compiler.compile(expression).run(variables, self._budget)

    def _compute_composed(self, name: str) -> Any:
        """The value of a composed variable. Raises EvaluationError, BudgetError."""
        try:
            return self._run(self._composed_expressions[name])
        except (EvaluationError, CompileError) as error:
            raise EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from error


def denials(spec: Object, variables: dict[str, Any]) -> list[Denial]:
    """The validations of a policy that a write fails; with failurePolicy Ignore without those that cannot be evaluated.

    Args:
        spec: of the policy.
        variables: `object`, `oldObject`, `request`, `namespaceObject`, `params`.
    """
    expressions = _PolicyExpressions(spec, variables)
    ignores_failures = spec["failurePolicy"] == "Ignore"
    try:
        if not _meets_conditions(spec.get("matchConditions") or [], expressions):
            return []
    except ExpressionFailure as failure:
        return [] if ignores_failures else [Denial(str(failure))]
    failed_validations = []
    for validation in spec.get("validations") or []:
        try:
            if expressions.evaluate(validation["expression"]) is not True:
                reason = validation.get("reason") or "Invalid"
                failed_validations.append(Denial(_denial_message(validation, expressions), reason))
        except ExpressionFailure as failure:
            if not ignores_failures:
                failed_validations.append(Denial(str(failure)))
    return failed_validations


def _meets_conditions(conditions: list[Object], expressions: _PolicyExpressions) -> bool:
    """Whether all match conditions are true; a false one outweighs a failure. Raises ExpressionFailure."""
    first_failure: ExpressionFailure | None = None
    for condition in conditions:
        try:
            if expressions.evaluate(condition["expression"]) is not True:
                return False
        except ExpressionFailure as failure:
            first_failure = first_failure or failure
    if first_failure is not None:
        raise first_failure
    return True


def _denial_message(validation: Object, expressions: _PolicyExpressions) -> str:
    """The message of a failed validation: that of `messageExpression`, else `message`, else the expression itself."""
    computed: Any = None
    if validation.get("messageExpression"):
        try:
            computed = expressions.evaluate(validation["messageExpression"])
        except ExpressionFailure:
            computed = None  # upstream falls back, too
    computed_message = computed.strip() if isinstance(computed, str) else ""
    if len(computed_message.encode()) > MESSAGE_MAX_BYTES or "\n" in computed_message:
        computed_message = ""
    fixed_message = (validation.get("message") or "").strip()
    return computed_message or fixed_message or f"failed expression: {validation['expression'].strip()}"
