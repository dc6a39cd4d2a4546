"""Semantic equality of parts of API objects (equality.Semantic of apimachinery), and deep copies.

    same({"limits": {"cpu": "100m"}, "env": []}, {"limits": {"cpu": "0.1"}})      True

Called to set metadata.generation (did the spec change?) and to check fields that may not change. Quantities are
compared by value, and an empty list equals a missing one; everything else counts, including the order of lists.

Source: docs/spec/api.md 3 (Create, update, status update).
"""

from typing import Any

from podscaler.api.machinery.quantity import Quantity

# Names of fields, at any depth: quantities, maps of quantities, and maps whose empty value equals a missing one.
# A new field of one of these kinds: add its name.
_QUANTITY_FIELDS = frozenset({"value", "averageValue", "tolerance", "sizeLimit", "divisor", "storage"})
_QUANTITY_MAP_FIELDS = frozenset({"limits", "requests", "overhead", "capacity", "allocatable"})
_MAP_FIELDS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", *_QUANTITY_MAP_FIELDS})


def same(first_value: Any, second_value: Any) -> bool:
    """Whether two JSON values have the same meaning."""
    return bool(first_value == second_value) or bool(meaning(first_value) == meaning(second_value))


def meaning(value: Any, field: str = "") -> Any:
    """A value that is equal for two parts of objects exactly if they have the same meaning.

    Args:
        value: a part of an object.
        field: the name of the field that has the value, by which quantities are recognized; empty for a whole object.
    """
    if isinstance(value, dict):
        members = {key: meaning(member, _field_for_comparison(field, key)) for key, member in value.items()}
        return {key: member for key, member in members.items() if not _equals_missing(key, member)}
    if isinstance(value, list):
        return [meaning(member, field) for member in value]
    if field in _QUANTITY_FIELDS and isinstance(value, str):
        return _parse_amount(value)
    return value


def copied(value: Any) -> Any:
    """A deep copy of a JSON value."""
    if isinstance(value, dict):
        return {key: copied(member) for key, member in value.items()}
    return [copied(member) for member in value] if isinstance(value, list) else value


def _field_for_comparison(parent_field: str, field: str) -> str:
    """The name by which a member is compared: in a map of quantities that of a quantity field, else its own."""
    return "value" if parent_field in _QUANTITY_MAP_FIELDS else field


def _equals_missing(field: str, member_meaning: Any) -> bool:
    """Whether a member means the same as a missing one: null, an empty list, an empty map of _MAP_FIELDS."""
    return member_meaning is None or member_meaning == [] or (member_meaning == {} and field in _MAP_FIELDS)


def _parse_amount(quantity_text: str) -> Any:
    """The quantity; or the text: the `value` of an environment variable need not be a quantity."""
    try:
        return Quantity.parse(quantity_text)
    except ValueError:
        return quantity_text
