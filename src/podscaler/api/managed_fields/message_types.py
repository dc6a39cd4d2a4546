"""Makes the field types of built-in kinds for server-side apply, from the facts about the API types.

    of_message("core/v1.Service")      FieldType(map=...), whose `ports` is a list with the keys `port` and `protocol`

Called by the registry (`podscaler.controlplane.registry.field_managers`, `.scale_field_managers`) and by
`structural_types`. A Message states the facts about a Go struct, a Field those about one of its fields
(`podscaler.api.schema.schema`); a FieldType is made of them on demand, and cached for each message. A new scalar or
opaque message there needs a line in `_SCALAR_KINDS` or `_UNTYPED_MESSAGES`.

Source: the x-kubernetes-list-type, -list-map-keys and -map-type of the published types; where a list has no list type,
its patch strategy, as in kube-openapi.
"""

from functools import cache, partial
from typing import Any

from podscaler.api.managed_fields import field_types
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType, Scalar
from podscaler.api.schema import schema
from podscaler.api.schema.schema import Field, Message

_SCALAR_KINDS: dict[str, Scalar] = {  # the scalars, and the opaque messages whose JSON form is one value
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
_UNTYPED_MESSAGES = {  # the other opaque messages, whose JSON form may be a map or list
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
    return FieldType(map=MapType(_index_field_types(message).get, atomic=_is_atomic(message.map_type)))


def _index_field_types(message: Message) -> dict[str, FieldType]:
    """The types of the fields of a message, by their JSON names."""
    types_by_name = {field.name: _type_of_field(field) for field in message.json_fields()}
    if message.type_meta:
        types_by_name |= {"apiVersion": field_types.STRING, "kind": field_types.STRING}
    return types_by_name


def _type_of_field(field: Field) -> FieldType:
    """The type of a field: a list, a map, a scalar or an object."""
    get_element_type = partial(_type_of_name, field.type)
    if field.repeated:
        return FieldType(list=_list_type(field, get_element_type))
    if field.map:
        return field_types.map_of(get_element_type, atomic=_is_atomic(field.map_type))
    return _embedded_object_type(field) if field.is_object else _type_of_name(field.type)


def _is_atomic(map_type: str) -> bool:
    """Whether an x-kubernetes-map-type (empty if none is stated) says that an object or map has one owner."""
    return map_type == "atomic"


def _embedded_object_type(field: Field) -> FieldType:
    """The type of an object: the map type of its field overrides that of its message.

    The types of its own fields are made on demand, as messages may contain themselves.
    """
    message = schema.get_message(field.type)
    atomic = _is_atomic(field.map_type or message.map_type)
    return FieldType(map=MapType(partial(_find_declared, field.type), atomic=atomic))


def _find_declared(message_name: str, field_name: str) -> FieldType | None:
    """The type of a field of a message; None if it has no such field."""
    message_type = of_message(message_name).map
    return message_type.find_declared(field_name) if message_type else None


def _type_of_name(type_name: str) -> FieldType:
    """The type of the values of `Field.type`: of a scalar, an opaque message or another message."""
    scalar = _SCALAR_KINDS.get(type_name)
    if scalar:
        return FieldType(scalar=scalar)
    if type_name in _UNTYPED_MESSAGES:
        return _UNTYPED_MESSAGES[type_name]
    if schema.get_message(type_name).list:  # a message whose JSON form is a list of strings
        return FieldType(list=ListType(partial(FieldType, scalar="string")))
    return of_message(type_name)


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
        case "" if "merge" in field.patch_strategy.split(","):
            return (field.patch_merge_key,) if field.patch_merge_key else ()
        case _:  # `atomic`, or neither a list type nor a strategy
            return None


def _key_defaults(field: Field, keys: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """(key, value of an item without that key) of the keys that have such a value."""
    if field.is_scalar:
        return ()  # items of sets have no keys
    key_fields = ((key, schema.find_field(field.type, key)) for key in keys)
    defaults = ((key, _value_of_absent_key(key_field)) for key, key_field in key_fields if key_field is not None)
    return tuple((key, default) for key, default in defaults if default is not None)


def _value_of_absent_key(field: Field) -> Any:
    """The value of an absent field: its default, or Go's zero if JSON always has the field; None without either."""
    if field.default is not None or field.omitempty or field.pointer:
        return field.default
    return _zero_value(field.type)


def _zero_value(type_name: str) -> Any:
    """Go's zero value of a scalar, in JSON; None for an untyped scalar or a message."""
    scalar = _SCALAR_KINDS.get(type_name)
    return None if scalar is None else _ZERO_VALUES.get(scalar)
