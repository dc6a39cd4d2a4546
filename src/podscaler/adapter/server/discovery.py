"""Makes the discovery documents of the adapter, and its OpenAPI documents, which have no paths.

Called by `server.app`. A new API group: a MetricsApi, which `adapter.assembly` adds.

Source: k8s.io/apiserver's discovery. Differs: aggregated discovery and the paths of OpenAPI are not served; API servers
read the documents of each group and version instead.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from podscaler.adapter.server.request_info import RequestInfo
from podscaler.base.version import __version__

Object = dict[str, Any]


class MetricsApi(Protocol):
    """An API group that the adapter serves.

    Attributes:
        group: the name of the group.
        versions: the versions, the preferred one first.
    """

    @property
    def group(self) -> str: ...

    @property
    def versions(self) -> Sequence[str]: ...

    def resources(self) -> list[Object]:
        """The APIResources for discovery."""
        ...

    async def respond(self, request: RequestInfo) -> Object:
        """The object of a request. Raises StatusError."""
        ...


def documents(apis: Mapping[str, MetricsApi]) -> dict[str, Object]:
    """The documents that never change, by path."""
    groups = [group_document(api) for api in apis.values()]
    by_path: dict[str, Object] = {
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
        "/version": {"gitVersion": f"v{__version__}", "major": "", "minor": ""},
        "/openapi/v2": {"swagger": "2.0", "info": _openapi_info(), "paths": {}, "definitions": {}},
        "/openapi/v3": {"paths": {}},
    }
    for group in groups:
        by_path[f"/apis/{group['name']}"] = {"kind": "APIGroup", "apiVersion": "v1", **group}
    return by_path


def group_document(api: MetricsApi) -> Object:
    """The entry of a group in the list of groups."""
    versions = [{"groupVersion": f"{api.group}/{version}", "version": version} for version in api.versions]
    return {"name": api.group, "versions": versions, "preferredVersion": versions[0]}


def resource_list(api: MetricsApi, version: str) -> Object:
    """The resources of a group and version now."""
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{api.group}/{version}",
        "resources": api.resources(),
    }


def _openapi_info() -> Object:
    """The field `info` of OpenAPI documents."""
    return {"title": "podscaler adapter", "version": __version__}
