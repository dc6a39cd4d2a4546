"""Maps names of resources, singular or plural (`pod`), to the resources that the API server serves (`pods`, v1).

`adapter.naming` normalizes the resources of rules and labels with it, `adapter.providers` the resources of requests. It
reads all discovery documents; where the server of a group does not respond, its last response is used.

Source: client-go's discovery REST mapper: where a resource is in several groups, that of the first group in the order
of discovery applies (the core group first); a group that is not served matches groups that begin with it.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from podscaler.adapter.config.rules import GroupResource
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client

log = logging.getLogger(__name__)

TIMEOUT_S = 32.0
"""The time limit of one request, as of client-go's discovery client."""
DISCOVERY_REQUESTS_MAX = 8
"""How many discovery documents are requested at the same time."""


@dataclass(frozen=True, slots=True)
class MappedResource:
    """A resource that the API server serves.

    Attributes:
        resource: the group and the plural name.
        version: the first version, in order of preference, that has the resource.
        kind: the kind of its objects.
        singular: the singular name.
        is_namespaced: whether the objects are in namespaces.
    """

    resource: GroupResource
    version: str
    kind: str
    singular: str
    is_namespaced: bool

    @property
    def api_version(self) -> str:
        """Group and version with a slash, `/v1` for the core group, as metrics APIs write it."""
        return f"{self.resource.group}/{self.version}"

    def path(self, namespace: str = "") -> str:
        """The path of the collection; in one namespace if one is given."""
        within = ("namespaces", namespace) if namespace else ()
        return urls.group_version(self.resource.group, self.version) + urls.path(*within, self.resource.resource)


class ServedResources(msgspec.Struct, frozen=True):
    """The served resources, in the order of preference; the result of one discovery."""

    resources: tuple[MappedResource, ...] = ()

    def find(self, resource_name: GroupResource) -> MappedResource | None:
        """The resource of that name, singular or plural, in any case; None if it is not served.

        An empty group matches any group.
        """
        name = resource_name.resource.lower()
        matching = [resource for resource in self.resources if name in (resource.resource.resource, resource.singular)]
        if not resource_name.group:
            return matching[0] if matching else None
        exact = [mapped for mapped in matching if mapped.resource.group == resource_name.group]
        prefixed = [mapped for mapped in matching if mapped.resource.group.startswith(resource_name.group)]
        return next(iter(exact or prefixed), None)


class _GroupVersion(msgspec.Struct, rename="camel"):
    """A version of a group: `apps/v1` and `v1`."""

    group_version: str = ""
    version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    """An API group and its versions."""

    name: str = ""
    versions: list[_GroupVersion] = []
    preferred_version: _GroupVersion = msgspec.field(default_factory=_GroupVersion)


class _GroupList(msgspec.Struct):
    """The response to `/apis`."""

    groups: list[_Group] = []


class _Resource(msgspec.Struct, rename="camel"):
    """A resource of a version; `name` is its plural name."""

    name: str
    kind: str = ""
    singular_name: str = ""
    namespaced: bool = False


class _ResourceList(msgspec.Struct):
    """The response to `/apis/GROUP/VERSION`, or to `/api/v1`."""

    resources: list[_Resource] = []


class RESTMapper:
    """Reads the resources that one API server serves, and stores the result for the adapter's requests.

    Args:
        client: sends the requests.

    Attributes:
        mapping: the result of the last discovery; empty before the first.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._request_slots = asyncio.Semaphore(DISCOVERY_REQUESTS_MAX)
        self._resources_by_version: dict[tuple[str, str], Sequence[_Resource]] = {}
        self.mapping = ServedResources()

    async def refresh(self) -> None:
        """Read the discovery documents. Raises StatusError if the list of groups cannot be read."""
        body = await self._client.get("/apis", subject="apis", timeout_s=TIMEOUT_S)
        try:
            groups = msgspec.json.decode(body, type=_GroupList).groups
        except JSON_DECODE_ERRORS as error:
            raise StatusError(f"the list of API groups cannot be decoded: {error}", code=0) from error
        core = _Group(versions=[_GroupVersion("v1", "v1")], preferred_version=_GroupVersion("v1", "v1"))
        group_versions = [(group.name, version) for group in (core, *groups) for version in _versions_in_order(group)]
        lists = await asyncio.gather(*(self._request_resources(group, version) for group, version in group_versions))
        self.mapping = _merge(list(zip(group_versions, lists, strict=True)))

    async def _request_resources(self, group: str, version: str) -> Sequence[_Resource]:
        """The resources of a group and version; where they cannot be read, those of the last discovery."""
        try:
            async with self._request_slots:
                path = urls.group_version(group, version)
                body = await self._client.get(path, subject=path, timeout_s=TIMEOUT_S)
            self._resources_by_version[group, version] = msgspec.json.decode(body, type=_ResourceList).resources
        except (StatusError, *JSON_DECODE_ERRORS) as error:
            log.warning("the resources of %s cannot be read: %s", "/".join(filter(None, (group, version))), error)
        return self._resources_by_version.get((group, version), ())


def _versions_in_order(group: _Group) -> list[str]:
    """The versions of a group, the preferred one first."""
    versions = [version.version for version in group.versions]
    return sorted(versions, key=lambda version: version != group.preferred_version.version)


def _merge(lists: Sequence[tuple[tuple[str, str], Sequence[_Resource]]]) -> ServedResources:
    """The resources of groups and versions in order of preference, each in the first version that has it.

    Subresources, whose names have a slash, are left out.
    """
    resources_by_name: dict[GroupResource, MappedResource] = {}
    for (group, version), resources in lists:
        for resource in resources:
            key = GroupResource(group, resource.name)
            if "/" not in resource.name and key not in resources_by_name:
                singular = resource.singular_name or resource.kind.lower()
                resources_by_name[key] = MappedResource(key, version, resource.kind, singular, resource.namespaced)
    return ServedResources(tuple(resources_by_name.values()))


def mapping_of(resources: Mapping[str, tuple[str, str, bool]]) -> ServedResources:
    """A mapping without a server, for tests and checks of configurations.

    Args:
        resources: plural name with the group behind a dot -> version, kind, and whether it is namespaced.
    """
    mapped = []
    for name, (version, kind, is_namespaced) in resources.items():
        plural, _, group = name.partition(".")
        mapped.append(MappedResource(GroupResource(group, plural), version, kind, kind.lower(), is_namespaced))
    return ServedResources(tuple(mapped))
