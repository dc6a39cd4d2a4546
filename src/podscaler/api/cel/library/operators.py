"""Implements the CEL operators on values: equality, order, membership and arithmetic.

Called by `planning`, which evaluates `a + b` as `add(a, b, budget)` (a new operator: its `_OPERATORS`), and by the
function libraries.

Rules: numbers of different types are compared by value (`1 == 1.0`); values of other different types are not equal and
have no order. SetList and MapList (lists that are sets or maps by their schema) are equal in any order; `+` of them is
a union, or replaces elements with the same keys. All functions raise EvaluationError for types that the operator does
not accept.

Source: the CEL specification, "Functions"; Kubernetes' documentation of list types in rules.
"""

import math
from collections.abc import Callable
from typing import Any

from podscaler.api.cel.values import numbers
from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import EvaluationError, no_such_overload
from podscaler.api.cel.values.numbers import Uint
from podscaler.api.cel.values.values import Duration, MapList, OptionalValue, SetList, Timestamp, type_name
from podscaler.api.machinery import numbers as machinery_numbers
from podscaler.api.machinery.quantity import Quantity

_NUMBER_TYPES = (int, Uint, float)
_COMPARED_PER_STEP = 100
"""The characters or bytes of a text that are compared for one step."""
_YEAR_1_NS, _YEAR_9999_END_NS = -62_135_596_800_000_000_000, 253_402_300_799_999_999_999
_ORDERED_TYPES = frozenset({bool, int, Uint, float, str, bytes, Timestamp, Duration, Quantity})
_MISSING = object()
"""Stands for an element that a list does not have."""


