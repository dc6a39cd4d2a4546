"""Validates x-kubernetes-list-type: elements of a `set` must differ, elements of a `map` must have different keys.

Called by `records`. `validation` and `rules` look up the old value of an element by `index_elements` and `identity`,
and compare values with the stored ones by `is_same`. A stored list may have elements with equal keys.

Source: the API documentation of x-kubernetes-list-type and x-kubernetes-list-map-keys.
"""

from typing import Any

import msgspec

from podscaler.api.crd.structural import ABSENT, Structural
from podscaler.api.machinery.field import FieldError, duplicate
from podscaler.api.text import json_text


def field_errors(value: Any, schema: Structural | None, path: str = "") -> list[FieldError]:
    """The field errors of repeated elements of a value and all values in it; one each, at the first repetition."""
    if schema is None:
        return []
    errors: list[FieldError] = []
    if isinstance(value, list):
        errors = _repeated_element_errors(value, schema, path)
        for index, item in enumerate(value):
            errors += field_errors(item, schema.items, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, member in value.items():
            is_known = name in schema.properties
            dotted_path = f"{path}.{name}" if path else name
            member_path = dotted_path if is_known else f"{path}[{name}]"
            errors += field_errors(member, schema.member(name), member_path)
    return errors


def _repeated_element_errors(value: list[Any], schema: Structural, path: str) -> list[FieldError]:
    """Errors of elements that are there more than once, one error for each."""
    if schema.list_type not in ("set", "map"):
        return []
    counts: dict[bytes, int] = {}
    errors = []
    for index, item in enumerate(value):
        shown_key = key_of(item, schema) if schema.list_type == "map" else item
        key = json_text.encode(msgspec.to_builtins(shown_key, order="sorted"))
        counts[key] = counts.get(key, 0) + 1
        if counts[key] == 2:
            errors.append(duplicate(f"{path}[{index}]", shown_key))
    return errors


def is_same(new: Any, old: Any, schema: Structural | None) -> bool:
    """Whether a value is unchanged: the order of `map` lists does not matter, and 1 is neither true nor 1.0."""
    if isinstance(new, dict) and isinstance(old, dict):
        if new.keys() != old.keys():
            return False
        return all(is_same(new[name], old[name], schema.member(name) if schema else None) for name in new)
    if isinstance(new, list) and isinstance(old, list):
        if len(new) != len(old):
            return False
        if schema is None or schema.list_type != "map":
            return all(is_same(item, old_item, None) for item, old_item in zip(new, old, strict=True))
        old_by_key = index_elements(old, schema)
        return all(is_same(item, old_by_key.get(identity(item, schema), ABSENT), schema.items) for item in new)
    return type(new) is type(old) and bool(new == old)


def index_elements(items: Any, schema: Structural) -> dict[str, Any]:
    """The elements of a `map` list by their `identity`; of elements with equal keys the first (upstream's MapList).

    Empty for other lists and values.
    """
    if schema.list_type != "map" or not isinstance(items, list):
        return {}
    return {identity(item, schema): item for item in reversed(items)}


def identity(item: Any, schema: Structural) -> str:
    """A text that is equal for elements of a `map` list with equal keys."""
    return repr(sorted(key_of(item, schema).items()))


def key_of(item: Any, schema: Structural) -> dict[str, Any]:
    """The keys of an element of a `map` list with their values or defaults; keys without either are left out."""
    if not isinstance(item, dict):
        return {}
    key_values = {}
    for name in schema.list_map_keys:
        member = schema.items.properties.get(name) if schema.items else None
        key_value = item.get(name, member.default if member is not None else ABSENT)
        if key_value is not ABSENT:
            key_values[name] = key_value
    return key_values
