"""Macros: calls whose arguments are not values but names and expressions, replaced while parsing.

Called by `parsing` for every call; what is no macro stays a call.

Source: the CEL specification, "Macros"; the documentation of cel-go's two-variable comprehensions, optional values and
lists.
"""

from collections.abc import Callable

from podscaler.api.cel.values.issues import Issue
from podscaler.api.cel.values.syntax import (
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
    """The arguments of a macro are not what it needs."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(text)
        self.issue = Issue(offset, text)


def expanded(offset: int, name: str, target: Node | None, args: Args) -> Node | None:
    """What a call becomes, None where it is no macro. Raises MacroError.

    Args:
        offset: of the call's parenthesis.
        name: of the function.
        target: what it is called on, None for a plain call.
        args: as they were parsed.
    """
    if target is None:
        return _has(offset, args[0]) if name == "has" and len(args) == 1 else None
    make = _MACROS.get((name, len(args)))
    return make(offset, target, args) if make is not None else None


def _has(offset: int, arg: Node) -> Node:
    if not isinstance(arg, Select) or arg.is_test:
        raise MacroError(arg.offset, "invalid argument to has() macro")
    return Select(offset, arg.operand, arg.field, is_test=True)


def _simple_name(node: Node) -> str:
    if isinstance(node, Ident) and not node.name.startswith("."):
        return node.name
    raise MacroError(node.offset, "argument must be a simple name")


def _identifier(node: Node) -> str:
    if isinstance(node, Ident) and not node.name.startswith("."):
        return node.name
    raise MacroError(node.offset, "argument is not an identifier")


def _names(args: Args) -> tuple[str, ...]:
    names = tuple(_identifier(arg) for arg in args)
    if names[0] == names[1]:
        raise MacroError(args[1].offset, f"duplicate variable name: {names[0]}")
    return names


def _fold(offset: int, kind: str, target: Node, names: tuple[str, ...], test: Node) -> Comprehension:
    """One of the quantifiers."""
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
        names = (_simple_name(args[0]),) if len(args) == 2 else _names(args[:2])
        return _fold(offset, kind, target, names, args[-1])

    return make


def _list_of(offset: int, target: Node, names: tuple[str, ...], test: Node | None, made: Node) -> Node:
    result = Ident(offset, RESULT)
    step: Node = Call(offset, "_+_", (result, ListLiteral(offset, (made,))))
    if test is not None:
        step = Call(offset, "_?_:_", (test, step, result))
    return Comprehension(offset, "list", target, names, ListLiteral(offset, ()), step, result, test, (made,))


def _map(offset: int, target: Node, args: Args) -> Node:
    name = _identifier(args[0])
    return _list_of(offset, target, (name,), args[1] if len(args) == 3 else None, args[-1])


def _filter(offset: int, target: Node, args: Args) -> Node:
    name = _identifier(args[0])
    return _list_of(offset, target, (name,), args[1], Ident(args[0].offset, name))


def _transform_list(offset: int, target: Node, args: Args) -> Node:
    return _list_of(offset, target, _names(args[:2]), args[2] if len(args) == 4 else None, args[-1])


def _map_of(offset: int, target: Node, args: Args, made: Args, kind: str) -> Node:
    result = Ident(offset, RESULT)
    names, test = _names(args[:2]), args[2] if len(args) == 4 else None
    step: Node = Call(offset, "cel.@mapInsert", (result, *made))
    if test is not None:
        step = Call(offset, "_?_:_", (test, step, result))
    return Comprehension(offset, kind, target, names, MapLiteral(offset, ()), step, result, test, made)


def _transform_map(offset: int, target: Node, args: Args) -> Node:
    key = Ident(args[0].offset, _identifier(args[0]))
    return _map_of(offset, target, args, (key, args[-1]), "map")


def _transform_entries(offset: int, target: Node, args: Args) -> Node:
    return _map_of(offset, target, args, (args[-1],), "entries")


def _bound(offset: int, name: str, value: Node, body: Node) -> Node:
    """`body` with a name for a value that is evaluated once."""
    nothing = ListLiteral(offset, ())
    return Comprehension(offset, "bind", nothing, (_UNUSED, name), value, Ident(offset, name), body)


def _opt_map(offset: int, target: Node, args: Args) -> Node:
    name = _variable(args[0], "optMap")
    value = Call(offset, "value", (), target)
    some = Call(offset, "optional.of", (_bound(offset, name, value, args[1]),))
    return _if_present(offset, target, some)


def _opt_flat_map(offset: int, target: Node, args: Args) -> Node:
    name = _variable(args[0], "optFlatMap")
    value = Call(offset, "value", (), target)
    return _if_present(offset, target, _bound(offset, name, value, args[1]))


def _variable(node: Node, macro: str) -> str:
    if isinstance(node, Ident) and not node.name.startswith("."):
        return node.name
    raise MacroError(node.offset, f"{macro}() variable name must be a simple identifier")


def _if_present(offset: int, target: Node, some: Node) -> Node:
    none = Call(offset, "optional.none", ())
    return Call(offset, "_?_:_", (Call(offset, "hasValue", (), target), some, none))


def _sort_by(offset: int, target: Node, args: Args) -> Node:
    if isinstance(target, Literal):
        text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.offset, text)
    items = Ident(offset, _SORTED)
    keys = _map(offset, items, args)
    return _bound(offset, _SORTED, target, Call(offset, "@sortByAssociatedKeys", (keys,), items))


_MACROS: dict[tuple[str, int], Callable[[int, Node, Args], Node]] = {
    ("all", 2): _quantifier("all"),
    ("all", 3): _quantifier("all"),
    ("exists", 2): _quantifier("exists"),
    ("exists", 3): _quantifier("exists"),
    ("exists_one", 2): _quantifier("exists_one"),
    ("exists_one", 3): _quantifier("exists_one"),
    ("existsOne", 2): _quantifier("exists_one"),
    ("existsOne", 3): _quantifier("exists_one"),
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_entries,
    ("transformMapEntry", 4): _transform_entries,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
    ("sortBy", 2): _sort_by,
}
