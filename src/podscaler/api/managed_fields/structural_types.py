"""Makes the field types of custom resources for server-side apply, from their OpenAPI v3 schemas.

Called by `podscaler.api.crd.records` for each custom resource, and by the registry for kinds without a schema;
`message_types` makes the types of built-in kinds. The types of members are made on demand. A new keyword:
`_type_of_schema`, `_list_type` or `_members_type`.

Rules: values without a schema have the type DEDUCED; a list without a list type is atomic; unknown members are allowed
where unknown fields are preserved.

Source: kube-openapi's conversion of schemas; the documentation of x-kubernetes-list-type, -list-map-keys, -map-type.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from podscaler.api.managed_fields import field_types, message_types
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType, Scalar

_SCALARS: dict[str, Scalar] = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}


def of_kind(schema: Mapping[str, Any]) -> FieldType:
    """The type of the objects with a schema (`{}` for any object), with the common fields of built-in kinds."""
    members_type = _members_type(schema)
    common_types = _common_types()

    def find_declared(name: str) -> FieldType | None:
        return common_types.get(name) or members_type.find_declared(name)

    return FieldType(map=MapType(find_declared, members_type.get_undeclared))


def _common_types() -> dict[str, FieldType]:
    """The types of the fields that every object has."""
    metadata_type = message_types.of_message("meta/v1.ObjectMeta")
    return {"apiVersion": field_types.STRING, "kind": field_types.STRING, "metadata": metadata_type}


def _type_of_schema(schema: Mapping[str, Any]) -> FieldType:
    """The type of the values of a schema."""
    if schema.get("x-kubernetes-int-or-string"):
        return field_types.UNTYPED
    json_type = schema.get("type")
    if json_type in _SCALARS:
        return FieldType(scalar=_SCALARS[json_type])
    if json_type == "array":
        return FieldType(list=_list_type(schema))
    if json_type == "object" or "properties" in schema:
        return FieldType(map=_members_type(schema))
    return field_types.DEDUCED


def _list_type(schema: Mapping[str, Any]) -> ListType:
    """The type of a list: atomic, unless the schema calls it a map or a set."""
    items = schema.get("items") or {}
    get_item_type = partial(_type_of_schema, items)
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            return ListType(get_item_type, atomic=False, keys=keys, defaults=_key_defaults(items, keys))
        case "set":
            return ListType(get_item_type, atomic=False)
        case _:
            return ListType(get_item_type)


def _key_defaults(items: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """(key, default) of the keys for which the schema `items` has a default."""
    properties = items.get("properties") or {}
    return tuple((key, properties[key]["default"]) for key in keys if "default" in (properties.get(key) or {}))


def _members_type(schema: Mapping[str, Any]) -> MapType:
    """The type of an object's members; an embedded object has apiVersion, kind and metadata too."""
    is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
    properties = schema.get("properties") or {}
    common_types = _common_types() if schema.get("x-kubernetes-embedded-resource") else {}
    declared_names = {*properties, *common_types}

    @cache
    def type_of_declared(name: str) -> FieldType:
        return common_types[name] if name in common_types else _type_of_schema(properties[name])

    def find_declared(name: str) -> FieldType | None:
        """The type of a declared member; other names, which clients may send, are not cached."""
        return type_of_declared(name) if name in declared_names else None

    return MapType(find_declared, _getter_of_undeclared(schema), is_atomic)


def _getter_of_undeclared(schema: Mapping[str, Any]) -> Callable[[], FieldType] | None:
    """The function that returns the type of members that are not declared; None if they are not allowed."""
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) and additional:
        return partial(_type_of_schema, additional)
    if additional or schema.get("x-kubernetes-preserve-unknown-fields") or not schema.get("properties"):
        return lambda: field_types.DEDUCED
    return None
