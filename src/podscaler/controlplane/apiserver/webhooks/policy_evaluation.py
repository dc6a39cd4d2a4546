"""Evaluates the expressions of an admission policy for one write and one parameter object.

`admission_policies` calls `denials`. Importing this module imports the expression language, which takes a while.

Source: kube-apiserver's policy validator: the order of messages, and what counts as a failure of the policy.
"""

from typing import Any

from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.cel.values.issues import CompileError
from podscaler.api.kinds.policy.admission_expressions import PolicyCompiler
from podscaler.api.resource.resources import Object
from podscaler.controlplane.apiserver.webhooks.admission_policies import MESSAGE_MAX_BYTES, Denial, composed_names


class ExpressionFailure(Exception):
    """An expression cannot be evaluated; the text says why."""


class PolicyExpressions:
    """The expressions of a policy with the values of one write.

    Args:
        spec: of the policy.
        variables: name -> value.
    """

    def __init__(self, spec: Object, variables: dict[str, Any]) -> None:
        self._variables = variables
        self._compiler = PolicyCompiler(
            has_params=spec.get("paramKind") is not None, is_composed=bool(spec.get("variables"))
        )
        self._composed: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self._budget = Budget()
        for variable in spec.get("variables") or []:
            self._compiler.add_variable(variable["name"], variable["expression"])
            self._composed[variable["name"]] = variable["expression"]

    def value(self, expression: str) -> Any:
        """The value of an expression. Raises ExpressionFailure."""
        try:
            return self._run(expression)
        except (EvaluationError, CompileError) as error:
            raise ExpressionFailure(f"expression '{expression}' resulted in error: {error}") from error

    def _run(self, expression: str) -> Any:
        values = dict(self._variables)
        if self._composed:
            values["variables"] = {name: self._composed_value(name) for name in composed_names(expression)}
        return self._compiler.compile(expression).run(values, self._budget)

    def _composed_value(self, name: str) -> Any:
        if name not in self._values:
            try:
                self._values[name] = self._run(self._composed[name])
            except (EvaluationError, CompileError) as error:
                raise EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from error
        return self._values[name]


def denials(spec: Object, variables: dict[str, Any]) -> list[Denial]:
    """The validations of a policy that a write fails; with failurePolicy Ignore without those that cannot be evaluated.

    Args:
        spec: of the policy.
        variables: `object`, `oldObject`, `request`, `namespaceObject`, `params`.
    """
    expressions = PolicyExpressions(spec, variables)
    ignores_failures = spec["failurePolicy"] == "Ignore"
    try:
        if not _meets_conditions(spec.get("matchConditions") or [], expressions):
            return []
    except ExpressionFailure as failure:
        return [] if ignores_failures else [Denial(str(failure))]
    denied = []
    for validation in spec.get("validations") or []:
        try:
            if expressions.value(validation["expression"]) is not True:
                denied.append(Denial(_message(validation, expressions), validation.get("reason") or "Invalid"))
        except ExpressionFailure as failure:
            if not ignores_failures:
                denied.append(Denial(str(failure)))
    return denied


def _meets_conditions(conditions: list[Object], expressions: PolicyExpressions) -> bool:
    """Whether all match conditions hold; a false one outweighs a failure. Raises ExpressionFailure."""
    failure: ExpressionFailure | None = None
    for condition in conditions:
        try:
            if expressions.value(condition["expression"]) is not True:
                return False
        except ExpressionFailure as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return True


def _message(validation: Object, expressions: PolicyExpressions) -> str:
    """The message of a failed validation: computed, given, or the expression itself."""
    computed: Any = None
    if validation.get("messageExpression"):
        try:
            computed = expressions.value(validation["messageExpression"])
        except ExpressionFailure:
            computed = None  # upstream falls back, too
    text = computed.strip() if isinstance(computed, str) else ""
    if len(text.encode()) > MESSAGE_MAX_BYTES or "\n" in text:
        text = ""
    return text or (validation.get("message") or "").strip() or f"failed expression: {validation['expression'].strip()}"
