"""Semantic equality of parts of API objects (equality.Semantic of apimachinery), and deep copies.

    same({"limits": {"cpu": "100m"}, "env": []}, {"limits": {"cpu": "0.1"}})      True

Called to set metadata.generation (did the spec change?) and to check fields that may not change. Quantities are
compared by value, and an empty list equals a missing one; everything else counts, including the order of lists.

Source: docs/spec/api.md 3 (Create, update, status update).
"""

from typing import Any

from podscaler.api.machinery.quantity import Quantity

# Names of fields, at any depth: quantities, maps of quantities, and maps whose empty value equals a missing one.
_QUANTITY_FIELDS = frozenset({"value", "averageValue", "tolerance", "sizeLimit", "divisor", "storage"})
_QUANTITY_MAP_FIELDS = frozenset({"limits", "requests", "overhead", "capacity", "allocatable"})
_MAP_FIELDS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", *_QUANTITY_MAP_FIELDS})


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values have the same meaning."""
    return bool(left == right) or bool(meaning(left) == meaning(right))


def meaning(value: Any, name: str = "") -> Any:
    """A value that is equal for parts of objects with the same meaning.

    Args:
        value: a part of an object.
        name: of the field that has the value, by which quantities are recognized.
    """
    if isinstance(value, dict):
        parts = {key: meaning(part, _amount_name(name, key)) for key, part in value.items()}
        return {key: part for key, part in parts.items() if not _is_nothing(key, part)}
    if isinstance(value, list):
        return [meaning(part, name) for part in value]
    if name in _QUANTITY_FIELDS and isinstance(value, str):
        return _amount(value)
    return value


def copied(value: Any) -> Any:
    """A deep copy of a JSON value."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    return [copied(part) for part in value] if isinstance(value, list) else value


def _amount_name(parent: str, key: str) -> str:
    return "value" if parent in _QUANTITY_MAP_FIELDS else key


def _is_nothing(key: str, part: Any) -> bool:
    return part is None or part == [] or (part == {} and key in _MAP_FIELDS)


def _amount(text: str) -> Any:
    """The quantity; or the text, since the `value` of an environment variable need not be a quantity."""
    try:
        return Quantity.parse(text)
    except ValueError:
        return text
