"""The CEL expressions of admission: their variables and programs.

    PolicyCompiler().find_error("object.spec.replicas < 5", "bool")      None
    PolicyCompiler().find_error("object.", "bool")                       "compilation failed: ERROR: <input>:1:8: ..."

Called by the validation of webhook configurations and admission policies, and by
`podscaler.controlplane.apiserver.webhooks` when it evaluates them. `object`, `oldObject`, `namespaceObject` and
`params` have no static type.

Source: the API documentation of matchConditions. Differs: the variable `authorizer` is not declared;
`namespaceObject` has no static type.
"""

from functools import lru_cache

from podscaler.api.cel.compile import programs
from podscaler.api.cel.compile.programs import Program
from podscaler.api.cel.values import types
from podscaler.api.cel.values.issues import CompileError
from podscaler.api.cel.values.types import Type

PROGRAMS_MAX = 512
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
_TYPE_NAMES = {"null": "null_type"}
VARIABLES: dict[str, Type] = {
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
        self._composed: dict[str, Type] = {}

    def compile(self, expression: str) -> Program:
        """The program of an expression, which may use the variables that were added. Raises CompileError."""
        composed = tuple(self._composed.items()) if self._is_composed else None
        return _compiled(expression, self._has_params, composed)

    def add_variable(self, name: str, expression: str) -> str | None:
        """Add `variables.NAME`; returns why its expression is invalid, None for a valid one."""
        try:
            self._composed[name] = self.compile(expression).result
        except CompileError as error:
            self._composed[name] = types.DYN
            return f"compilation failed: {error}"
        return None

    def find_error(self, expression: str, *results: str) -> str | None:
        """Why an expression is invalid, None for a valid one; `results` are the types that its value may have."""
        try:
            program = self.compile(expression)
        except CompileError as error:
            return f"compilation failed: {error}"
        if program.result == types.DYN or program.result.name in results:
            return None
        names = [_TYPE_NAMES.get(result, result) for result in results]
        expected = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
        return f"must evaluate to {expected} but got {program.result}"


@lru_cache(PROGRAMS_MAX)
def _compiled(expression: str, has_params: bool, composed: tuple[tuple[str, Type], ...] | None) -> Program:
    variables = VARIABLES | ({"params": types.DYN} if has_params else {})
    if composed is not None:
        variables |= {"variables": types.object_of("kubernetes.variables", dict(composed))}
    return programs.compiled(expression, variables)


def condition(expression: str, *, has_params: bool = False) -> Program:
    """The program of a match condition. Raises CompileError, also if its value is not a bool."""
    program = _compiled(expression, has_params, None)
    if program.result not in (types.BOOL, types.DYN):
        raise CompileError("must evaluate to bool")
    return program
