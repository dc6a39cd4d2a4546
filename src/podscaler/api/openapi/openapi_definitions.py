"""Converts schemas of OpenAPI v3 (`#/components/schemas/X`) to definitions of OpenAPI 2.0 (`#/definitions/X`).

Called by the API server for `/openapi/v2`, which `kubectl explain --output=plaintext-openapiv2` reads.

Source: OpenAPI 2.0 (Schema Object); kube-openapi's conversion.
"""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

_KEPT = ("description", "type", "format", "required", "enum")
_EXTENSION = "x-"


def definitions(schemas: Mapping[str, Json]) -> dict[str, Json]:
    """The definitions, sorted by name, of schemas by name (`components.schemas`)."""
    return {name: definition(schema) for name, schema in sorted(schemas.items())}


def definition(schema: Json) -> Json:
    """One definition: a reference keeps only its description, alternatives become strings, defaults are dropped."""
    described = {"description": schema["description"]} if schema.get("description") else {}
    target = _target(schema)
    if target:
        return {"$ref": f"#/definitions/{target}"} | described
    kept_members = {key: value for key, value in schema.items() if key in _KEPT or key.startswith(_EXTENSION)}
    if "oneOf" in schema and "type" not in schema:
        kept_members["type"] = "string"
    return kept_members | _parts(schema)


def _target(schema: Json) -> str:
    """The name of the schema to which this one refers, directly or as the only one of `allOf`; else empty."""
    alternatives = schema.get("allOf") or [schema]
    reference: str = alternatives[0].get("$ref", "") if len(alternatives) == 1 else ""
    return reference.rpartition("/")[2]


def _parts(schema: Json) -> Json:
    parts: Json = {}
    if schema.get("properties"):
        parts["properties"] = {
            name: definition(property_schema) for name, property_schema in schema["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            parts[key] = definition(schema[key])
    return parts
