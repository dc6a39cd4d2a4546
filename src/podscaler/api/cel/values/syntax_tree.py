"""Syntax tree of expressions.

Made by `parsing` (which expands macros), type-checked by `checking`, compiled to closures by `planning`. `offset` is
the place of issues about the node: an operator, an opening parenthesis, the beginning of a name.

Source: the abstract syntax of the CEL specification.
"""

from dataclasses import dataclass
from typing import Any

RESULT = "@result"
"""The accumulator variable of comprehensions; no expression can name it."""


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant."""

    offset: int
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Ident:
    """A variable or the name of a type."""

    offset: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    """A member by name; `is_test` for `has(...)`."""

    offset: int
    operand: "Node"
    field: str
    is_test: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A function, a method (with a target) or an operator (`_+_`)."""

    offset: int
    function: str
    args: tuple["Node", ...]
    target: "Node | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral:
    """`[a, ?b]`; `optional` has the indices of the elements that may be absent."""

    offset: int
    elements: tuple["Node", ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class MapEntry:
    """One `key: value` of a map, or of a message (the key is a literal name)."""

    offset: int
    key: "Node"
    value: "Node"
    is_optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MapLiteral:
    """`{key: value}`, or a message if it has a name."""

    offset: int
    entries: tuple[MapEntry, ...]
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension:
    """The expansion of a macro over a list or map.

    Attributes:
        offset: the macro's parenthesis.
        kind: `all`, `exists`, `exists_one`, `list`, `map`, `entries` or `bind`.
        source: the list or map to iterate over; unused for `bind`.
        names: one variable (element or key) or two (index or key, and value); for `bind` the second is the name.
        start, step, outcome: the fold over the variable RESULT, for the type checker; `bind` evaluates `outcome` with
            the name bound to `start`.
        test: the condition of elements, None for all; the predicate of the quantifiers.
        made: the expression for each element; key and value for `map`.
    """

    offset: int
    kind: str
    source: "Node"
    names: tuple[str, ...]
    start: "Node"
    step: "Node"
    outcome: "Node"
    test: "Node | None" = None
    made: tuple["Node", ...] = ()


Node = Literal | Ident | Select | Call | ListLiteral | MapLiteral | Comprehension
