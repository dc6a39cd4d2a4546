"""Compiles the syntax tree of a CEL expression to closures ("plans" it, in cel-go's words), which evaluate it.

    plan(parsing.parse("a + 1"))(Scope({"a": 2}, Budget()))      3

Called by `programs`. Each node becomes a function from a Scope to a value, which spends from the scope's budget. A new
operator: add it to `_OPERATORS` and to the signatures of `library.standard`; a new kind of comprehension to
`_EVALUATORS`, a new type of node to `plan`.

Rules: an error of one operand of `&&`, `||` or of one element of a quantifier is ignored where the others decide the
result; all other errors end the evaluation.

Source: the CEL specification, "Evaluation"; cel-go's messages.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from podscaler.api.cel.compile.checking import KEYWORDS, dotted_name
from podscaler.api.cel.library import environment, operators
from podscaler.api.cel.library.functions import Overload
from podscaler.api.cel.values.budget import CHARACTERS_PER_STEP, Budget
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
from podscaler.api.cel.values.values import OPTIONAL_NONE, OptionalValue, type_name


class Scope:
    """The variables by name, and the cost budget, of one evaluation."""

    __slots__ = ("budget", "values")

    def __init__(self, values: dict[str, Any], budget: Budget) -> None:
        self.values = values
        self.budget = budget


_KEY_TYPES = (str, int, float)
"""The Python types of values that can be keys of maps; bool and Uint are kinds of int."""

Step = Callable[[Scope], Any]
"""Evaluates one node. Raises EvaluationError, BudgetError."""


def plan(node: Node) -> Step:
    """The function that evaluates a checked tree."""
    match node:
        case Literal():
            value = node.value
            return lambda scope: value
        case Ident():
            return _plan_ident(node.name.removeprefix("."))
        case Select():
            return _plan_select(node)
        case Call():
            return _plan_call(node)
        case ListLiteral():
            return _plan_list(node)
        case MapLiteral():
            return _plan_map(node)
        case Comprehension():
            return _plan_comprehension(node)


def _plan_ident(name: str) -> Step:
    """A variable, else the type of that name (`int`)."""
    named_type = environment.TYPE_VALUES.get(name)

    def step(scope: Scope) -> Any:
        scope.budget.spend(1)
        if name in scope.values:
            return scope.values[name]
        if named_type is not None:
            return named_type
        raise EvaluationError(f"no such attribute(s): {name}")

    return step


def _plan_select(node: Select) -> Step:
    """A field, a test for it (`has(a.b)`), or a type with a dotted name."""
    named_type = environment.TYPE_VALUES.get(dotted_name(node))
    if named_type is not None:
        return lambda scope: named_type
    operand, field = plan(node.operand), node.field
    if node.is_test:
        return lambda scope: _has_member(operand(scope), field)

    def step(scope: Scope) -> Any:
        scope.budget.spend(1)
        return _get_member(operand(scope), field)

    return step


def _has_member(container: Any, field: str) -> bool:
    """`has(container.field)` for a map or object, also an optional one. Raises EvaluationError for other values."""
    if isinstance(container, OptionalValue):
        return container.is_present and _has_member(container.value, field)
    if isinstance(container, dict):
        return _find_key(container, field) is not None
    raise no_such_overload()


def _find_key(container: dict[Any, Any], field: Any) -> Any:
    """The key of a member: `field`, or its escaped form if it is a reserved word; None if there is no such member."""
    if field in container:
        return field
    escaped_field = KEYWORDS.get(field)
    return escaped_field if escaped_field in container else None


def _get_member(container: Any, field: Any) -> Any:
    """The value of a key of a map or object; of an OptionalValue an OptionalValue. Raises EvaluationError."""
    if isinstance(container, OptionalValue):
        return _get_optional_member(container, field)
    if isinstance(container, dict):
        if not isinstance(field, _KEY_TYPES):
            raise no_such_overload()
        key = _find_key(container, field)
        if key is None:
            raise EvaluationError(f"no such key: {_key_text(field)}")
        return container[key]
    raise no_such_overload()


def _key_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _get_element(container: Any, index: Any) -> Any:
    """`container[index]`, as `_get_member`; a list accepts whole numbers, `1.0` too. Raises EvaluationError."""
    if isinstance(container, OptionalValue):
        return _get_optional_member(container, index)
    if not isinstance(container, list):
        return _get_member(container, index)
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    if not isinstance(index, int) or isinstance(index, bool):
        raise no_such_overload()
    if 0 <= index < len(container):
        return container[index]
    raise EvaluationError(f"index out of bounds: {index}")


def _get_optional_member(container: Any, field: Any) -> OptionalValue:
    """`container[?field]` or `.?field`: a member or element that may be absent, also of an OptionalValue.

    Raises EvaluationError.
    """
    if isinstance(container, OptionalValue):
        if not container.is_present:
            return OPTIONAL_NONE
        container = container.value
    if isinstance(container, dict) and isinstance(field, _KEY_TYPES):
        key = _find_key(container, field)
        return OPTIONAL_NONE if key is None else OptionalValue(container[key])
    if isinstance(container, list) and isinstance(field, int):
        return OptionalValue(container[field]) if 0 <= field < len(container) else OPTIONAL_NONE
    raise no_such_overload()


def _plan_call(node: Call) -> Step:
    """An operator, a function, or a method. `sets.contains(a, b)` is a function, although it looks like a method."""
    if node.target is None and node.function in _OPERATORS:
        return _OPERATORS[node.function](*(plan(arg) for arg in node.args))
    prefix = dotted_name(node.target) if node.target is not None else ""
    dotted_function = f"{prefix}.{node.function}".removeprefix(".") if prefix else node.function.removeprefix(".")
    if node.target is None or (prefix and dotted_function in environment.FUNCTIONS):
        return _plan_function(dotted_function, [plan(arg) for arg in node.args], is_method=False)
    return _plan_function(node.function, [plan(node.target), *(plan(arg) for arg in node.args)], is_method=True)


def _plan_function(name: str, args: list[Step], *, is_method: bool) -> Step:
    """A call of the overload that fits the values; arguments cost as much as they are large."""
    overloads = environment.FUNCTIONS.get(name, ())
    candidates = [
        overload for overload in overloads if overload.is_method is is_method and len(overload.params) == len(args)
    ]

    def step(scope: Scope) -> Any:
        """Evaluate the arguments, then call the overload that fits their values."""
        arg_values = [arg(scope) for arg in args]
        budget = scope.budget
        budget.spend(1 + sum(_argument_cost(value) for value in arg_values))
        call = _find_overload(candidates, arg_values, name).call
        return call(budget, *arg_values) if getattr(call, "is_charged", False) else call(*arg_values)

    return step


def _argument_cost(arg_value: Any) -> int:
    """The steps that reading an argument costs: one for an element, or for CHARACTERS_PER_STEP of a text or bytes."""
    if isinstance(arg_value, str | bytes):
        return len(arg_value) // CHARACTERS_PER_STEP
    return len(arg_value) if isinstance(arg_value, list | dict) else 0


def _find_overload(overloads: list[Overload], values: list[Any], name: str) -> Overload:
    """The first overload whose types are those of the values; "" accepts every value. Raises EvaluationError."""
    actual_names = [type_name(value) for value in values]
    for overload in overloads:
        if all(
            not expected_name or expected_name == actual_name
            for expected_name, actual_name in zip(overload.type_names, actual_names, strict=True)
        ):
            return overload
    raise EvaluationError("no such overload: size") if name == "size" else no_such_overload()  # as cel-go words it


def _plan_list(node: ListLiteral) -> Step:
    """A list; optional elements that have no value are left out."""
    element_steps = [(plan(element), index in node.optional_indices) for index, element in enumerate(node.elements)]

    def step(scope: Scope) -> list[Any]:
        scope.budget.spend(len(element_steps))
        return [
            value
            for evaluate_element, is_optional in element_steps
            for value in _present_values(evaluate_element(scope), is_optional)
        ]

    return step


def _present_values(maybe_value: Any, is_optional: bool) -> tuple[Any, ...]:
    """One value, or none for an optional element (`?x`) without a value. Raises EvaluationError for another `?x`."""
    if not is_optional:
        return (maybe_value,)
    if not isinstance(maybe_value, OptionalValue):
        raise EvaluationError(f"cannot initialize optional list element from non-optional value {maybe_value}")
    return (maybe_value.value,) if maybe_value.is_present else ()


def _plan_map(node: MapLiteral) -> Step:
    """A map; optional entries that have no value are left out, and a repeated key is an error."""
    entry_steps = [(plan(entry.key), plan(entry.value), entry.is_optional) for entry in node.entries]

    def step(scope: Scope) -> dict[Any, Any]:
        entries_map: dict[Any, Any] = {}
        for evaluate_key, evaluate_value, is_optional in entry_steps:
            scope.budget.spend(1)
            key = _check_key(evaluate_key(scope))
            if key in entries_map:
                raise EvaluationError(f"Failed with repeated key {_key_text(key)}")
            for present_value in _present_values(evaluate_value(scope), is_optional):
                entries_map[key] = present_value
        return entries_map

    return step


def _check_key(key: Any) -> Any:
    """The key of a map literal. Raises EvaluationError for other types than string, int, uint and bool."""
    if isinstance(key, str | int | bool):
        return key
    raise EvaluationError("unsupported key type")


def _plan_logic(left: Step, right: Step, *, decisive: bool) -> Step:
    """`&&` (`decisive` is False) or `||` (True): an operand with the decisive value is the result."""

    def step(scope: Scope) -> bool:
        """The value by the rules of `&&` and `||`: the first error counts only if no operand is decisive."""
        scope.budget.spend(1)
        error: EvaluationError | None = None
        for side in (left, right):
            try:
                side_value = side(scope)
            except EvaluationError as found_error:
                error = error or found_error
                continue
            if side_value is decisive:
                return bool(decisive)
            if not isinstance(side_value, bool):
                error = error or no_such_overload()
        if error is not None:
            raise error
        return not decisive

    return step


def _check_bool(value: Any) -> bool:
    """The value. Raises EvaluationError unless it is a boolean."""
    if isinstance(value, bool):
        return value
    raise no_such_overload()


def _plan_conditional(condition: Step, if_true: Step, if_false: Step) -> Step:
    """`condition ? if_true : if_false`: only the chosen operand is evaluated."""

    def step(scope: Scope) -> Any:
        scope.budget.spend(1)
        return if_true(scope) if _check_bool(condition(scope)) else if_false(scope)

    return step


def _plan_not(operand: Step) -> Step:
    """The negation of a boolean."""

    def step(scope: Scope) -> bool:
        scope.budget.spend(1)
        return not _check_bool(operand(scope))

    return step


def _plan_binary(operation: Callable[[Any, Any], Any]) -> Callable[[Step, Step], Step]:
    """Plans an operator with two operands, which are both evaluated."""

    def plan_operator(left: Step, right: Step) -> Step:
        def step(scope: Scope) -> Any:
            scope.budget.spend(1)
            return operation(left(scope), right(scope))

        return step

    return plan_operator


def _plan_binary_with_budget(operation: Callable[[Any, Any, Budget], Any]) -> Callable[[Step, Step], Step]:
    """Plans an operator with two operands that spends from the budget itself."""

    def plan_operator(left: Step, right: Step) -> Step:
        return lambda scope: operation(left(scope), right(scope), scope.budget)

    return plan_operator


def _plan_order(is_swapped: bool, is_negated: bool) -> Callable[[Step, Step], Step]:
    """Plans `<`, `>`, `<=` or `>=`: `is_less` with swapped operands, with a negated result, or both."""

    def compare(left: Any, right: Any) -> bool:
        is_less = operators.is_less(right, left) if is_swapped else operators.is_less(left, right)
        return is_less is not is_negated

    return _plan_binary(compare)


_OPERATORS: dict[str, Callable[..., Step]] = {  # CEL's name of an operator -> from the steps of its operands to its own
    "_&&_": partial(_plan_logic, decisive=False),
    "_||_": partial(_plan_logic, decisive=True),
    "_?_:_": _plan_conditional,
    "!_": _plan_not,
    "-_": lambda operand: lambda scope: operators.negate(operand(scope)),
    "_==_": _plan_binary_with_budget(operators.equal),
    "_!=_": _plan_binary_with_budget(lambda left, right, budget: not operators.equal(left, right, budget)),
    "_<_": _plan_order(is_swapped=False, is_negated=False),
    "_>_": _plan_order(is_swapped=True, is_negated=False),
    "_<=_": _plan_order(is_swapped=True, is_negated=True),
    "_>=_": _plan_order(is_swapped=False, is_negated=True),
    "_+_": _plan_binary_with_budget(operators.add),
    "_-_": _plan_binary(operators.subtract),
    "_*_": _plan_binary(operators.multiply),
    "_/_": _plan_binary(operators.divide),
    "_%_": _plan_binary(operators.modulo),
    "@in": _plan_binary_with_budget(lambda item, container, budget: operators.contains(container, item, budget)),
    "_[_]": _plan_binary(_get_element),
    "_[?_]": _plan_binary(_get_optional_member),
    "_?._": _plan_binary(_get_optional_member),
}


def _plan_comprehension(node: Comprehension) -> Step:
    """A macro: its variables are set for each element, and restored at the end."""
    if node.kind == "bind":
        return _plan_bind(node.names[1], plan(node.start), plan(node.outcome))
    plan_of_test = plan(node.test) if node.test is not None else None
    plans_of_produced = [plan(produced_node) for produced_node in node.produced]
    evaluate = _EVALUATORS[node.kind]
    source, names = plan(node.source), node.names

    def step(scope: Scope) -> Any:
        iterations = _iterate(source(scope), names, scope)
        with _restored_at_end(scope, names):
            return evaluate(iterations, scope, plan_of_test, plans_of_produced)

    return step


def _plan_bind(name: str, value: Step, body: Step) -> Step:
    """A body in which `name` has a value, as `cel.bind(name, value, body)`."""

    def step(scope: Scope) -> Any:
        with _restored_at_end(scope, (name,)):
            scope.values[name] = value(scope)
            return body(scope)

    return step


@contextmanager
def _restored_at_end(scope: Scope, names: tuple[str, ...]) -> Iterator[None]:
    """Give the variables `names` the values of the outer scope again at the end, also after an error."""
    outer_values = {name: scope.values[name] for name in names if name in scope.values}
    try:
        yield
    finally:
        for name in names:
            scope.values.pop(name, None)
        scope.values.update(outer_values)


def _iterate(source: Any, names: tuple[str, ...], scope: Scope) -> Iterator[None]:
    """Set the loop variables `names` in `scope` to each element of `source`, and yield. Raises EvaluationError."""
    variables, budget = scope.values, scope.budget
    if isinstance(source, dict):
        pairs: Iterator[tuple[Any, Any]] = iter(list(source.items()))
    elif isinstance(source, list):
        pairs = iter(enumerate(source)) if len(names) == 2 else ((item, None) for item in source)
    else:
        raise EvaluationError(f"got '{_go_type_name(source)}', expected iterable type")
    for first_variable, second_variable in pairs:
        budget.spend(2)  # for an iteration, beside the steps of its expressions
        variables[names[0]] = first_variable
        if len(names) == 2:
            variables[names[1]] = second_variable
        yield


def _go_type_name(value: Any) -> str:
    name = type_name(value).rpartition(".")[2]
    return "types.Null" if value is None else f"types.{name.capitalize()}"


def _make_quantifier(decisive: bool) -> Callable[..., Any]:
    """`all` (decided by false) or `exists` (decided by true): errors of elements only count if no element decides."""

    def evaluate(iterations: Iterator[None], scope: Scope, test: Step, produced: list[Step]) -> bool:
        """Evaluate the test for each element until one decides; else the last error is raised."""
        del produced  # a quantifier produces nothing
        error: EvaluationError | None = None
        for _ in iterations:
            try:
                test_value = test(scope)
            except EvaluationError as found_error:
                error = found_error
                continue
            if test_value is decisive:
                return bool(decisive)
            if not isinstance(test_value, bool):
                error = no_such_overload()
        if error is not None:
            raise error
        return not decisive

    return evaluate


def _evaluate_exists_one(iterations: Iterator[None], scope: Scope, test: Step, produced: list[Step]) -> bool:
    """Whether the test holds for exactly one element; an error of any element ends the evaluation."""
    del produced  # a quantifier produces nothing
    return sum(_check_bool(test(scope)) for _ in iterations) == 1


def _evaluate_list(iterations: Iterator[None], scope: Scope, test: Step | None, produced: list[Step]) -> list[Any]:
    """The value of `produced[0]` for each element for which the test holds; without a test for all."""
    return [produced[0](scope) for _ in iterations if test is None or _check_bool(test(scope))]


def _evaluate_map(iterations: Iterator[None], scope: Scope, test: Step | None, produced: list[Step]) -> dict[Any, Any]:
    """The entries that `transformMap` or `transformMapEntry` produces; a repeated key is an error."""
    entries_map: dict[Any, Any] = {}
    for _ in iterations:
        if test is None or _check_bool(test(scope)):
            if len(produced) == 2:
                key_of_element, value_of_element = produced
                entries = {key_of_element(scope): value_of_element(scope)}
            else:
                (map_of_element,) = produced
                entries = map_of_element(scope)
            for key, value in entries.items():
                if key in entries_map:
                    raise EvaluationError(f"insert failed: key {_key_text(key)} already exists")
                entries_map[key] = value
    return entries_map


_EVALUATORS: dict[str, Callable[..., Any]] = {
    "all": _make_quantifier(decisive=False),
    "exists": _make_quantifier(decisive=True),
    "exists_one": _evaluate_exists_one,
    "list": _evaluate_list,
    "map": _evaluate_map,
    "entries": _evaluate_map,
}
"""By the kind of a comprehension: the function from its iterations, scope, test and produced plans to its value."""
