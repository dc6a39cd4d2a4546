"""Compiles the syntax tree of a CEL expression to closures ("plans" it, in cel-go's words), which evaluate it.

    planned(parsing.parsed("a + 1"))(Scope({"a": 2}, Budget()))      3

Called by `programs`. Each node becomes a function from a Scope to a value, which spends from the scope's budget. A new
operator: add it to `_OPERATORS`; a new kind of comprehension: add it to `_EVALUATORS`.

Rules: an error of one operand of `&&`, `||` or of one element of a quantifier is ignored where the others decide the
result; all other errors end the evaluation.

Source: the CEL specification, "Evaluation"; cel-go's messages.
"""

from collections.abc import Callable, Iterator
from typing import Any

from podscaler.api.cel.compile.checking import KEYWORDS, dotted_name
from podscaler.api.cel.library import environment, operators
from podscaler.api.cel.library.functions import Overload
from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import EvaluationError, no_such_overload
from podscaler.api.cel.values.syntax_tree import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)
from podscaler.api.cel.values.values import NONE, Optional, kind


class Scope:
    """The variables by name, and the cost budget, of one evaluation."""

    __slots__ = ("budget", "values")

    def __init__(self, values: dict[str, Any], budget: Budget) -> None:
        self.values = values
        self.budget = budget


Step = Callable[[Scope], Any]
"""Evaluates one node. Raises EvaluationError, BudgetError."""


def planned(node: Node) -> Step:
    """The function that evaluates a checked tree."""
    match node:
        case Literal():
            value = node.value
            return lambda scope: value
        case Ident():
            return _ident(node.name.removeprefix("."))
        case Select():
            return _select(node)
        case Call():
            return _call(node)
        case ListLiteral():
            return _list(node)
        case MapLiteral():
            return _map(node)
        case Comprehension():
            return _comprehension(node)


def _ident(name: str) -> Step:
    """A variable, else the type of that name (`int`)."""
    known_type = environment.TYPE_VALUES.get(name)

    def step(scope: Scope) -> Any:
        scope.budget.spend(1)
        if name in scope.values:
            return scope.values[name]
        if known_type is not None:
            return known_type
        raise EvaluationError(f"no such attribute(s): {name}")

    return step


def _select(node: Select) -> Step:
    """A field, a test for it (`has(a.b)`), or a type with a dotted name."""
    known_type = environment.TYPE_VALUES.get(dotted_name(node))
    if known_type is not None:
        return lambda scope: known_type
    operand, field = planned(node.operand), node.field
    if node.is_test:
        return lambda scope: _has(operand(scope), field)

    def step(scope: Scope) -> Any:
        scope.budget.spend(1)
        return _member(operand(scope), field)

    return step


def _has(value: Any, field: str) -> bool:
    if isinstance(value, Optional):
        return value.is_present and _has(value.value, field)
    if isinstance(value, dict):
        return field in value or KEYWORDS.get(field) in value
    raise no_such_overload()


def _member(value: Any, field: Any) -> Any:
    """The value of a key of a map or an object; fields that are reserved words are stored under another name."""
    if isinstance(value, Optional):
        return _optional_member(value, field)
    if isinstance(value, dict):
        if field in value:
            return value[field]
        if field in KEYWORDS and KEYWORDS[field] in value:
            return value[KEYWORDS[field]]
        raise EvaluationError(f"no such key: {_key_text(field)}")
    raise no_such_overload()


def _key_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _element(value: Any, index: Any) -> Any:
    """`value[index]`: a list accepts whole numbers, `1.0` too."""
    if isinstance(value, Optional):
        return _optional_member(value, index)
    if not isinstance(value, list):
        return _member(value, index)
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    if not isinstance(index, int) or isinstance(index, bool):
        raise no_such_overload()
    if 0 <= index < len(value):
        return value[index]
    raise EvaluationError(f"index out of bounds: {index}")


def _optional_member(value: Any, key: Any) -> Optional:
    """`value[?key]`: a member or element that may be absent, of a value that may itself be an Optional."""
    if isinstance(value, Optional):
        if not value.is_present:
            return NONE
        value = value.value
    if isinstance(value, dict):
        return Optional(value[key]) if key in value else NONE
    if isinstance(value, list) and isinstance(key, int):
        return Optional(value[key]) if 0 <= key < len(value) else NONE
    raise no_such_overload()


def _call(node: Call) -> Step:
    """An operator, a function, or a method. `math.abs(x)` is a function, although it looks like a method of `math`."""
    if node.target is None and node.function in _OPERATORS:
        return _OPERATORS[node.function](*(planned(arg) for arg in node.args))
    prefix = dotted_name(node.target) if node.target is not None else ""
    full = f"{prefix}.{node.function}".removeprefix(".") if prefix else node.function.removeprefix(".")
    if node.target is None or (prefix and full in environment.FUNCTIONS):
        return _function(full, [planned(arg) for arg in node.args], is_method=False)
    return _function(node.function, [planned(node.target), *(planned(arg) for arg in node.args)], is_method=True)


