"""Semantic equality of parts of objects (apimachinery's equality.Semantic).

Called for the generation (did the spec change?) and for fields that may not change. `100m` of cpu equals `0.1`, an
empty list equals none; everything else counts, including the order of lists.

Source: docs/spec/api.md 3 (Create, update, status update).
"""

from typing import Any

from podscaler.api.machinery.quantity import Quantity

_QUANTITIES = frozenset({"value", "averageValue", "tolerance", "sizeLimit", "divisor", "storage"})
_QUANTITY_MAPS = frozenset({"limits", "requests", "overhead", "capacity", "allocatable"})
_PLAIN_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", *_QUANTITY_MAPS})


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values mean the same."""
    return bool(one == other) or bool(meaning(one) == meaning(other))


def meaning(value: Any, name: str = "") -> Any:
    """A value to compare by: without empty lists, maps and nulls, quantities by amount.

    Args:
        value: a part of an object.
        name: the field that has the value, by which quantities are recognized.
    """
    if isinstance(value, dict):
        parts = {key: meaning(part, _amount_name(name, key)) for key, part in value.items()}
        return {key: part for key, part in parts.items() if not _is_nothing(key, part)}
    if isinstance(value, list):
        return [meaning(part, name) for part in value]
    if name in _QUANTITIES and isinstance(value, str):
        return _amount(value)
    return value


def copied(value: Any) -> Any:
    """A deep copy of a JSON value, to fill in defaults for comparing."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    return [copied(part) for part in value] if isinstance(value, list) else value


def _amount_name(parent: str, key: str) -> str:
    return "value" if parent in _QUANTITY_MAPS else key


def _is_nothing(key: str, part: Any) -> bool:
    return part is None or part == [] or (part == {} and key in _PLAIN_MAPS)


def _amount(text: str) -> Any:
    """The quantity's numeric value; environment variables also have a `value`, which need not be one."""
    try:
        return Quantity.parse(text)
    except ValueError:
        return text
