"""CEL functions on lists, sets and optional values: `[3, 1].sort()`, `sets.contains([1], [])`, `optional.of(1)`.

`environment` joins FUNCTIONS, to which a new function is added, to the table of all functions; `functions` explains
signatures, and which exceptions implementations raise.

Source: Kubernetes' list library; the documentation of cel-go's lists extension (version 3), sets extension and optional
values.
"""

from collections.abc import Callable
from functools import cmp_to_key, partial
from itertools import pairwise
from typing import Any

from podscaler.api.cel.library import operators
from podscaler.api.cel.library.functions import Function, table
from podscaler.api.cel.values import numbers
from podscaler.api.cel.values.budget import Budget, charged
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.cel.values.values import OPTIONAL_NONE, Duration, OptionalValue, type_name

_RANGE_MAX = 1_000_000
"""The longest list that `lists.range` makes."""
# the types whose values `<` compares; functions such as `min` have an overload for each
_ORDERED_TYPES = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _is_sorted(items: list[Any]) -> bool:
    return not any(operators.is_less(later, earlier) for earlier, later in pairwise(items))


def _sum_function(zero: Any) -> Function:
    """The function `sum` of a type of numbers, or of durations, whose sum of no items is `zero`."""

    @charged
    def call(budget: Budget, items: list[Any]) -> Any:
        if not items:
            return zero
        total = items[0]  # not `zero`: a list of type dyn has items of any type
        for item in items[1:]:
            total = operators.add(total, item, budget)
        return total

    return call


def _find_extreme(items: list[Any], *, is_max: bool) -> Any:
    """The smallest or largest item; of equal ones the first. Raises EvaluationError without items."""
    if not items:
        raise EvaluationError(f"{'max' if is_max else 'min'} called on empty list")
    extreme_item = items[0]
    for item in items[1:]:
        is_more_extreme = operators.is_less(extreme_item, item) if is_max else operators.is_less(item, extreme_item)
        if is_more_extreme:
            extreme_item = item
    return extreme_item


@charged
def _index_of(budget: Budget, items: list[Any], element: Any) -> int:
    return next((index for index, item in enumerate(items) if operators.equal(item, element, budget)), -1)


