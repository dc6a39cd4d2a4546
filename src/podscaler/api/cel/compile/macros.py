"""Expands the macros of CEL: calls such as `items.all(x, x > 0)`, whose arguments are variable names and expressions.

    items.all(x, x > 0)       Comprehension(kind="all", source=items, names=("x",), test=x > 0, ...)
    has(self.a)               Select(self, "a", is_test=True)

Called by `parsing` for every call. A new macro: write a function from (offset, target, args) to a node, and add it to
`_MACROS`; if it loops in a new way, a `kind` of `syntax_tree.Comprehension` and its evaluation in `planning`.

Source: the CEL specification, "Macros"; the documentation of cel-go's two-variable comprehensions, optional values and
lists.
"""

from collections.abc import Callable
from dataclasses import replace

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
_SORTED_VARIABLE = "@__sortBy_input__"
"""The variable to which `sortBy` binds the list; `@` keeps expressions from naming it."""
_UNUSED_VARIABLE = "#unused"
"""The loop variable of a binding, which has no elements, as cel-go names it."""


class MacroError(ValueError):
    """The arguments of a macro are invalid; `issue` is the compile error."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(text)
        self.issue = Issue(offset, text)


def expand(offset: int, name: str, target: Node | None, args: Args) -> Node | None:
    """The expansion of a call; None if it is no macro, also for another number of arguments. Raises MacroError.

    Args:
        offset: where the call's parenthesis is.
        name: the name of the function or method.
        target: the value before the dot of a method; None for a function.
        args: the parsed arguments.
    """
    if target is None:
        return _expand_has(offset, args[0]) if name == "has" and len(args) == 1 else None
    expand_macro, arg_counts = _MACROS.get(name, (None, ()))
    if expand_macro is None or len(args) not in arg_counts:
        return None
    return expand_macro(offset, target, args)


def _expand_has(offset: int, arg: Node) -> Node:
    """`has(a.b)`, the only macro that is no method: a test for a member. Raises MacroError for another argument."""
    if not isinstance(arg, Select) or arg.is_test:
        raise MacroError(arg.offset, "invalid argument to has() macro")
    return Select(offset, arg.operand, arg.field, is_test=True)


def _variable_name(node: Node, error: str = "argument is not an identifier") -> str:
    """The name of a variable. Raises MacroError with `error` for any other expression."""
    if isinstance(node, Ident) and not node.name.startswith("."):
        return node.name
    raise MacroError(node.offset, error)


def _variable_names(args: Args) -> tuple[str, ...]:
    """The names of two loop variables. Raises MacroError if they are equal, or no names."""
    first, second = args
    first_name, second_name = _variable_name(first), _variable_name(second)
    if first_name == second_name:
        raise MacroError(second.offset, f"duplicate variable name: {first_name}")
    return first_name, second_name


def _quantifier_tree(offset: int, kind: str, target: Node, names: tuple[str, ...], test: Node) -> Comprehension:
    """The tree of `all`, `exists` or `exists_one` (`kind`) over `target`."""
    accumulated = Ident(offset, RESULT)
    if kind == "exists_one":  # counts the elements for which the test holds
        incremented = Call(offset, "_+_", (accumulated, Literal(offset, 1)))
        start, step = Literal(offset, 0), Call(offset, "_?_:_", (test, incremented, accumulated))
        outcome: Node = Call(offset, "_==_", (accumulated, Literal(offset, 1)))
    else:
        operator = "_&&_" if kind == "all" else "_||_"
        start, step = Literal(offset, kind == "all"), Call(offset, operator, (accumulated, test))
        outcome = accumulated
    return Comprehension(offset, kind, source=target, names=names, start=start, step=step, outcome=outcome, test=test)


def _make_quantifier_macro(kind: str) -> Callable[[int, Node, Args], Node]:
    """The function that expands `all`, `exists` or `exists_one` (`kind`)."""

    def expand_quantifier(offset: int, target: Node, args: Args) -> Node:
        """`target.all(x, test)`, or with two variables (index or key, and value) before the test."""
        *variables, test = args
        if len(variables) == 1:
            names: tuple[str, ...] = (_variable_name(variables[0], "argument must be a simple name"),)
        else:
            names = _variable_names(tuple(variables))
        return _quantifier_tree(offset, kind, target, names, test)

    return expand_quantifier


def _list_comprehension(offset: int, target: Node, names: tuple[str, ...], test: Node | None, produced: Node) -> Node:
    """The comprehension of `map`, `filter` and `transformList`: appends `produced` if the test (None: none) holds."""
    accumulated, start = Ident(offset, RESULT), ListLiteral(offset, ())
    step: Node = Call(offset, "_+_", (accumulated, ListLiteral(offset, (produced,))))
    if test is not None:
        step = Call(offset, "_?_:_", (test, step, accumulated))
    loop = Comprehension(offset, "list", source=target, names=names, start=start, step=step, outcome=accumulated)
    return replace(loop, test=test, produced=(produced,))


def _expand_map(offset: int, target: Node, args: Args) -> Node:
    """`target.map(x, expression)`, or `target.map(x, test, expression)`."""
    variable, *tests, expression = args
    test = tests[0] if tests else None
    return _list_comprehension(offset, target, (_variable_name(variable),), test, expression)


def _expand_filter(offset: int, target: Node, args: Args) -> Node:
    """`target.filter(x, test)`: produces the elements themselves."""
    variable, test = args
    name = _variable_name(variable)
    return _list_comprehension(offset, target, (name,), test, Ident(variable.offset, name))


def _expand_transform_list(offset: int, target: Node, args: Args) -> Node:
    """`target.transformList(i, x, expression)`, or `target.transformList(i, x, test, expression)`."""
    index_variable, variable, *tests, expression = args
    test = tests[0] if tests else None
    return _list_comprehension(offset, target, _variable_names((index_variable, variable)), test, expression)


def _map_comprehension(offset: int, target: Node, args: Args, produced: Args, kind: str) -> Node:
    """The comprehension of `transformMap` and `transformMapEntry`: inserts what is produced, if the test holds.

    Args:
        args: those of the macro: two variables, a test or none, the expression.
        produced: the key and the value, or a map of one entry; made of the expression.
        kind: of the comprehension: `map` or `entries`.
    """
    accumulated, start = Ident(offset, RESULT), MapLiteral(offset, ())
    key_variable, value_variable, *tests, _expression = args
    names, test = _variable_names((key_variable, value_variable)), tests[0] if tests else None
    step: Node = Call(offset, "cel.@mapInsert", (accumulated, *produced))
    if test is not None:
        step = Call(offset, "_?_:_", (test, step, accumulated))
    loop = Comprehension(offset, kind, source=target, names=names, start=start, step=step, outcome=accumulated)
    return replace(loop, test=test, produced=produced)


def _expand_transform_map(offset: int, target: Node, args: Args) -> Node:
    """`target.transformMap(k, v, value)`, or with a test before the value: keeps the keys, and produces the values."""
    key_variable, *_, produced_value = args
    key = Ident(key_variable.offset, _variable_name(key_variable))
    return _map_comprehension(offset, target, args, (key, produced_value), "map")


def _expand_transform_entries(offset: int, target: Node, args: Args) -> Node:
    """`target.transformMapEntry(k, v, map)`, or with a test before the map, which has one entry for each element."""
    *_, produced_map = args
    return _map_comprehension(offset, target, args, (produced_map,), "entries")


def _bind_variable(offset: int, name: str, value: Node, body: Node) -> Node:
    """`body` with `name` bound to a value, which is evaluated once: a loop over nothing, as cel-go expands it."""
    names, nothing, step = (_UNUSED_VARIABLE, name), ListLiteral(offset, ()), Ident(offset, name)
    return Comprehension(offset, "bind", source=nothing, names=names, start=value, step=step, outcome=body)


def _expand_opt_map(offset: int, target: Node, args: Args) -> Node:
    """`target.optMap(x, expression)`: an optional of the expression, if the target has a value."""
    variable, expression = args
    name = _variable_name(variable, "optMap() variable name must be a simple identifier")
    value = Call(offset, "value", (), target)
    optional_of_result = Call(offset, "optional.of", (_bind_variable(offset, name, value, expression),))
    return _if_present(offset, target, optional_of_result)


def _expand_opt_flat_map(offset: int, target: Node, args: Args) -> Node:
    """`target.optFlatMap(x, expression)`: the expression, which is optional, if the target has a value."""
    variable, expression = args
    name = _variable_name(variable, "optFlatMap() variable name must be a simple identifier")
    value = Call(offset, "value", (), target)
    return _if_present(offset, target, _bind_variable(offset, name, value, expression))


def _if_present(offset: int, target: Node, then: Node) -> Node:
    """`target.hasValue() ? then : optional.none()`."""
    none = Call(offset, "optional.none", ())
    return Call(offset, "_?_:_", (Call(offset, "hasValue", (), target), then, none))


def _expand_sort_by(offset: int, target: Node, args: Args) -> Node:
    """`list.sortBy(x, key)`: binds the list to a variable, as it is needed for the keys and for the values."""
    if isinstance(target, Literal):  # no list literal, which is a ListLiteral
        error_text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.offset, error_text)
    items = Ident(offset, _SORTED_VARIABLE)
    keys = _expand_map(offset, items, args)
    return _bind_variable(offset, _SORTED_VARIABLE, target, Call(offset, "@sortByAssociatedKeys", (keys,), items))


_MACROS: dict[str, tuple[Callable[[int, Node, Args], Node], tuple[int, ...]]] = {
    "all": (_make_quantifier_macro("all"), (2, 3)),
    "exists": (_make_quantifier_macro("exists"), (2, 3)),
    "exists_one": (_make_quantifier_macro("exists_one"), (2, 3)),
    "existsOne": (_make_quantifier_macro("exists_one"), (2, 3)),
    "map": (_expand_map, (2, 3)),
    "filter": (_expand_filter, (2,)),
    "transformList": (_expand_transform_list, (3, 4)),
    "transformMap": (_expand_transform_map, (3, 4)),
    "transformMapEntry": (_expand_transform_entries, (3, 4)),
    "optMap": (_expand_opt_map, (2,)),
    "optFlatMap": (_expand_opt_flat_map, (2,)),
    "sortBy": (_expand_sort_by, (2,)),
}
"""Name of a method -> the function that expands it, and the numbers of arguments with which it is a macro.

`existsOne` is a second name of `exists_one`.
"""
