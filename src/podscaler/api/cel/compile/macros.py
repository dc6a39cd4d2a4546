"""Expands the macros of CEL: calls such as `items.all(x, x > 0)`, whose arguments are variable names and expressions.

    items.all(x, x > 0)       Comprehension(kind="all", source=items, names=("x",), test=x > 0, ...)
    has(self.a)               Select(self, "a", is_test=True)

Called by `parsing` for every call. A new macro: write a function from (offset, target, args) to a node, and add it to
`_MACROS`.

Source: the CEL specification, "Macros"; the documentation of cel-go's two-variable comprehensions, optional values and
lists.
"""

from collections.abc import Callable

from podscaler.api.cel.values.issues import Issue
from podscaler.api.cel.values.syntax_tree import (
    RESULT,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)

Args = tuple[Node, ...]
_SORTED = "@__sortBy_input__"
_UNUSED = "#unused"


class MacroError(ValueError):
    """The arguments of a macro are invalid; `issue` is the compile error."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(text)
        self.issue = Issue(offset, text)


def expanded(offset: int, name: str, target: Node | None, args: Args) -> Node | None:
    """The expansion of a call; None if it is no macro. Raises MacroError.

    Args:
        offset: where the call's parenthesis is.
        name: the name of the function or method.
        target: the value before the dot of a method; None for a function.
        args: the parsed arguments.
    """
    if target is None:
        return _has(offset, args[0]) if name == "has" and len(args) == 1 else None
    expand, counts = _MACROS.get(name, (None, ()))
    return expand(offset, target, args) if expand is not None and len(args) in counts else None


def _has(offset: int, arg: Node) -> Node:
    if not isinstance(arg, Select) or arg.is_test:
        raise MacroError(arg.offset, "invalid argument to has() macro")
    return Select(offset, arg.operand, arg.field, is_test=True)


def _name(node: Node, error: str = "argument is not an identifier") -> str:
    """The name of a variable. Raises MacroError with `error` for any other expression."""
    if isinstance(node, Ident) and not node.name.startswith("."):
        return node.name
    raise MacroError(node.offset, error)


def _names(args: Args) -> tuple[str, ...]:
    names = tuple(_name(arg) for arg in args)
    if names[0] == names[1]:
        raise MacroError(args[1].offset, f"duplicate variable name: {names[0]}")
    return names


def _quantifier_tree(offset: int, kind: str, target: Node, names: tuple[str, ...], test: Node) -> Comprehension:
    """The tree of `all`, `exists` or `exists_one` (`kind`) over `target`."""
    result = Ident(offset, RESULT)
    if kind == "exists_one":
        more = Call(offset, "_+_", (result, Literal(offset, 1)))
        step: Node = Call(offset, "_?_:_", (test, more, result))
        outcome: Node = Call(offset, "_==_", (result, Literal(offset, 1)))
        return Comprehension(offset, kind, target, names, Literal(offset, 0), step, outcome, test)
    step = Call(offset, "_&&_" if kind == "all" else "_||_", (result, test))
    return Comprehension(offset, kind, target, names, Literal(offset, kind == "all"), step, result, test)


def _quantifier(kind: str) -> Callable[[int, Node, Args], Node]:
    def make(offset: int, target: Node, args: Args) -> Node:
        names = (_name(args[0], "argument must be a simple name"),) if len(args) == 2 else _names(args[:2])
        return _quantifier_tree(offset, kind, target, names, args[-1])

    return make


def _list_of(offset: int, target: Node, names: tuple[str, ...], test: Node | None, produced: Node) -> Node:
    result = Ident(offset, RESULT)
    step: Node = Call(offset, "_+_", (result, ListLiteral(offset, (produced,))))
    if test is not None:
        step = Call(offset, "_?_:_", (test, step, result))
    return Comprehension(offset, "list", target, names, ListLiteral(offset, ()), step, result, test, (produced,))


def _map(offset: int, target: Node, args: Args) -> Node:
    name = _name(args[0])
    return _list_of(offset, target, (name,), args[1] if len(args) == 3 else None, args[-1])


def _filter(offset: int, target: Node, args: Args) -> Node:
    name = _name(args[0])
    return _list_of(offset, target, (name,), args[1], Ident(args[0].offset, name))


def _transform_list(offset: int, target: Node, args: Args) -> Node:
    return _list_of(offset, target, _names(args[:2]), args[2] if len(args) == 4 else None, args[-1])


def _map_of(offset: int, target: Node, args: Args, produced: Args, kind: str) -> Node:
    """The comprehension of `transformMap` and its like: inserts what is produced, if the test holds."""
    result = Ident(offset, RESULT)
    names, test = _names(args[:2]), args[2] if len(args) == 4 else None
    step: Node = Call(offset, "cel.@mapInsert", (result, *produced))
    if test is not None:
        step = Call(offset, "_?_:_", (test, step, result))
    return Comprehension(offset, kind, target, names, MapLiteral(offset, ()), step, result, test, produced)


def _transform_map(offset: int, target: Node, args: Args) -> Node:
    key = Ident(args[0].offset, _name(args[0]))
    return _map_of(offset, target, args, (key, args[-1]), "map")


def _transform_entries(offset: int, target: Node, args: Args) -> Node:
    return _map_of(offset, target, args, (args[-1],), "entries")


def _bound(offset: int, name: str, value: Node, body: Node) -> Node:
    """`body` with `name` bound to a value, which is evaluated once."""
    nothing = ListLiteral(offset, ())
    return Comprehension(offset, "bind", nothing, (_UNUSED, name), value, Ident(offset, name), body)


def _opt_map(offset: int, target: Node, args: Args) -> Node:
    name = _name(args[0], "optMap() variable name must be a simple identifier")
    value = Call(offset, "value", (), target)
    optional_of_result = Call(offset, "optional.of", (_bound(offset, name, value, args[1]),))
    return _if_present(offset, target, optional_of_result)


def _opt_flat_map(offset: int, target: Node, args: Args) -> Node:
    name = _name(args[0], "optFlatMap() variable name must be a simple identifier")
    value = Call(offset, "value", (), target)
    return _if_present(offset, target, _bound(offset, name, value, args[1]))


def _if_present(offset: int, target: Node, then: Node) -> Node:
    none = Call(offset, "optional.none", ())
    return Call(offset, "_?_:_", (Call(offset, "hasValue", (), target), then, none))


def _sort_by(offset: int, target: Node, args: Args) -> Node:
    """`list.sortBy(x, key)`: binds the list to a variable, as it is needed for the keys and for the values."""
    if isinstance(target, Literal):
        text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.offset, text)
    items = Ident(offset, _SORTED)
    keys = _map(offset, items, args)
    return _bound(offset, _SORTED, target, Call(offset, "@sortByAssociatedKeys", (keys,), items))


_MACROS: dict[str, tuple[Callable[[int, Node, Args], Node], tuple[int, ...]]] = {
    "all": (_quantifier("all"), (2, 3)),
    "exists": (_quantifier("exists"), (2, 3)),
    "exists_one": (_quantifier("exists_one"), (2, 3)),
    "existsOne": (_quantifier("exists_one"), (2, 3)),
    "map": (_map, (2, 3)),
    "filter": (_filter, (2,)),
    "transformList": (_transform_list, (3, 4)),
    "transformMap": (_transform_map, (3, 4)),
    "transformMapEntry": (_transform_entries, (3, 4)),
    "optMap": (_opt_map, (2,)),
    "optFlatMap": (_opt_flat_map, (2,)),
    "sortBy": (_sort_by, (2,)),
}
"""Name of a method -> the function that expands it, and the numbers of arguments with which it is a macro."""
