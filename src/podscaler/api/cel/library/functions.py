"""Functions of expressions: their signatures, and what they do.

The libraries (`standard`, `strings`, `lists`, ...) make a table each with `table`; `checking` reads the signatures,
`planning` calls what fits the values at hand.

A signature is `name(int, list<T>) -> bool` for a function and `string.name(int) -> bool` for a method; single capital
letters are type parameters. Functions with a dot in their name stand behind a colon:
`:sets.contains(list<T>, list<T>) -> bool`.

Invariants: a function gets as many values as it has parameters, of their kinds; it raises EvaluationError and nothing
else; work that grows faster than its arguments is charged to the budget that `Budget` arguments get.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from podscaler.api.cel.values import types
from podscaler.api.cel.values.types import Type

Function = Callable[..., Any]

_SIGNATURE = re.compile(r"(:?)([^(]*)\((.*)\) -> (.+)")
_NAMED = {
    each.name: each
    for each in (
        types.BOOL,
        types.INT,
        types.UINT,
        types.DOUBLE,
        types.STRING,
        types.BYTES,
        types.NULL,
        types.DYN,
        types.TIMESTAMP,
        types.DURATION,
    )
}
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
"""What values call the types that the type checker names differently."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature with what it does.

    Attributes:
        name: of the function.
        is_method: whether the first parameter is the target.
        params: types of the arguments.
        result: type of what it returns.
        kinds: the kinds of values that `params` take; empty for any.
        call: what it does.
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
    """The functions of a library by name; the same function may stand under several signatures."""
    found: dict[str, tuple[Overload, ...]] = {}
    for signature, call in signatures.items():
        one = _overload(signature, call)
        found[one.name] = (*found.get(one.name, ()), one)
    return found


def joined(*tables: Table) -> dict[str, tuple[Overload, ...]]:
    """Several libraries as one: overloads of the same name add up."""
    found: dict[str, tuple[Overload, ...]] = {}
    for each in tables:
        for name, overloads in each.items():
            found[name] = (*found.get(name, ()), *overloads)
    return found


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
    return _NAMED[name] if name in _NAMED else Type(_OPAQUE[name])


def _kind(one: Type) -> str:
    return "" if one.is_param or one == types.DYN else KINDS.get(one.name, one.name)
