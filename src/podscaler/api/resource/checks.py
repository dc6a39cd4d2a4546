"""Checks of single fields, which the validation of all kinds is composed of.

    not_negative(-1, "spec.replicas")    [FieldError("FieldValueInvalid", "spec.replicas", "Invalid value: -1: ...")]
    each(ports, "spec.ports", check)     the errors of check(ports[0], "spec.ports[0]"), check(ports[1], ...), ...

Called by the validation here and in `podscaler.api.kinds`; a check that several kinds need is a function here. Each
function but `fraction_warnings` returns the field errors of a value at a path, an empty list for a valid value.

Source: k8s.io/apimachinery/pkg/api/validation and pkg/api/validate (the messages).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from podscaler.api.machinery.field import FieldError, duplicate, invalid, not_supported, required
from podscaler.api.machinery.quantity import UNIT_MILLI, Quantity

Check = Callable[[Any, str], list[FieldError]]
"""A function from a value and its path to its field errors."""

Rule = Callable[[str], Sequence[str]]
"""A function from a text to the messages about it, none for a valid one: `machinery.names.dns_label_errors`."""

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"


def each(values: Iterable[Any] | None, path: str, check: Check) -> list[FieldError]:
    """The errors of the elements of a list (None is an empty one), each checked at `path[index]`."""
    if not values:
        return []
    return [error for index, value in enumerate(values) for error in check(value, f"{path}[{index}]")]


def optional(value: Any, path: str, check: Check) -> list[FieldError]:
    """The errors of a value that may be None."""
    return [] if value is None else check(value, path)


def well_formed(value: str | None, path: str, rule: Rule) -> list[FieldError]:
    """The error for each message that `rule` has about a text; none for None."""
    messages = () if value is None else rule(value)
    return [invalid(path, value, message) for message in messages]


def each_well_formed(values: Iterable[str], path: str, rule: Rule) -> list[FieldError]:
    """As `well_formed`, for the elements of a list."""
    return each(values, path, lambda value, item_path: well_formed(value, item_path, rule))


def well_formed_if_set(value: str | None, path: str, rule: Rule) -> list[FieldError]:
    """As `well_formed`, for a text that may be empty or None."""
    return well_formed(value, path, rule) if value else []


def required_form(value: str, path: str, rule: Rule, detail: str = "") -> list[FieldError]:
    """As `well_formed`, for a text that must not be empty; `detail` is added to the message about an empty one."""
    return well_formed(value, path, rule) if value else [required(path, detail)]


def present(value: Any, path: str, detail: str = "") -> list[FieldError]:
    """The error of a value that is empty, zero or None."""
    return [] if value else [required(path, detail)]


def one_of(value: Any, path: str, supported: Sequence[str]) -> list[FieldError]:
    """The error of a value that is none of `supported`, which the message lists in this order."""
    return [] if value in supported else [not_supported(path, value, supported)]


def optional_one_of(value: Any, path: str, supported: Sequence[str]) -> list[FieldError]:
    """As `one_of`, for a value that may be None."""
    return [] if value is None else one_of(value, path, supported)


def required_one_of(value: Any, path: str, supported: Sequence[str]) -> list[FieldError]:
    """As `one_of`, with an error of its own for a value that is missing."""
    if value in supported:
        return []
    return [not_supported(path, value, supported)] if value else [required(path)]


def not_negative(value: int | None, path: str) -> list[FieldError]:
    """The error of a number below zero; None counts as zero."""
    return [invalid(path, value, NOT_NEGATIVE)] if value is not None and value < 0 else []


def holds(condition: Any, path: str, value: Any, message: str) -> list[FieldError]:
    """The error `message` about `value` unless `condition` is true."""
    return [] if condition else [invalid(path, value, message)]


def unchanged(new: Any, old: Any, path: str) -> list[FieldError]:
    """The error of a value that differs from the stored one."""
    return [] if new == old else [invalid(path, new, IMMUTABLE)]


def not_repeated(value: Any, path: str, earlier_values: set[Any]) -> list[FieldError]:
    """The error of a value that is in `earlier_values` already; adds the value to `earlier_values`."""
    if value in earlier_values:
        return [duplicate(path, value)]
    earlier_values.add(value)
    return []


def fraction_warnings(resources: Mapping[str, Any], path: str) -> list[str]:
    """The warnings about amounts of memory or storage that are fractions of a byte.

    Args:
        resources: `limits` and `requests`: each is resource name -> amount.
        path: the path of `resources`.
    """
    warnings = []
    for resource in ("storage", "memory", "ephemeral-storage"):
        for field in ("limits", "requests"):
            amount = Quantity.parse(str((resources.get(field) or {}).get(resource, "0")))
            if amount.milli_value() % UNIT_MILLI:
                warnings.append(
                    f'{path}.{field}[{resource}]: fractional byte value "{amount}" is invalid, must be an integer'
                )
    return warnings
