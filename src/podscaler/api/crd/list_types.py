"""Lists whose elements must differ: x-kubernetes-list-type `set` and `map`.

Called by `records` when a custom object is validated.

Source: the API documentation of x-kubernetes-list-type and x-kubernetes-list-map-keys.
"""

from typing import Any

from podscaler.api.crd.structural import ABSENT, Structural
from podscaler.api.machinery.field import FieldError, duplicate
from podscaler.api.text import json_text


def faults(value: Any, schema: Structural | None, path: str = "") -> list[FieldError]:
    """The elements that stand more than once, each where it does so first (`spec.ports[1]`)."""
    if schema is None:
        return []
    if isinstance(value, list):
        return _of_list(value, schema, path)
    if not isinstance(value, dict):
        return []
    found = []
    for name, member in value.items():
        is_known = name in schema.properties
        below = (f"{path}.{name}" if path else name) if is_known else f"{path}[{name}]"
        found += faults(member, schema.properties.get(name, schema.additional), below)
    return found


def _of_list(value: list[Any], schema: Structural, path: str) -> list[FieldError]:
    found = _repeated(value, schema, path)
    for index, item in enumerate(value):
        found += faults(item, schema.items, f"{path}[{index}]")
    return found


def _repeated(value: list[Any], schema: Structural, path: str) -> list[FieldError]:
    if schema.list_type not in ("set", "map"):
        return []
    seen: dict[bytes, int] = {}
    shown: dict[int, Any] = {}
    for index, item in enumerate(value):
        identity = key_of(item, schema) if schema.list_type == "map" else item
        key = json_text.encode(_sorted(identity))
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            shown[index] = identity
    return [duplicate(f"{path}[{index}]", identity) for index, identity in shown.items()]


def key_of(item: Any, schema: Structural) -> dict[str, Any]:
    """What identifies an element of a `map` list: its keys, with their defaults; only those that are there."""
    if not isinstance(item, dict):
        return {}
    key = {}
    for name in schema.list_map_keys:
        member = schema.items.properties.get(name) if schema.items else None
        found = item.get(name, member.default if member is not None else ABSENT)
        if found is not ABSENT:
            key[name] = found
    return key


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