@charged
def _last_index_of(budget: Budget, items: list[Any], element: Any) -> int:
    indexes = reversed(range(len(items)))
    return next((index for index in indexes if operators.equal(items[index], element, budget)), -1)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    """The items from `start` to before `end`. Raises EvaluationError for indexes out of range."""
    message_start = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise EvaluationError(f"{message_start}negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{message_start}start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"{message_start}list is length {len(items)}")
    return items[start:end]


@charged
def _flatten(budget: Budget, items: list[Any], depth: int = 1) -> list[Any]:
    """The items of nested lists, down to `depth` levels. Raises EvaluationError (negative depth), BudgetError."""
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flattened = list(items)
    for _ in range(depth):
        if not any(isinstance(item, list) for item in flattened):
            break
        budget.spend(sum(len(item) if isinstance(item, list) else 1 for item in flattened))
        flattened = [inner_item for item in flattened for inner_item in (item if isinstance(item, list) else [item])]
    return flattened


def _compare_values(left: Any, right: Any) -> int:
    """-1, 0 or 1, as `cmp_to_key` needs it."""
    return -1 if operators.is_less(left, right) else int(operators.is_less(right, left))


def _check_comparable(keys: list[Any]) -> None:
    """Raise EvaluationError unless all sort keys have the same type, and one that has an order."""
    if not keys:
        return
    if isinstance(keys[0], list | dict) or keys[0] is None:
        raise EvaluationError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")


def _sort(items: list[Any]) -> list[Any]:
    _check_comparable(items)
    return sorted(items, key=cmp_to_key(_compare_values))


def _compare_by_key(left: tuple[Any, Any], right: tuple[Any, Any]) -> int:
    return _compare_values(left[0], right[0])


_SORT_KEY_OF_PAIR = cmp_to_key(_compare_by_key)


def _sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    _check_comparable(keys)
    pairs = sorted(zip(keys, items, strict=True), key=_SORT_KEY_OF_PAIR)
    return [item for _, item in pairs]


@charged
def _range(budget: Budget, size: int) -> list[int]:
    """The numbers from 0 to `size` - 1. Raises EvaluationError (negative, or above _RANGE_MAX), BudgetError."""
    if size < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {size}")
    if size > _RANGE_MAX:
        raise EvaluationError(f"lists.range: size {size} exceeds maximum allowed ({_RANGE_MAX})")
    budget.spend(size)
    return list(range(size))


@charged
def _distinct(budget: Budget, items: list[Any]) -> list[Any]:
    """The items without repetitions, each where it is first; numbers of all types are equal by value."""
    budget.spend(len(items))
    first_items: dict[Any, Any] = {}
    for item in items:
        first_items.setdefault(operators.identity(item), item)
    return list(first_items.values())


def _set_function(compare: Callable[[set[Any], set[Any]], Any]) -> Function:
    """A function on two lists that are compared as sets."""

    @charged
    def call(budget: Budget, items: list[Any], others: list[Any]) -> bool:
        budget.spend(len(items) + len(others))
        return bool(compare(set(map(operators.identity, items)), set(map(operators.identity, others))))

    return call


def _is_zero(value: Any) -> bool:
    if isinstance(value, Duration):
        return not value.span_ns
    return value is None or (isinstance(value, bool | int | float | str | bytes | list | dict) and not value)


def _value_of_optional(optional: OptionalValue) -> Any:
    """The value of an OptionalValue. Raises EvaluationError if it has none."""
    if not optional.is_present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _unwrap_optionals(items: list[Any]) -> list[Any]:
    """The values of the optionals that have one. Raises EvaluationError for an item that is no OptionalValue."""
    for optional in items:
        if not isinstance(optional, OptionalValue):
            raise EvaluationError(f"value is not optional: {type_name(optional)}")
    return [optional.value for optional in items if optional.is_present]


def _kubernetes_list_library() -> dict[str, Function]:
    """The functions that Kubernetes has on lists, for each type with an order."""
    functions_by_name: dict[str, Function] = {}
    for element_type in _ORDERED_TYPES:
        functions_by_name[f"list<{element_type}>.isSorted() -> bool"] = _is_sorted
        functions_by_name[f"list<{element_type}>.min() -> {element_type}"] = partial(_find_extreme, is_max=False)
        functions_by_name[f"list<{element_type}>.max() -> {element_type}"] = partial(_find_extreme, is_max=True)
    functions_by_name["list<int>.sum() -> int"] = _sum_function(0)
    functions_by_name["list<uint>.sum() -> uint"] = _sum_function(numbers.Uint(0))
    functions_by_name["list<double>.sum() -> double"] = _sum_function(0.0)
    functions_by_name["list<duration>.sum() -> duration"] = _sum_function(Duration(0))
    return functions_by_name


def _cel_go_lists_extension() -> dict[str, Function]:
    """The functions of cel-go's extension for lists."""
    functions_by_name: dict[str, Function] = {
        "list<T>.slice(int, int) -> list<T>": _slice,
        "list<list<T>>.flatten() -> list<T>": _flatten,
        "list<dyn>.flatten(int) -> list<dyn>": _flatten,
        ":lists.range(int) -> list<int>": _range,
        "list<T>.reverse() -> list<T>": lambda items: items[::-1],
        "list<T>.distinct() -> list<T>": _distinct,
        "list<T>.indexOf(T) -> int": _index_of,
        "list<T>.lastIndexOf(T) -> int": _last_index_of,
    }
    for element_type in _ORDERED_TYPES:
        functions_by_name[f"list<{element_type}>.sort() -> list<{element_type}>"] = _sort
        functions_by_name[f"list<T>.@sortByAssociatedKeys(list<{element_type}>) -> list<T>"] = _sort_by
    return functions_by_name


FUNCTIONS = table(
    _kubernetes_list_library()
    | _cel_go_lists_extension()
    | {
        ":sets.contains(list<T>, list<T>) -> bool": _set_function(set.issuperset),
        ":sets.intersects(list<T>, list<T>) -> bool": _set_function(set.intersection),
        ":sets.equivalent(list<T>, list<T>) -> bool": _set_function(set.__eq__),
        ":optional.of(V) -> optional<V>": OptionalValue,
        ":optional.ofNonZeroValue(V) -> optional<V>": lambda value: (
            OPTIONAL_NONE if _is_zero(value) else OptionalValue(value)
        ),
        ":optional.none() -> optional<V>": lambda: OPTIONAL_NONE,
        "optional<V>.value() -> V": _value_of_optional,
        "optional<V>.hasValue() -> bool": lambda optional: optional.is_present,
        "optional<V>.or(optional<V>) -> optional<V>": lambda optional, other: (
            optional if optional.is_present else other
        ),
        "optional<V>.orValue(V) -> V": lambda optional, other: optional.value if optional.is_present else other,
        # Of these operators only the signatures are used: `planning` evaluates them.
        "_[?_](list<V>, int) -> optional<V>": _value_of_optional,
        "_[?_](optional<list<V>>, int) -> optional<V>": _value_of_optional,
        "_[?_](map<K, V>, K) -> optional<V>": _value_of_optional,
        "_[?_](optional<map<K, V>>, K) -> optional<V>": _value_of_optional,
        "_[_](optional<list<V>>, int) -> optional<V>": _value_of_optional,
        "_[_](optional<map<K, V>>, K) -> optional<V>": _value_of_optional,
        "list<T>.first() -> optional<T>": lambda items: OptionalValue(items[0]) if items else OPTIONAL_NONE,
        "list<T>.last() -> optional<T>": lambda items: OptionalValue(items[-1]) if items else OPTIONAL_NONE,
        ":optional.unwrap(list<optional<V>>) -> list<V>": _unwrap_optionals,
        "list<optional<V>>.unwrapOpt() -> list<V>": _unwrap_optionals,
    }
)