def equal(left: Any, right: Any, budget: Budget) -> bool:
    """Whether two values are deeply equal. Raises BudgetError."""
    budget.spend(1)
    if isinstance(left, list) and isinstance(right, list):
        return _equal_lists(left, right, budget)
    if isinstance(left, dict) and isinstance(right, dict):
        if len(left) != len(right):
            return False
        return all(key in right and equal(value, right[key], budget) for key, value in left.items())
    if type(left) in _NUMBER_TYPES and type(right) in _NUMBER_TYPES:
        return bool(left == right)
    if isinstance(left, OptionalValue) and isinstance(right, OptionalValue):
        return left.is_present == right.is_present and equal(left.value, right.value, budget)
    if isinstance(left, str | bytes):
        budget.spend(len(left) // _COMPARED_PER_STEP)
    return type(left) is type(right) and bool(left == right)


def _equal_lists(left: list[Any], right: list[Any], budget: Budget) -> bool:
    """Whether lists are equal: sets in any order, maps by their keys, others item by item."""
    if len(left) != len(right):
        return False
    if isinstance(left, SetList):
        budget.spend(len(left))
        return {identity(item) for item in left} == {identity(item) for item in right}
    if isinstance(left, MapList):
        left_by_key = {_map_list_key(item, left.keys): item for item in left}  # the last of equal keys, as upstream
        pairs = [(left_by_key.get(_map_list_key(item, left.keys), _MISSING), item) for item in right]
        return all(left_item is not _MISSING and equal(left_item, item, budget) for left_item, item in pairs)
    return all(equal(*pair, budget) for pair in zip(left, right, strict=True))


def identity(value: Any) -> Any:
    """A hashable value that is equal for equal CEL values; numbers of all types by value."""
    if isinstance(value, list):
        return ("list", tuple(identity(item) for item in value))
    if isinstance(value, dict):
        return ("map", frozenset((identity(key), identity(item)) for key, item in value.items()))
    return ("number", value) if type(value) in _NUMBER_TYPES else (type_name(value), value)


def _map_list_key(item: Any, keys: tuple[str, ...]) -> Any:
    """The identity of an element of a MapList: the values of its keys, None for a missing one."""
    return tuple(identity(item[key]) if isinstance(item, dict) and key in item else None for key in keys)


def is_less(left: Any, right: Any) -> bool:
    """Whether `left` sorts before `right`. Raises EvaluationError for values without an order."""
    if type(left) in _NUMBER_TYPES and type(right) in _NUMBER_TYPES:
        if any(isinstance(operand, float) and math.isnan(operand) for operand in (left, right)):
            raise EvaluationError("NaN values cannot be ordered")
        return bool(left < right)
    if type(left) is not type(right) or type(left) not in _ORDERED_TYPES:
        raise no_such_overload()
    if isinstance(left, str):
        return left.encode() < str(right).encode()  # as Go, which compares the bytes of UTF-8
    return bool(left < right)


def contains(container: Any, item: Any, budget: Budget) -> bool:
    """`item in container`: an element of a list or a key of a map. Raises EvaluationError, BudgetError."""
    if isinstance(container, dict):
        if not isinstance(item, str | int | float | bool):
            raise no_such_overload()
        return item in container
    if not isinstance(container, list):
        raise no_such_overload()
    return any(equal(item, member, budget) for member in container)


def add(left: Any, right: Any, budget: Budget) -> Any:
    """`left + right`. Raises EvaluationError, and BudgetError for long texts and lists."""
    if isinstance(left, list) and isinstance(right, list):
        budget.spend(len(left) + len(right))
        return _concatenate(left, right)
    if type(left) is type(right) and isinstance(left, str | bytes):
        budget.spend_on_text(len(left) + len(right))
        return left + right
    if isinstance(left, Duration) and isinstance(right, Timestamp):
        left, right = right, left
    if isinstance(right, Duration):
        return _add_span(left, right.span_ns)
    return _arithmetic(left, right, lambda left_number, right_number: left_number + right_number)


def _concatenate(left: list[Any], right: list[Any]) -> list[Any]:
    """The sum of two lists: a union of sets; in `map` lists items of `right` replace those with the same keys."""
    if isinstance(left, SetList):
        left_identities = {identity(item) for item in left}
        return SetList([*left, *(item for item in right if identity(item) not in left_identities)])
    if isinstance(left, MapList):
        items_by_key = {_map_list_key(item, left.keys): item for item in [*left, *right]}
        return MapList(list(items_by_key.values()), left.keys)
    return [*left, *right]


def subtract(left: Any, right: Any) -> Any:
    """`left - right`. Raises EvaluationError for an overflow."""
    if isinstance(left, Timestamp) and isinstance(right, Timestamp):
        return Duration(_check_span(left.at_ns - right.at_ns))
    if isinstance(right, Duration):
        return _add_span(left, -right.span_ns)
    return _arithmetic(left, right, lambda left_number, right_number: left_number - right_number)


def _add_span(value: Any, by_ns: int) -> Any:
    """A Timestamp or Duration that is later or longer by that span. Raises EvaluationError for other values."""
    if isinstance(value, Duration):
        return Duration(_check_span(value.span_ns + by_ns))
    if isinstance(value, Timestamp):
        return timestamp(value.at_ns + by_ns)
    raise no_such_overload()


def timestamp(at_ns: int) -> Timestamp:
    """The timestamp of an instant. Raises EvaluationError outside the years 1 to 9999."""
    if _YEAR_1_NS <= at_ns <= _YEAR_9999_END_NS:
        return Timestamp(at_ns)
    raise EvaluationError("timestamp overflow")


def _check_span(span_ns: int) -> int:
    """The span. Raises EvaluationError beyond int64."""
    if numbers.INT_MIN <= span_ns <= numbers.INT_MAX:
        return span_ns
    raise EvaluationError("duration overflow")


def multiply(left: Any, right: Any) -> Any:
    """`left * right`. Raises EvaluationError for an overflow."""
    return _arithmetic(left, right, lambda left_number, right_number: left_number * right_number)


def divide(left: Any, right: Any) -> Any:
    """`left / right`. Raises EvaluationError for whole numbers divided by zero."""
    if isinstance(left, float) and isinstance(right, float):
        return machinery_numbers.divide(left, right)
    return _arithmetic(left, right, numbers.quotient)


def modulo(left: Any, right: Any) -> Any:
    """`left % right`. Raises EvaluationError for doubles, and for a zero divisor."""
    if isinstance(left, float):
        raise no_such_overload()
    return _arithmetic(left, right, numbers.remainder)


def _arithmetic(left: Any, right: Any, operation: Callable[[Any, Any], Any]) -> Any:
    """The result of an operation on two numbers of the same type. Raises EvaluationError for an overflow."""
    if type(left) is not type(right):
        raise no_such_overload()
    if type(left) is int:
        return numbers.checked_int(operation(left, right))
    if type(left) is Uint:
        return numbers.checked_uint(operation(int(left), int(right)))
    if type(left) is float:
        return operation(left, right)
    raise no_such_overload()


def negate(value: Any) -> Any:
    """`-value`. Raises EvaluationError for an overflow."""
    if type(value) is int:
        return numbers.checked_int(-value)
    if type(value) is float:
        return -value
    raise no_such_overload()
