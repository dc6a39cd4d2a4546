"""Makes the `components.schemas` of OpenAPI v3 documents from the facts about the API types.

    name("autoscaling/v2.MetricSpec")                      "io.k8s.api.autoscaling.v2.MetricSpec"
    schemas_of(["autoscaling/v2.MetricSpec"], {})[that name]       {"type": "object", "properties": {"type": ...}, ...}

Called by `podscaler.api.openapi.openapi` and, for custom resources, by `podscaler.api.crd.openapi`. A new scalar or
opaque type of `schema`: `_SCALAR_SCHEMAS`, `_OPAQUE_SCHEMAS`.

Source: the golden OpenAPI documents of autoscaling v1 and v2; the markers of the other API types.
Differs: descriptions are our own words.
"""

from collections.abc import Iterable
from typing import Any

from podscaler.api.schema import descriptions, schema
from podscaler.api.schema.schema import Field, Message

Json = dict[str, Any]

CUSTOM = "custom:"
"""The prefix of names that replace the name of a message for custom resources; the rest is the name of the schema."""

PATCH = "meta/v1.Patch"
"""The name of the schema of any patch, which is no message."""

_SCALAR_SCHEMAS: dict[str, Json] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "uint32": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
}
_ZERO_DEFAULTS: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "uint32": 0, "double": 0}
_OPAQUE_SCHEMAS: dict[str, Json] = {
    schema.QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    schema.TIME: {"type": "string", "format": "date-time"},
    schema.MICRO_TIME: {"type": "string", "format": "date-time"},
    schema.DURATION: {"type": "string"},
    schema.INT_OR_STRING: {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    schema.RAW_EXTENSION: {"type": "object"},
    schema.FIELDS_V1: {"type": "object"},
    PATCH: {"type": "object"},
}
_TYPE_META = (
    Field(name="apiVersion", type="string", omitempty=True),
    Field(name="kind", type="string", omitempty=True),
)


def name(message: str) -> str:
    """The name of a message's schema. Raises KeyError for an unknown package."""
    if message.startswith(CUSTOM):
        return message.removeprefix(CUSTOM)
    package, _, short_name = message.rpartition(".")
    domain, *path = schema.go_package(package).split("/")
    return ".".join([*reversed(domain.split(".")), *path, short_name])


def reference(message: str) -> Json:
    """The `$ref` to a message's schema."""
    return {"$ref": f"#/components/schemas/{name(message)}"}


def schemas_of(messages: Iterable[str], kinds: dict[str, list[Json]]) -> Json:
    """The schemas of messages and of all messages to which they refer, by name, sorted.

    Args:
        messages: names of messages; PATCH and names with the prefix CUSTOM are allowed.
        kinds: message -> its `x-kubernetes-group-version-kind`: a list of {group, kind, version}.
    """
    roots = [message for message in messages if message != PATCH and not message.startswith(CUSTOM)]
    message_names = {message for message in schema.reachable(roots) if not _is_named_list(message)}
    schemas = {name(message): _message_schema(message, kinds.get(message, [])) for message in message_names | {PATCH}}
    return dict(sorted(schemas.items()))


def _is_named_list(message: str) -> bool:
    """Whether a message is a named list, such as meta/v1.Verbs: its schema is repeated wherever it is used."""
    return schema.get_message(message).list


def _message_schema(message: str, kinds: list[Json]) -> Json:
    """The schema of a message, with the kinds that it stands for."""
    description = _description_keyword(descriptions.of_message(message))
    if message in schema.OPAQUE or message == PATCH:
        return description | _OPAQUE_SCHEMAS.get(message, {})
    message_type = schema.get_message(message)
    json_schema = description | _object_schema(message_type)
    if kinds:
        json_schema["x-kubernetes-group-version-kind"] = kinds
    if message_type.map_type:
        json_schema["x-kubernetes-map-type"] = message_type.map_type
    return json_schema


def _object_schema(message: Message) -> Json:
    """The properties of a message, in the order of their names, and those that are required."""
    fields = [*(_TYPE_META if message.type_meta else ()), *message.json_fields()]
    json_schema: Json = {"type": "object"}
    required = [field.name for field in fields if field.required]
    if required:
        json_schema["required"] = required
    properties = {field.name: _property_schema(message, field) for field in fields}
    if properties:
        json_schema["properties"] = dict(sorted(properties.items()))
    return json_schema


def _property_schema(message: Message, field: Field) -> Json:
    """The schema of a field with its description, its default and its merge extensions."""
    json_schema = _description_keyword(descriptions.of_field(message.name, field.name)) | _value_schema(field)
    default = field.default if field.default is not None else _zero_default(field)
    if default is not None:
        json_schema["default"] = default
    return json_schema | _merge_extensions(field)


def _value_schema(field: Field) -> Json:
    """The schema of a field: a list, a map, a single value; a reference is in `allOf`: `$ref` hides other keywords."""
    if field.repeated:
        return {"type": "array", "items": _element_schema(field)}
    if field.map:
        return {"type": "object", "additionalProperties": _element_schema(field)}
    element = _element_schema(field)
    return {"allOf": [element]} if "$ref" in element else element


def _element_schema(field: Field) -> Json:
    """The schema of a single value of the field's type: a scalar, a list of texts, or a reference."""
    if field.is_scalar:
        return _SCALAR_SCHEMAS[field.type] | ({"enum": list(field.enum)} if field.enum else {})
    if _is_named_list(field.type):
        return {"type": "array", "items": {"type": "string"}}
    return reference(field.type)


def _zero_default(field: Field) -> Any:
    """The default of a field that Go cannot leave unset: its zero value; None for other fields."""
    if field.repeated or field.map or field.pointer or (not field.is_scalar and field.type in schema.OPAQUE):
        return None
    if field.is_scalar:
        return None if field.omitempty else _ZERO_DEFAULTS.get(field.type)
    return None if _is_named_list(field.type) else {}


def _merge_extensions(field: Field) -> Json:
    """The `x-kubernetes-*` extensions about server-side apply and strategic merge patches."""
    extensions = {
        "x-kubernetes-list-type": field.list_type,
        "x-kubernetes-list-map-keys": list(field.list_map_keys),
        "x-kubernetes-map-type": field.map_type,
        "x-kubernetes-patch-strategy": field.patch_strategy,
        "x-kubernetes-patch-merge-key": field.patch_merge_key,
    }
    return {key: value for key, value in extensions.items() if value}


def _description_keyword(text: str) -> Json:
    return {"description": text} if text else {}
