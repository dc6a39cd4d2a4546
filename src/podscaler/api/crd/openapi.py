"""Makes the OpenAPI v3 schemas of a custom resource: its own schema with apiVersion, kind and metadata, and its list.

Called by `records`; `podscaler.api.openapi.openapi` puts them into the documents. An extension that implies other
keywords: `_publish_schema`.

Source: the OpenAPI documents of kube-apiserver for custom resources.
Differs: the descriptions of apiVersion, kind and metadata are our own words, which begin as kube-apiserver's where its
conformance tests look for them.
"""

from collections.abc import Mapping
from typing import Any

from podscaler.api.crd.structural import Schema
from podscaler.api.schema import openapi_schemas

Json = dict[str, Any]

_API_VERSION = "APIVersion defines which version of the schema this representation has."
_KIND = "The REST resource that this object represents."


def message_name(group: str, version: str, kind: str) -> str:
    """The name that replaces the name of a message for a custom kind: `custom:com.example.v1.Widget`."""
    return f"{openapi_schemas.CUSTOM}{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


def components(schema: Schema, gvk: Mapping[str, str], *, plural: str, list_kind: str) -> dict[str, Json]:
    """The schemas of an object and of a list, by their names in `components.schemas`.

    Args:
        schema: the version's openAPIV3Schema.
        gvk: group, version and kind.
        plural: of the resource.
        list_kind: of its lists.
    """
    schema_name, list_name = (
        openapi_schemas.name(message_name(gvk["group"], gvk["version"], kind)) for kind in (gvk["kind"], list_kind)
    )
    published = _publish_schema(schema)
    properties = {**(published.get("properties") or {}), **_object_properties()}
    return {
        schema_name: published
        | {"properties": _sort_by_name(properties), "x-kubernetes-group-version-kind": [dict(gvk)]},
        list_name: _list_schema(schema_name, dict(gvk), plural=plural, list_kind=list_kind),
    }


def _publish_schema(schema: Schema) -> Json:
    """A schema with the fields of embedded objects and the types of int-or-string, which its extensions imply."""
    published: Json = dict(schema)
    if isinstance(schema.get("properties"), dict):
        published["properties"] = {
            name: _publish_schema(property_schema) for name, property_schema in schema["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            published[key] = _publish_schema(schema[key])
    if schema.get("x-kubernetes-int-or-string") and not schema.get("anyOf"):
        published["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get("x-kubernetes-embedded-resource"):
        published["properties"] = _sort_by_name({**published.get("properties", {}), **_object_properties()})
        required = schema.get("required") or []
        published["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
    return published


def _object_properties() -> Json:
    return _common_properties("meta/v1.ObjectMeta", "Standard object's metadata.")


def _sort_by_name(properties: Json) -> Json:
    return dict(sorted(properties.items()))


def _common_properties(metadata_message: str, metadata_description: str) -> Json:
    """The properties apiVersion, kind and metadata, whose schema is that of a message."""
    return {
        "apiVersion": {"description": _API_VERSION, "type": "string"},
        "kind": {"description": _KIND, "type": "string"},
        "metadata": {"description": metadata_description, "allOf": [openapi_schemas.reference(metadata_message)]},
    }


def _list_schema(schema_name: str, gvk: Json, *, plural: str, list_kind: str) -> Json:
    """The schema of the list of a kind."""
    items = {
        "description": f"List of {plural}.",
        "type": "array",
        "items": {"$ref": f"#/components/schemas/{schema_name}"},
    }
    properties = {"items": items, **_common_properties("meta/v1.ListMeta", "Standard list metadata.")}
    return {
        "description": f"{list_kind} is a list of {gvk['kind']}",
        "type": "object",
        "required": ["items"],
        "properties": _sort_by_name(properties),
        "x-kubernetes-group-version-kind": [{**gvk, "kind": list_kind}],
    }
