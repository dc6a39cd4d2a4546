"""Overloads of functions: their signatures and implementations.

Each library (`standard`, `strings`, `lists`, ...) makes a table with `table`; `checking` reads the signatures,
`planning` calls the overload that fits the values.

A signature is `name(int, list<T>) -> bool` for a function and `string.name(int) -> bool` for a method; single capital
letters are type parameters. Functions with a dot in their name follow a colon:
`:sets.contains(list<T>, list<T>) -> bool`.

Invariants: a function gets as many values as it has parameters, of their kinds; it raises only EvaluationError and
BudgetError; functions whose cost is not linear in their arguments are `charged` and spend from the budget.
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
_OPAQUE = {
    "Quantity": "kubernetes.Quantity",
    "URL": "kubernetes.URL",
    "IP": "net.IP",
    "CIDR": "net.CIDR",
    "Semver": "kubernetes.Semver",
    "Format": "kubernetes.NamedFormat",
}
KINDS = {
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "null": "null_type",
}
"""The names of the types of values where the type checker has other names."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature with its implementation.

    Attributes:
        name: of the function.
        is_method: whether the first parameter is the target.
        params: types of the arguments.
        result: type of the returned value.
        kinds: the kinds of values that `params` take; empty for any.
        call: the implementation.
    """

    name: str
    is_method: bool
    params: tuple[Type, ...]
    result: Type
    kinds: tuple[str, ...]
    call: Function


Table = Mapping[str, tuple[Overload, ...]]
"""The overloads of each function."""


def table(signatures: Mapping[str, Function]) -> dict[str, tuple[Overload, ...]]:
    """The overloads of a library by function name. Raises ValueError for a malformed signature."""
    found: dict[str, tuple[Overload, ...]] = {}
    for signature, call in signatures.items():
        one = _overload(signature, call)
        found[one.name] = (*found.get(one.name, ()), one)
    return found


def joined(*tables: Table) -> dict[str, tuple[Overload, ...]]:
    """The overloads of several libraries by function name."""
    found: dict[str, tuple[Overload, ...]] = {}
    for each in tables:
        for name, overloads in each.items():
            found[name] = (*found.get(name, ()), *overloads)
    return found


def is_valid(parse: Function) -> Function:
    """The function that returns whether `parse` accepts its arguments: False where it raises EvaluationError."""

    def call(*args: Any) -> bool:
        try:
            parse(*args)
        except EvaluationError:
            return False
        return True

    return call


def _overload(signature: str, call: Function) -> Overload:
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(signature)
    is_dotted, head, inner, result = match.groups()
    target, _, name = ("", "", head) if is_dotted else head.rpartition(".")
    texts = ([target] if target else []) + _split(inner)
    params = tuple(_type(text) for text in texts)
    return Overload(name, bool(target), params, _type(result), tuple(_kind(one) for one in params), call)


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += (character == "<") - (character == ">")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _type(text: str) -> Type:
    name, _, inner = text.partition("<")
    if inner:
        params = tuple(_type(part) for part in _split(inner[:-1]))
        return Type(types.OPTIONAL if name == "optional" else name, params)
    if len(name) == 1:
        return Type(name, is_param=True)
    return Type(_OPAQUE.get(name, name))


def _kind(one: Type) -> str:
    return "" if one.is_param or one == types.DYN else KINDS.get(one.name, one.name)
