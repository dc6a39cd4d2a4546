"""The CEL operators on values: equality, order, membership and arithmetic.

Called by `planning`, which evaluates `a + b` as `add(a, b, budget)`, and by the function libraries.

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
from podscaler.api.cel.values.values import Duration, MapList, Optional, SetList, Timestamp, kind
from podscaler.api.machinery import numbers as machinery_numbers
from podscaler.api.machinery.quantity import Quantity

_NUMBER_TYPES = (int, Uint, float)
_YEAR_1_NS, _YEAR_9999_END_NS = -62_135_596_800_000_000_000, 253_402_300_799_999_999_999
_ORDERED_TYPES = frozenset({bool, int, Uint, float, str, bytes, Timestamp, Duration, Quantity})


def equal(one: Any, other: Any, budget: Budget) -> bool:
    """Whether two values are deeply equal. Raises BudgetError."""
    budget.spend(1)
    if isinstance(one, list) and isinstance(other, list):
        return _equal_lists(one, other, budget)
    if isinstance(one, dict) and isinstance(other, dict):
        if len(one) != len(other):
            return False
        return all(key in other and equal(value, other[key], budget) for key, value in one.items())
    if type(one) in _NUMBER_TYPES and type(other) in _NUMBER_TYPES:
        return bool(one == other)
    if isinstance(one, Optional) and isinstance(other, Optional):
        return one.is_present == other.is_present and equal(one.value, other.value, budget)
    if isinstance(one, str | bytes):
        budget.spend(len(one) // 100)
    return type(one) is type(other) and bool(one == other)


def _equal_lists(one: list[Any], other: list[Any], budget: Budget) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, SetList):
        budget.spend(len(one))
        return {identity(item) for item in one} == {identity(item) for item in other}
    if isinstance(one, MapList):
        known = {_key(item, one.keys): item for item in one}
        pairs = [(known.get(_key(item, one.keys), _MISSING), item) for item in other]
        return all(mine is not _MISSING and equal(mine, item, budget) for mine, item in pairs)
    return all(equal(*pair, budget) for pair in zip(one, other, strict=True))


_MISSING = object()


def identity(value: Any) -> Any:
    """A hashable value that is equal for equal CEL values; numbers of all types by value."""
    if isinstance(value, list):
        return ("list", tuple(identity(item) for item in value))
    if isinstance(value, dict):
        return ("map", frozenset((identity(key), identity(item)) for key, item in value.items()))
    return ("number", value) if type(value) in _NUMBER_TYPES else (kind(value), value)


def _key(item: Any, keys: tuple[str, ...]) -> Any:
    """The identity of an element of a MapList: the values of its keys, None for a missing one."""
    return tuple(identity(item[key]) if isinstance(item, dict) and key in item else None for key in keys)


def is_less(one: Any, other: Any) -> bool:
    """Whether `one` sorts before `other`. Raises EvaluationError for values without an order."""
    if type(one) in _NUMBER_TYPES and type(other) in _NUMBER_TYPES:
        if any(isinstance(each, float) and math.isnan(each) for each in (one, other)):
            raise EvaluationError("NaN values cannot be ordered")
        return bool(one < other)
    if type(one) is not type(other) or type(one) not in _ORDERED_TYPES:
        raise no_such_overload()
    if isinstance(one, str):
        return one.encode() < str(other).encode()
    return bool(one < other)


def contains(container: Any, item: Any, budget: Budget) -> bool:
    """`item in container`: whether it is an element of a list or a key of a map."""
    if isinstance(container, dict):
        if not isinstance(item, str | int | float | bool):
            raise no_such_overload()
        return item in container
    if not isinstance(container, list):
        raise no_such_overload()
    return any(equal(item, each, budget) for each in container)


def add(one: Any, other: Any, budget: Budget) -> Any:
    """`one + other`. Raises EvaluationError, and BudgetError for long texts and lists."""
    if isinstance(one, list) and isinstance(other, list):
        budget.spend(len(one) + len(other))
        return _joined(one, other)
    if type(one) is type(other) and isinstance(one, str | bytes):
        budget.spend_on_text(len(one) + len(other))
        return one + other
    if isinstance(one, Duration) and isinstance(other, Timestamp):
        one, other = other, one
    if isinstance(other, Duration):
        return _shifted(one, other.span_ns)
    return _arithmetic(one, other, lambda a, b: a + b)


def _joined(one: list[Any], other: list[Any]) -> list[Any]:
    if isinstance(one, SetList):
        known = {identity(item) for item in one}
        return SetList([*one, *(item for item in other if identity(item) not in known)])
    if isinstance(one, MapList):
        merged = {_key(item, one.keys): item for item in [*one, *other]}
        return MapList(list(merged.values()), one.keys)
    return [*one, *other]


def subtract(one: Any, other: Any) -> Any:
    """`one - other`."""
    if isinstance(one, Timestamp) and isinstance(other, Timestamp):
        return Duration(_span(one.at_ns - other.at_ns))
    if isinstance(other, Duration):
        return _shifted(one, -other.span_ns)
    return _arithmetic(one, other, lambda a, b: a - b)


def _shifted(value: Any, by_ns: int) -> Any:
    if isinstance(value, Duration):
        return Duration(_span(value.span_ns + by_ns))
    if isinstance(value, Timestamp):
        return timestamp(value.at_ns + by_ns)
    raise no_such_overload()


def timestamp(at_ns: int) -> Timestamp:
    """The timestamp of an instant. Raises EvaluationError outside the years 1 to 9999."""
    if _YEAR_1_NS <= at_ns <= _YEAR_9999_END_NS:
        return Timestamp(at_ns)
    raise EvaluationError("timestamp overflow")


def _span(span_ns: int) -> int:
    if numbers.INT_MIN <= span_ns <= numbers.INT_MAX:
        return span_ns
    raise EvaluationError("duration overflow")


def multiply(one: Any, other: Any) -> Any:
    """`one * other`."""
    return _arithmetic(one, other, lambda a, b: a * b)


def divide(one: Any, other: Any) -> Any:
    """`one / other`."""
    if isinstance(one, float) and isinstance(other, float):
        return machinery_numbers.divide(one, other)
    return _arithmetic(one, other, numbers.quotient)


def modulo(one: Any, other: Any) -> Any:
    """`one % other`."""
    if isinstance(one, float):
        raise no_such_overload()
    return _arithmetic(one, other, numbers.remainder)


def _arithmetic(one: Any, other: Any, operation: Callable[[Any, Any], Any]) -> Any:
    if type(one) is not type(other):
        raise no_such_overload()
    if type(one) is int:
        return numbers.checked_int(operation(one, other))
    if type(one) is Uint:
        return numbers.checked_uint(operation(int(one), int(other)))
    if type(one) is float:
        return operation(one, other)
    raise no_such_overload()


def negate(value: Any) -> Any:
    """`-value`."""
    if type(value) is int:
        return numbers.checked_int(-value)
    if type(value) is float:
        return -value
    raise no_such_overload()