def _function(name: str, args: list[Step], *, is_method: bool) -> Step:
    """A call of the overload that fits the values; arguments cost as much as they are large."""
    overloads = environment.FUNCTIONS.get(name, ())
    fitting = [
        overload for overload in overloads if overload.is_method is is_method and len(overload.params) == len(args)
    ]

    def step(scope: Scope) -> Any:
        values = [arg(scope) for arg in args]
        budget = scope.budget
        budget.spend(1 + sum(_size(value) for value in values))
        call = _overload_for(fitting, values, name).call
        return call(budget, *values) if getattr(call, "is_charged", False) else call(*values)

    return step


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value) // 10
    return len(value) if isinstance(value, list | dict) else 0


def _overload_for(overloads: list[Overload], values: list[Any], name: str) -> Overload:
    """The first overload whose kinds of parameters are those of the values; an empty kind accepts every value."""
    kinds = [kind(value) for value in values]
    for overload in overloads:
        if all(
            not expected_kind or expected_kind == given
            for expected_kind, given in zip(overload.kinds, kinds, strict=True)
        ):
            return overload
    raise EvaluationError("no such overload: size") if name == "size" else no_such_overload()


def _list(node: ListLiteral) -> Step:
    """A list; optional elements that have no value are left out."""
    elements = [(planned(element), index in node.optional) for index, element in enumerate(node.elements)]

    def step(scope: Scope) -> list[Any]:
        scope.budget.spend(len(elements))
        return [value for element, is_optional in elements for value in _present(element(scope), is_optional)]

    return step


def _present(value: Any, is_optional: bool) -> tuple[Any, ...]:
    if not is_optional:
        return (value,)
    if not isinstance(value, Optional):
        raise EvaluationError(f"cannot initialize optional list element from non-optional value {value}")
    return (value.value,) if value.is_present else ()


def _map(node: MapLiteral) -> Step:
    """A map; optional entries that have no value are left out, and a repeated key is an error."""
    entries = [(planned(entry.key), planned(entry.value), entry.is_optional) for entry in node.entries]

    def step(scope: Scope) -> dict[Any, Any]:
        entries_map: dict[Any, Any] = {}
        for key, value, is_optional in entries:
            scope.budget.spend(1)
            name = _checked_key(key(scope))
            if name in entries_map:
                raise EvaluationError(f"Failed with repeated key {_key_text(name)}")
            for present_value in _present(value(scope), is_optional):
                entries_map[name] = present_value
        return entries_map

    return step


def _checked_key(key: Any) -> Any:
    if isinstance(key, str | int | bool):
        return key
    raise EvaluationError("unsupported key type")


def _and(left: Step, right: Step) -> Step:
    return _logic(left, right, decisive=False)


def _or(left: Step, right: Step) -> Step:
    return _logic(left, right, decisive=True)


def _logic(left: Step, right: Step, *, decisive: bool) -> Step:
    """`&&` (`decisive` is False) or `||` (True): an operand with the decisive value is the result."""

    def step(scope: Scope) -> bool:
        scope.budget.spend(1)
        error: EvaluationError | None = None
        for side in (left, right):
            try:
                value = side(scope)
            except EvaluationError as found:
                error = error or found
                continue
            if value is decisive:
                return bool(decisive)
            if not isinstance(value, bool):
                error = error or no_such_overload()
        if error is not None:
            raise error
        return not decisive

    return step


def _if(condition: Step, yes: Step, no: Step) -> Step:
    """`condition ? yes : no`: only the chosen operand is evaluated."""

    def step(scope: Scope) -> Any:
        scope.budget.spend(1)
        value = condition(scope)
        if not isinstance(value, bool):
            raise no_such_overload()
        return yes(scope) if value else no(scope)

    return step


def _not(operand: Step) -> Step:
    """The negation of a boolean."""

    def step(scope: Scope) -> bool:
        scope.budget.spend(1)
        value = operand(scope)
        if not isinstance(value, bool):
            raise no_such_overload()
        return not value

    return step


def _binary(operation: Callable[[Any, Any], Any]) -> Callable[[Step, Step], Step]:
    """Plans an operator with two operands, which are both evaluated."""

    def plan(left: Step, right: Step) -> Step:
        def step(scope: Scope) -> Any:
            scope.budget.spend(1)
            return operation(left(scope), right(scope))

        return step

    return plan


def _binary_with_budget(operation: Callable[[Any, Any, Budget], Any]) -> Callable[[Step, Step], Step]:
    def plan(left: Step, right: Step) -> Step:
        return lambda scope: operation(left(scope), right(scope), scope.budget)

    return plan


def _order(is_swapped: bool, is_negated: bool) -> Callable[[Step, Step], Step]:
    def compare(left: Any, right: Any) -> bool:
        return operators.is_less(*((right, left) if is_swapped else (left, right))) is not is_negated

    return _binary(compare)


