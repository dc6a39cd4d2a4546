"""Parses discovery documents of other API servers: aggregated discovery, or an APIResourceList converted to it.

`remote_documents` calls it; it does no I/O. Two items of an APIResourceList, {"name": "pods", "kind": "Pod", ...} and
{"name": "pods/status", ...}, become one entry {"resource": "pods", "responseKind": {...}, "subresources":
[{"subresource": "status", ...}]}. A subresource of an unlisted resource gets a parent with an empty kind. A new field
concerns `_Resource` and `_discovery_entry`.

Source: kube-aggregator's conversion of an APIResourceList.
"""

from typing import Any

import msgspec

Object = dict[str, Any]


class _Resource(msgspec.Struct, rename="camel"):
    """An item of an APIResourceList (meta/v1 APIResource)."""

    name: str
    singular_name: str = ""
    namespaced: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None


class _ResourceList(msgspec.Struct):
    """An APIResourceList: the older form of discovery, one document for each group and version."""

    resources: list[_Resource] | None = None


class _Version(msgspec.Struct):
    version: str = ""
    resources: list[Object] | None = None


class _Metadata(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Metadata
    versions: list[_Version] | None = None


class _Discovery(msgspec.Struct):
    """An APIGroupDiscoveryList: aggregated discovery, one document for all groups of a server."""

    kind: str = ""
    items: list[_Group] | None = None


def find_in_discovery(body: bytes, group: str, version: str) -> list[Object] | None:
    """The resources that an APIGroupDiscoveryList has for a group and version, empty if it has none.

    None if the document is no APIGroupDiscoveryList: the server does not support aggregated discovery.

    Raises:
        msgspec.MsgspecError: the document is invalid.
    """
    document = msgspec.json.decode(body, type=_Discovery)
    if document.kind != "APIGroupDiscoveryList":
        return None
    for listed_group in document.items or ():
        for listed_version in listed_group.versions or ():
            if (listed_group.metadata.name, listed_version.version) == (group, version):
                return listed_version.resources or []
    return []


def from_resource_list(body: bytes) -> list[Object]:
    """The resources of an APIResourceList in its order, as in aggregated discovery: subresources inside their resource.

    Raises:
        msgspec.MsgspecError: the document is invalid.
    """
    resources = msgspec.json.decode(body, type=_ResourceList).resources or []
    entries = {item.name: _discovery_entry(item) for item in resources if "/" not in item.name}
    for item in resources:
        name, slash, subresource = item.name.partition("/")
        if slash:
            parent = entries.setdefault(name, _parent_without_kind(name, item))
            entry = {"subresource": subresource, "responseKind": _response_kind(item), "verbs": item.verbs or []}
            parent.setdefault("subresources", []).append(entry)
    return list(entries.values())


def _discovery_entry(resource: _Resource) -> Object:
    """The APIResourceDiscovery of a resource, without its subresources."""
    entry: Object = {
        "resource": resource.name,
        "responseKind": _response_kind(resource),
        "scope": _scope(resource),
        "singularResource": resource.singular_name,
        "verbs": resource.verbs or [],
    }
    if resource.short_names:
        entry["shortNames"] = resource.short_names
    if resource.categories:
        entry["categories"] = resource.categories
    return entry


def _parent_without_kind(name: str, subresource: _Resource) -> Object:
    """The entry of a resource that is not listed itself, but has a listed subresource."""
    empty = {"group": "", "version": "", "kind": ""}
    return {"resource": name, "responseKind": empty, "scope": _scope(subresource), "singularResource": "", "verbs": []}


def _response_kind(resource: _Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _scope(resource: _Resource) -> str:
    return "Namespaced" if resource.namespaced else "Cluster"
