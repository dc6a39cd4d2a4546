"""Makes tables of function overloads from signatures in text form.

    table({"string.contains(string) -> bool": implementation})

    {"contains": (Overload("contains", is_method=True, params=(STRING, STRING), result=BOOL, ...),)}

Each library (`standard`, `strings`, `lists`, ...) has such a table, FUNCTIONS. `checking` reads the types, `planning`
calls the overload that fits the values. A new type of Kubernetes in signatures: `_KUBERNETES_TYPES`.

Signatures: `name(int, list<T>) -> bool` is a function, `string.name(int) -> bool` a method of string. Single capital
letters are type parameters. A colon begins a function with a dot in its name:
`:sets.contains(list<T>, list<T>) -> bool`.

Contract of an implementation: it gets as many values as the overload has parameters, of their types; it raises only
EvaluationError and BudgetError. One whose cost is not linear in the size of its arguments is decorated `charged` and
spends from the budget.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from podscaler.api.cel.values import types
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.cel.values.types import Type

Function = Callable[..., Any]

_SIGNATURE = re.compile(r"(:?)([^(]*)\((.*)\) -> (.+)")
"""The groups of `string.indexOf(string, int) -> int`: "", `string.indexOf`, `string, int`, `int`."""
_KUBERNETES_TYPES = {
    "Quantity": "kubernetes.Quantity",
    "URL": "kubernetes.URL",
    "IP": "net.IP",
    "CIDR": "net.CIDR",
    "Semver": "kubernetes.Semver",
    "Format": "kubernetes.NamedFormat",
}
RUNTIME_NAMES = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration", "null": "null_type"}
"""Name of a type in signatures -> in values (`values.type_name`), where the two differ."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature with its implementation.

    Attributes:
        name: the name of the function or method.
        is_method: whether the first parameter is the value before the dot.
        params: the static types of the arguments.
        result: the static type of the returned value.
        type_names: for each parameter the type of values (`values.type_name`) that it takes; "" for any.
        call: the implementation.
    """

    name: str
    is_method: bool
    params: tuple[Type, ...]
    result: Type
    type_names: tuple[str, ...]
    call: Function


Table = Mapping[str, tuple[Overload, ...]]
"""Name of a function -> its overloads, in the order in which the type checker tries them."""


def table(signatures: Mapping[str, Function]) -> dict[str, tuple[Overload, ...]]:
    """The table of a library, from signatures with their implementations. Raises ValueError (malformed signature)."""
    overloads: dict[str, tuple[Overload, ...]] = {}
    for signature, call in signatures.items():
        overload = _parse_signature(signature, call)
        overloads[overload.name] = (*overloads.get(overload.name, ()), overload)
    return overloads


def join_tables(*tables: Table) -> dict[str, tuple[Overload, ...]]:
    """One table from those of several libraries."""
    overloads_by_name: dict[str, tuple[Overload, ...]] = {}
    for library_table in tables:
        for name, overloads in library_table.items():
            overloads_by_name[name] = (*overloads_by_name.get(name, ()), *overloads)
    return overloads_by_name


def accepts(parse: Function) -> Function:
    """The function whether `parse` accepts its arguments: False where it raises EvaluationError."""

    def call(*args: Any) -> bool:
        try:
            parse(*args)
        except EvaluationError:
            return False
        return True

    return call


def _parse_signature(signature: str, call: Function) -> Overload:
    """The overload of `list<T>.slice(int, int) -> list<T>`; a leading `:` means no target. Raises ValueError."""
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(signature)
    is_dotted, dotted_name, params_text, result_text = match.groups()
    target, _, name = ("", "", dotted_name) if is_dotted else dotted_name.rpartition(".")
    param_texts = ([target] if target else []) + _split_types(params_text)
    params = tuple(_parse_type(param_text) for param_text in param_texts)
    type_names = tuple(_runtime_name(param) for param in params)
    result = _parse_type(result_text)
    return Overload(name, is_method=bool(target), params=params, result=result, type_names=type_names, call=call)


def _split_types(types_text: str) -> list[str]:
    """The parts between commas outside of `<>`: `int, map<K, V>` has two."""
    type_texts, depth = [""], 0
    for character in types_text:
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and not depth:
            type_texts.append("")
        else:
            type_texts[-1] += character
    return [type_text.strip() for type_text in type_texts if type_text.strip()]


def _parse_type(type_text: str) -> Type:
    """The type of a text such as `list<int>`; a single letter is a type parameter."""
    name, _, args_text = type_text.partition("<")
    if args_text:
        type_args = tuple(_parse_type(arg_text) for arg_text in _split_types(args_text[:-1]))
        return Type(types.OPTIONAL if name == "optional" else name, type_args)
    if len(name) == 1:
        return Type(name, is_param=True)
    return Type(_KUBERNETES_TYPES.get(name, name))


def _runtime_name(cel_type: Type) -> str:
    """The entry of `Overload.type_names` for a parameter of that type."""
    return "" if cel_type.is_param or cel_type == types.DYN else RUNTIME_NAMES.get(cel_type.name, cel_type.name)
