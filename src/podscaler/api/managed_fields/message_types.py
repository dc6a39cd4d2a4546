"""Makes the field types of built-in kinds for server-side apply, from the facts about the API types.

    of_message("core/v1.Service")      FieldType(map=...), whose `ports` is a list with the keys `port` and `protocol`

Called by the registry (`podscaler.controlplane.registry.field_managers`, `.scale_field_managers`) and by
`structural_types`. Types are made on demand and cached, one for each message. A new scalar or opaque type of
`podscaler.api.schema.schema`: add it to `_SCALARS` or `_OPAQUE_TYPES`.

Source: the x-kubernetes-list-type, -list-map-keys and -map-type of the published types; where a list has no list type,
its patch strategy, as in kube-openapi.
"""

from functools import cache, partial
from typing import Any

from podscaler.api.managed_fields import field_types
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType, Scalar
from podscaler.api.schema import schema
from podscaler.api.schema.schema import Field, Message

_SCALARS: dict[str, Scalar] = {
    "string": "string",
    "bytes": "string",
    "bool": "boolean",
    "int32": "numeric",
    "int64": "numeric",
    "uint32": "numeric",
    "double": "numeric",
    schema.TIME: "untyped",
    schema.MICRO_TIME: "untyped",
    schema.DURATION: "string",
    schema.QUANTITY: "untyped",
    schema.INT_OR_STRING: "untyped",
}
_ZERO_VALUES: dict[Scalar, Any] = {"string": "", "numeric": 0, "boolean": False}
_OPAQUE_TYPES = {
    schema.RAW_EXTENSION: field_types.WHOLE_OBJECT,
    schema.FIELDS_V1: field_types.FREE_OBJECT,
    schema.JSON: field_types.DEDUCED,
    schema.SCHEMA_OR_ARRAY: field_types.DEDUCED,
    schema.SCHEMA_OR_BOOL: field_types.DEDUCED,
    schema.SCHEMA_OR_STRINGS: field_types.DEDUCED,
}


@cache
def of_message(name: str) -> FieldType:
    """The type of a message (`apps/v1.Deployment`). Raises KeyError for an unknown one."""
    message = schema.get_message(name)
    return FieldType(map=MapType(_types_of_fields(message).get, atomic=message.map_type == "atomic"))


def _types_of_fields(message: Message) -> dict[str, FieldType]:
    """The types of the fields of a message, by their JSON names."""
    fields = {field.name: _type_of_field(field) for field in message.json_fields()}
    if message.type_meta:
        fields |= {"apiVersion": field_types.STRING, "kind": field_types.STRING}
    return fields


def _type_of_field(field: Field) -> FieldType:
    """The type of a field: a list, a map, a scalar or an object."""
    get_value_type = partial(_value_type, field.type)
    if field.repeated:
        return FieldType(list=_list_type(field, get_value_type))
    if field.map:
        return field_types.map_of(get_value_type, atomic=field.map_type == "atomic")
    if field.is_scalar or field.type in schema.OPAQUE or schema.get_message(field.type).list:
        return get_value_type()
    return _object_type(field)


def _object_type(field: Field) -> FieldType:
    """The type of an object: the map type of its field overrides that of its message."""
    message = schema.get_message(field.type)
    atomic = (field.map_type or message.map_type) == "atomic"
    return FieldType(map=MapType(partial(_find_declared, field.type), atomic=atomic))


def _find_declared(message_name: str, name: str) -> FieldType | None:
    """The type of the field `name` of a message, made on demand, as messages may contain themselves."""
    message_type = of_message(message_name).map
    return message_type.find_declared(name) if message_type else None


def _value_type(name: str) -> FieldType:
    """The type of the values with the type name of a field: a scalar, an opaque type or a message."""
    scalar = _SCALARS.get(name)
    if scalar:
        return FieldType(scalar=scalar)
    if name in _OPAQUE_TYPES:
        return _OPAQUE_TYPES[name]
    message = schema.get_message(name)
    if message.list:
        return FieldType(list=ListType(partial(FieldType, scalar="string")))
    return of_message(name)


def _list_type(field: Field, get_item_type: "partial[FieldType]") -> ListType:
    """The type of a list: atomic, or associative with the keys of its items."""
    keys = _list_keys(field)
    if keys is None:
        return ListType(get_item_type)
    return ListType(get_item_type, atomic=False, keys=keys, defaults=_key_defaults(field, keys))


def _list_keys(field: Field) -> tuple[str, ...] | None:
    """The keys of an associative list; empty for a set; None for an atomic list."""
    match field.list_type:
        case "map":
            return field.list_map_keys
        case "set":
            return ()
        case "":
            if "merge" not in field.patch_strategy.split(","):
                return None
            return (field.patch_merge_key,) if field.patch_merge_key else ()
        case _:
            return None


def _key_defaults(field: Field, keys: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """(key, value of an item without that key) of the keys that have such a value."""
    if field.is_scalar:
        return ()  # items of sets have no keys
    key_fields = ((key, schema.find_field(field.type, key)) for key in keys)
    defaults = ((key, _key_default(key_field)) for key, key_field in key_fields if key_field is not None)
    return tuple((key, default) for key, default in defaults if default is not None)


def _key_default(field: Field) -> Any:
    """The value of an absent field: its default, or zero if it is always present in JSON; None without either."""
    if field.default is not None or field.omitempty or field.pointer:
        return field.default
    return _ZERO_VALUES.get(_SCALARS.get(field.type, ""))
