"""The CEL expressions of admission: their variables, and the programs of match conditions.

    find_condition_error("object.spec.replicas < 5")      None
    find_condition_error("object.")                       "compilation failed: ERROR: <input>:1:8: ..."

Called by the validation of webhook configurations, and by `podscaler.controlplane.apiserver.webhooks.matching`
before it calls a webhook. `object`, `oldObject` and `namespaceObject` have no static type.

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
"""How many compiled expressions are kept."""

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
VARIABLES: dict[str, Type] = {
    "object": types.DYN,
    "oldObject": types.DYN,
    "namespaceObject": types.DYN,
    "request": _REQUEST,
}
"""The variables of every expression of admission."""


@lru_cache(PROGRAMS_MAX)
def condition(expression: str) -> Program:
    """The program of a match condition. Raises CompileError, also where its value is no bool."""
    program = programs.compiled(expression, VARIABLES)
    if program.result not in (types.BOOL, types.DYN):
        raise CompileError("must evaluate to bool")
    return program


def find_condition_error(expression: str) -> str | None:
    """The message why a match condition is invalid, None for a valid one."""
    try:
        program = programs.compiled(expression, VARIABLES)
    except CompileError as error:
        return f"compilation failed: {error}"
    return None if program.result in (types.BOOL, types.DYN) else "must evaluate to bool"
