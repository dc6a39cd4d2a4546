"""Compiles the CEL expressions of admission: declares their variables and checks the types of their results.

    PolicyCompiler().find_error("object.spec.replicas < 5", "bool")      None
    PolicyCompiler().find_error("object.", "bool")                       "compilation failed: ERROR: <input>:1:8: ..."

Called by the validation of webhook configurations and admission policies, and by
`podscaler.controlplane.apiserver.webhooks` when it evaluates them. `object`, `oldObject`, `namespaceObject` and
`params` have no static type. A new variable of all expressions: an entry of _VARIABLES.

Source: the API documentation of matchConditions. Differs: the variable `authorizer` is not declared;
`namespaceObject` has no static type.
"""

from functools import lru_cache

from podscaler.api.cel.compile import programs
from podscaler.api.cel.compile.programs import Program
from podscaler.api.cel.values import types
from podscaler.api.cel.values.issues import CompileError
from podscaler.api.cel.values.types import Type

_PROGRAMS_MAX = 512
"""How many compiled expressions the cache holds; the least recently used one is dropped first."""

_STRING, _STRINGS = types.STRING, types.list_of(types.STRING)
_KIND = types.object_of("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), _STRING))
_RESOURCE = types.object_of("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), _STRING))
_USER = types.object_of(
    "kubernetes.UserInfo",
    {"username": _STRING, "uid": _STRING, "groups": _STRINGS, "extra": types.map_of(_STRING, _STRINGS)},
)
_REQUEST = types.object_of(
    "kubernetes.AdmissionRequest",
    {
        **dict.fromkeys(("subResource", "requestSubResource", "name", "namespace", "operation"), _STRING),
        "kind": _KIND,
        "resource": _RESOURCE,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "userInfo": _USER,
        "dryRun": types.BOOL,
        "options": types.DYN,
    },
)
_SHOWN_TYPE_NAMES = {"null": "null_type"}
"""Type of a result -> its name in error messages, where kube-apiserver shows another one."""
_VARIABLES: dict[str, Type] = {
    "object": types.DYN,
    "oldObject": types.DYN,
    "namespaceObject": types.DYN,
    "request": _REQUEST,
}
"""The variables of every expression of admission."""


class PolicyCompiler:
    """Compiles the expressions of one policy or webhook: of match conditions, variables, validations and messages.

    Args:
        has_params: whether expressions may use the variable `params`.
        is_composed: whether expressions may use `variables`, which holds the variables that `add_variable` added.
    """

    def __init__(self, *, has_params: bool = False, is_composed: bool = False) -> None:
        self._has_params = has_params
        self._is_composed = is_composed
        self._variable_types: dict[str, Type] = {}

    def compile(self, expression: str) -> Program:
        """The program of an expression, which may use the variables that were added. Raises CompileError."""
        variable_types = tuple(self._variable_types.items()) if self._is_composed else None
        return _compile(expression, self._has_params, variable_types)

    def add_variable(self, name: str, expression: str) -> str | None:
        """Declares `variables.NAME`; returns the message about an invalid expression, None for a valid one.

        After an invalid one the variable is `dyn`, so that expressions with it have no further errors.
        """
        try:
            self._variable_types[name] = self.compile(expression).result
        except CompileError as error:
            self._variable_types[name] = types.DYN
            return f"compilation failed: {error}"
        return None

    def find_error(self, expression: str, *result_types: str) -> str | None:
        """The message about an invalid expression; None for a valid one.

        Args:
            result_types: names of the CEL types that the result may have, such as `bool`; besides them it may be `dyn`,
                whose type is known only when the expression is evaluated.
        """
        try:
            program = self.compile(expression)
        except CompileError as error:
            return f"compilation failed: {error}"
        if program.result == types.DYN or program.result.name in result_types:
            return None
        shown_names = [_SHOWN_TYPE_NAMES.get(name, name) for name in result_types]
        expected = shown_names[0] if len(shown_names) == 1 else f"one of [{' '.join(shown_names)}]"
        return f"must evaluate to {expected} but got {program.result}"


@lru_cache(_PROGRAMS_MAX)
def _compile(expression: str, has_params: bool, variable_types: tuple[tuple[str, Type], ...] | None) -> Program:
    """The program of an expression, from the cache if there is one. Raises CompileError.

    Args:
        has_params: whether the expression may use `params`.
        variable_types: (name, type) of the members of `variables`; None if the expression may not use it.
    """
    variables = _VARIABLES | ({"params": types.DYN} if has_params else {})
    if variable_types is not None:
        variables |= {"variables": types.object_of("kubernetes.variables", dict(variable_types))}
    return programs.compiled(expression, variables)


def compile_match_condition(expression: str, *, has_params: bool = False) -> Program:
    """The program of a match condition. Raises CompileError, also if its result is neither bool nor dyn."""
    program = _compile(expression, has_params, None)
    if program.result not in (types.BOOL, types.DYN):
        raise CompileError("must evaluate to bool")
    return program
