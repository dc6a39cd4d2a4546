"""Makes the OpenAPI v3 schemas of a custom resource: its own schema with apiVersion, kind and metadata, and its list.

Called by `records`; `podscaler.api.openapi.openapi` puts them into the documents.

Source: the OpenAPI documents of kube-apiserver for custom resources.
Differs: the descriptions of apiVersion, kind and metadata are our own words.
"""

from collections.abc import Mapping
from typing import Any

from podscaler.api.crd.structural import Schema
from podscaler.api.schema import openapi_schemas

Json = dict[str, Any]

_API_VERSION = "The versioned schema of this representation of an object."
_KIND = "The REST resource that this object represents."


def message(group: str, version: str, kind: str) -> str:
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
    schema_name = openapi_schemas.name(message(gvk["group"], gvk["version"], gvk["kind"]))
    properties = {**(schema.get("properties") or {}), **_common("meta/v1.ObjectMeta", "Standard object metadata.")}
    return {
        schema_name: schema
        | {"properties": dict(sorted(properties.items())), "x-kubernetes-group-version-kind": [dict(gvk)]},
        f"{schema_name}List": _list(schema_name, dict(gvk), plural=plural, list_kind=list_kind),
    }


def _common(metadata: str, described: str) -> Json:
    return {
        "apiVersion": {"description": _API_VERSION, "type": "string"},
        "kind": {"description": _KIND, "type": "string"},
        "metadata": {"description": described, "allOf": [openapi_schemas.reference(metadata)]},
    }


def _list(schema_name: str, gvk: Json, *, plural: str, list_kind: str) -> Json:
    items = {
        "description": f"List of {plural}.",
        "type": "array",
        "items": {"$ref": f"#/components/schemas/{schema_name}"},
    }
    properties = {"items": items, **_common("meta/v1.ListMeta", "Standard list metadata.")}
    return {
        "description": f"{list_kind} is a list of {gvk['kind']}",
        "type": "object",
        "required": ["items"],
        "properties": dict(sorted(properties.items())),
        "x-kubernetes-group-version-kind": [{**gvk, "kind": list_kind}],
    }