_OPERATORS: dict[str, Callable[..., Step]] = {  # CEL's name of an operator -> from the steps of its operands to its own
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _if,
    "!_": _not,
    "-_": lambda operand: lambda scope: operators.negate(operand(scope)),
    "_==_": _binary_with_budget(operators.equal),
    "_!=_": _binary_with_budget(lambda one, other, budget: not operators.equal(one, other, budget)),
    "_<_": _order(is_swapped=False, is_negated=False),
    "_>_": _order(is_swapped=True, is_negated=False),
    "_<=_": _order(is_swapped=True, is_negated=True),
    "_>=_": _order(is_swapped=False, is_negated=True),
    "_+_": _binary_with_budget(operators.add),
    "_-_": _binary(operators.subtract),
    "_*_": _binary(operators.multiply),
    "_/_": _binary(operators.divide),
    "_%_": _binary(operators.modulo),
    "@in": _binary_with_budget(lambda item, container, budget: operators.contains(container, item, budget)),
    "_[_]": _binary(_element),
    "_[?_]": _binary(_optional_member),
    "_?._": _binary(_optional_member),
}


def _comprehension(node: Comprehension) -> Step:
    """A macro: its variables are set for each element, and restored at the end."""
    if node.kind == "bind":
        return _bind(node.names[1], planned(node.start), planned(node.outcome))
    test = planned(node.test) if node.test is not None else None
    produced = [planned(produced_node) for produced_node in node.produced]
    evaluate = _EVALUATORS[node.kind]
    source, names = planned(node.source), node.names

    def step(scope: Scope) -> Any:
        iterations = _iterate(source(scope), names, scope)
        before = {name: scope.values[name] for name in names if name in scope.values}
        try:
            return evaluate(iterations, scope, test, produced)
        finally:
            for name in names:
                scope.values.pop(name, None)
            scope.values.update(before)

    return step


def _bind(name: str, value: Step, body: Step) -> Step:
    """A body in which `name` has a value, as `cel.bind(name, value, body)`."""

    def step(scope: Scope) -> Any:
        before = dict(scope.values)
        scope.values[name] = value(scope)
        try:
            return body(scope)
        finally:
            scope.values.clear()
            scope.values.update(before)

    return step


def _iterate(source: Any, names: tuple[str, ...], scope: Scope) -> Iterator[None]:
    """Set the loop variables `names` in `scope` to each element of `source`; yields after each."""
    values, budget = scope.values, scope.budget
    if isinstance(source, dict):
        pairs: Iterator[tuple[Any, Any]] = iter(list(source.items()))
    elif isinstance(source, list):
        pairs = iter(enumerate(source)) if len(names) == 2 else ((item, None) for item in source)
    else:
        raise EvaluationError(f"got '{_go_name(source)}', expected iterable type")
    for first, second in pairs:
        budget.spend(2)
        values[names[0]] = first
        if len(names) == 2:
            values[names[1]] = second
        yield


def _go_name(value: Any) -> str:
    name = kind(value).rpartition(".")[2]
    return "types.Null" if value is None else f"types.{name.capitalize()}"


def _quantified(decisive: bool) -> Callable[..., Any]:
    """`all` (decided by false) or `exists` (decided by true): errors of elements only count if no element decides."""

    def evaluate(iterations: Iterator[None], scope: Scope, test: Step, produced: list[Step]) -> bool:
        del produced
        error: EvaluationError | None = None
        for _ in iterations:
            try:
                value = test(scope)
            except EvaluationError as found:
                error = found
                continue
            if value is decisive:
                return bool(decisive)
            if not isinstance(value, bool):
                error = no_such_overload()
        if error is not None:
            raise error
        return not decisive

    return evaluate


def _is_one_true(iterations: Iterator[None], scope: Scope, test: Step, produced: list[Step]) -> bool:
    del produced
    return sum(_is_true(test(scope)) for _ in iterations) == 1


def _is_true(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise no_such_overload()


def _collected(iterations: Iterator[None], scope: Scope, test: Step | None, produced: list[Step]) -> list[Any]:
    return [produced[0](scope) for _ in iterations if test is None or _is_true(test(scope))]


def _mapped(iterations: Iterator[None], scope: Scope, test: Step | None, produced: list[Step]) -> dict[Any, Any]:
    """The entries that `transformMap` and its like produce; a repeated key is an error."""
    entries_map: dict[Any, Any] = {}
    for _ in iterations:
        if test is None or _is_true(test(scope)):
            entries = {produced[0](scope): produced[1](scope)} if len(produced) == 2 else produced[0](scope)
            for key, value in entries.items():
                if key in entries_map:
                    raise EvaluationError(f"insert failed: key {_key_text(key)} already exists")
                entries_map[key] = value
    return entries_map


_EVALUATORS: dict[str, Callable[..., Any]] = {
    "all": _quantified(decisive=False),
    "exists": _quantified(decisive=True),
    "exists_one": _is_one_true,
    "list": _collected,
    "map": _mapped,
    "entries": _mapped,
}
