"""What is wrong with x-kubernetes-list-type and x-kubernetes-list-map-keys in a schema.

Called by `crd_schema_validation`. Source: the API documentation of JSONSchemaProps; upstream's validation messages.
"""

from typing import Any

from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.resource import checks

Schema = dict[str, Any]

LIST_TYPES = ("atomic", "set", "map")
_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def validate(schema: Schema, path: str) -> list[FieldError]:
    """What is wrong with the list type of one node."""
    wanted, keys = schema.get(_TYPE), schema.get(_KEYS) or []
    found = []
    if wanted is not None:
        found += _of_type(schema, wanted, path)
    if keys and wanted is None:
        found.append(required(f"{path}.{_TYPE}", f"must be map if {_KEYS} is non-empty"))
    elif keys and wanted != "map":
        found.append(invalid(f"{path}.{_TYPE}", wanted, f"must be map if {_KEYS} is non-empty"))
    return found + (_of_map(schema, keys, path) if wanted == "map" else [])


def warnings(schema: Schema) -> list[str]:
    """What is said of a set (one node) whose elements are no plain values."""
    items = schema.get("items")
    kind = items.get("type") if isinstance(items, dict) and schema.get(_TYPE) == "set" else None
    if kind not in ("array", "object"):
        return []
    return [f'{_TYPE}: set for items of type "{kind}" is not supported by server-side apply or CEL validation rules']


def _of_type(schema: Schema, wanted: str, path: str) -> list[FieldError]:
    kind = schema.get("type", "")
    found = []
    if kind != "array":
        text = f"must be array if {_TYPE} is specified"
        found.append(invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text))
    elif wanted == "set" and isinstance(schema.get("items"), dict):
        found += _of_set(schema["items"], f"{path}.items")
    return found + checks.one_of(wanted, f"{path}.{_TYPE}", LIST_TYPES)


def _of_set(items: Schema, path: str) -> list[FieldError]:
    """Elements of a set are compared as a whole, so that they must be owned as a whole, and there must be some."""
    if items.get("nullable"):
        return [forbidden(f"{path}.nullable", f"cannot be nullable when {_TYPE} is set")]
    kind = items.get("type")
    name = {"array": _TYPE, "object": "x-kubernetes-map-type"}.get(str(kind), "")
    if not name or items.get(name) == "atomic" or (kind == "array" and items.get(name) is None):
        return []
    text = f"must be atomic as item of a list with {_TYPE}=set"
    return [invalid(f"{path}.{name}", None if kind == "object" else items[name], text)]


def _of_map(schema: Schema, keys: list[str], path: str) -> list[FieldError]:
    items = schema.get("items")
    found = checks.present(keys, f"{path}.{_KEYS}", f"must not be empty if {_TYPE} is map")
    if items is None:
        return [*found, required(f"{path}.items", f"must have a schema if {_TYPE} is map")]
    if not isinstance(items, dict):
        return [*found, invalid(f"{path}.items", items, f"must only have a single schema if {_TYPE} is map")]
    if items.get("type") != "object":
        text = f"must be object if parent array's {_TYPE} is map"
        return [*found, invalid(f"{path}.items.type", items.get("type", ""), text)]
    for index, key in enumerate(keys):
        found += _of_key(items, key, keys, path)
        if key in keys[:index]:
            found.append(invalid(f"{path}.{_KEYS}", keys, "must not contain duplicate entries"))
    return found


def _of_key(items: Schema, key: str, keys: list[str], path: str) -> list[FieldError]:
    member = (items.get("properties") or {}).get(key)
    if member is None:
        return [invalid(f"{path}.{_KEYS}", keys, "entries must all be names of item properties")]
    below = f"{path}.items.properties[{key}]"
    found = []
    if member.get("type") in ("array", "object"):
        text = f"must be a scalar type if parent array's {_TYPE} is map"
        found.append(invalid(f"{below}.type", items.get("type"), text))
    said = f"this property is in {_KEYS}, so it"
    if "default" not in member and key not in (items.get("required") or []):
        found.append(required(f"{below}.default", f"{said} must have a default or be a required property"))
    if member.get("nullable"):
        found.append(forbidden(f"{below}.nullable", f"{said} cannot be nullable"))
    return found
