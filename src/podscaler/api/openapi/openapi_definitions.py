"""Converts schemas of OpenAPI v3 (`#/components/schemas/X`) to definitions of OpenAPI 2.0 (`#/definitions/X`).

Called by `podscaler.controlplane.apiserver.discovery.openapi_v2` for `/openapi/v2`, which `kubectl explain
--output=plaintext-openapiv2` reads. A keyword that OpenAPI 2.0 has, too: `_KEPT_MEMBERS`.

Source: OpenAPI 2.0 (Schema Object); kube-openapi's conversion.
"""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

# The validations of custom resources that OpenAPI 2.0 has, too, beside `pattern`.
NUMBER_LIMITS = ("multipleOf", "maximum", "minimum")
COUNT_LIMITS = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")
FLAGS = ("exclusiveMaximum", "exclusiveMinimum", "uniqueItems")
_PRESERVE_UNKNOWN_FIELDS = "x-kubernetes-preserve-unknown-fields"
GVK_EXTENSION = "x-kubernetes-group-version-kind"

_KEPT_MEMBERS = frozenset({
    *("description", "type", "format", "required", "enum", "pattern", "properties", "items", "additionalProperties"),
    *NUMBER_LIMITS,
    *COUNT_LIMITS,
    *FLAGS,
})  # fmt: skip
_EXTENSION_PREFIX = "x-"
_TYPE_META = ("kind", "apiVersion")


def definitions(schemas: Mapping[str, Json]) -> dict[str, Json]:
    """The definitions, sorted by name, of schemas by name (`components.schemas`)."""
    return {name: definition(schema) for name, schema in sorted(schemas.items())}


def definition(schema: Json) -> Json:
    """One definition: a reference keeps its description and extensions; alternatives become strings; without defaults.

    A kind whose unknown fields are preserved has no properties: kubectl would reject fields that these do not name.
    """
    description_members = {"description": schema["description"]} if schema.get("description") else {}
    referenced_name = _referenced_name(schema)
    if referenced_name:
        extensions = {key: value for key, value in schema.items() if key.startswith(_EXTENSION_PREFIX)}
        return {"$ref": f"#/definitions/{referenced_name}"} | description_members | extensions
    if schema.get(_PRESERVE_UNKNOWN_FIELDS) and GVK_EXTENSION in schema:
        return {"type": "object", GVK_EXTENSION: schema[GVK_EXTENSION]}
    kept_members = {
        key: value for key, value in schema.items() if key in _KEPT_MEMBERS or key.startswith(_EXTENSION_PREFIX)
    }
    if any("type" in alternative for alternative in schema.get("oneOf", ())) and "type" not in schema:
        kept_members["type"] = "string"
    return _convert_children(_drop_misread_members(kept_members, is_nullable=bool(schema.get("nullable"))))


def _drop_misread_members(members: Json, *, is_nullable: bool) -> Json:
    """A definition without what kubectl misreads: members of a value that may be null or have unknown fields."""
    is_open = bool(members.get(_PRESERVE_UNKNOWN_FIELDS))
    dropped_keys: set[str] = set()
    if is_nullable or is_open:
        dropped_keys = {"items", "properties"}
    if is_nullable or (is_open and members.get("type") in ("object", "array")):
        dropped_keys.add("type")
    readable = {key: value for key, value in members.items() if key not in dropped_keys}
    optional_names = {
        name for name, property_schema in readable.get("properties", {}).items() if property_schema.get("nullable")
    }
    if is_open and readable.get("x-kubernetes-embedded-resource"):
        optional_names.update(_TYPE_META)
    required = [name for name in readable.pop("required", ()) if name not in optional_names]
    return readable | ({"required": required} if required else {})


def _referenced_name(schema: Json) -> str:
    """The name of the schema to which this one refers, directly or as the only one of `allOf`; else empty."""
    alternatives = schema.get("allOf") or [schema]
    reference: str = alternatives[0].get("$ref", "") if len(alternatives) == 1 else ""
    return reference.rpartition("/")[2]


def _convert_children(members: Json) -> Json:
    """A definition with the definitions of its properties, items and additional properties."""
    own_fields = {
        key: value for key, value in members.items() if key not in ("properties", "items", "additionalProperties")
    }
    if members.get("properties"):
        own_fields["properties"] = {
            name: definition(property_schema) for name, property_schema in members["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(members.get(key), dict):
            own_fields[key] = definition(members[key])
    return own_fields
