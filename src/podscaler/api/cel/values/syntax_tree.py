"""Defines the node types of the syntax tree (AST) of CEL expressions.

    a.b + 1      Call(4, "_+_", (Select(1, Ident(0, "a"), "b"), Literal(6, 1)))

`parsing` makes the tree and expands macros, `checking` checks types, `planning` compiles it to closures. `offset`, in
characters from the beginning of the expression, is where compile errors about a node point to: the operator, the
opening parenthesis, the beginning of a name. A new node type: add it to `Node` and to the `match` statements of those
modules and of `literal_checks`. A new operator needs no node type: it is a Call.

Source: the abstract syntax of the CEL specification.
"""

from dataclasses import dataclass
from typing import Any

RESULT = "@result"
"""The variable in which a comprehension accumulates its result; `@` keeps expressions from naming it."""


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant; `value` is a Python value (`api.cel.values.values`)."""

    offset: int
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Ident:
    """A variable, or the name of a type (`int`); a leading dot in `name` means the outermost scope."""

    offset: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    """A member of an object by name: `operand.field`; with `is_test`, `has(operand.field)`."""

    offset: int
    operand: "Node"
    field: str
    is_test: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of a function, of an operator (by its CEL name: `_+_`, `!_`), or of a method of `target`."""

    offset: int
    function: str
    args: tuple["Node", ...]
    target: "Node | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral:
    """`[a, ?b]`; `optional_indices` has those of the elements after a question mark (here 1)."""

    offset: int
    elements: tuple["Node", ...]
    optional_indices: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class MapEntry:
    """One `key: value` of a map or message; `is_optional` for `?key: value`."""

    offset: int
    key: "Node"
    value: "Node"
    is_optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MapLiteral:
    """`{key: value}`, or a message `name{field: value}` if `name` is not empty; its keys are Literals."""

    offset: int
    entries: tuple[MapEntry, ...]
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension:
    """The expansion of a macro, such as `items.filter(x, x > 1)`: a loop over a list or map.

    The type checker reads the loop as a fold (`start`, `step`, `outcome`); `planning` evaluates it by `kind`.

    Attributes:
        offset: of the macro's parenthesis.
        kind: the result: `all`, `exists`, `exists_one` (bool), `list`, `map`, `entries` (a map from one-entry maps), or
            `bind` (no loop: `outcome` with a variable bound to `start`).
        source: the list or map to iterate over; unused for `bind`.
        names: the loop variables: one (element or key) or two (index or key, and value); for `bind` the second is the
            bound variable.
        start: the first value of RESULT.
        step: the value of RESULT after an element.
        outcome: the result, from the last value of RESULT.
        test: selects elements, None for all of them; of the quantifiers the predicate.
        produced: for `list` and `entries` one expression, for `map` those of key and value; of an element each.
    """

    offset: int
    kind: str
    source: "Node"
    names: tuple[str, ...]
    start: "Node"
    step: "Node"
    outcome: "Node"
    test: "Node | None" = None
    produced: tuple["Node", ...] = ()


Node = Literal | Ident | Select | Call | ListLiteral | MapLiteral | Comprehension
