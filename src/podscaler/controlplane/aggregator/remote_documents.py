"""What other API servers say they serve: kept for discovery, and asked for again every minute.

`layer.Aggregation` runs it in a `control_loop.ControlLoop`; keys are names of APIServices. What a server said stays
when it does not answer any more, and is called stale then.

Source: upstream's discovery manager (`/apis` in the aggregated form, else the list of the group and version) and its
OpenAPI v3 aggregator.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from podscaler.controlplane.aggregator import identity, resource_lists, service_resolver
from podscaler.controlplane.aggregator.connections import APIServerConnections, UnusableBundle
from podscaler.controlplane.aggregator.service_resolver import Unreachable
from podscaler.controlplane.aggregator.versions import RESOURCE, Remote, RemoteVersions
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.registry.users import User

PERIOD_S = 60.0
TIMEOUT_S = 5.0
DOCUMENT_MAX_BYTES = 16 << 20
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

Object = dict[str, Any]
_log = logging.getLogger(__name__)


class NoDocument(Exception):
    """A server did not answer with the document that it was asked for."""


@dataclass(frozen=True, slots=True)
class RemoteVersion:
    """What is known of a group and version.

    Attributes:
        resources: as in aggregated discovery.
        is_fresh: whether the server said so when it was last asked.
        openapi_url: the path of its OpenAPI document with its hash, empty where it has none.
    """

    resources: Sequence[Object] = field(default=())
    is_fresh: bool = False
    openapi_url: str = ""


UNTOLD = RemoteVersion()


class _Url(msgspec.Struct):
    server_relative_url: str = msgspec.field(name="serverRelativeURL", default="")


class _OpenApiIndex(msgspec.Struct):
    paths: dict[str, _Url] = msgspec.field(default_factory=dict)


class RemoteDocuments(Reconciler[str]):
    """See the module.

    Attributes:
        generation: rises with each change of what is known.
    """

    name = "remote-discovery"

    def __init__(self, registry: Registry, remotes: RemoteVersions, connections: APIServerConnections) -> None:
        self.generation = 0
        self._registry = registry
        self._remotes = remotes
        self._connections = connections
        self._told: dict[str, RemoteVersion] = {}

    def told(self, remote: Remote) -> RemoteVersion:
        """What is known of it."""
        return self._told.get(remote.name, UNTOLD)

    def watches(self) -> Sequence[Watched[str]]:
        """APIServices, for being available among other things."""
        return [Watched(RESOURCE, lambda change: [change.object["metadata"]["name"]])]

    def prime(self) -> Iterable[str]:
        """All that others serve, and all that they did."""
        return {*self._told, *(remote.name for remote in self._remotes.all())}

    async def sync(self, key: str) -> float | None:
        """Ask again."""
        version, _, group = key.partition(".")
        remote = self._remotes.find(group, version)
        self._keep(key, await self._ask(remote) if remote is not None else None)
        await self._connections.keep_only(self._remotes.all())
        return PERIOD_S if remote is not None else None

    def _keep(self, key: str, told: RemoteVersion | None) -> None:
        if self._told.get(key) == told:
            return
        if told is None:
            del self._told[key]
        else:
            self._told[key] = told
        self.generation += 1

    async def _ask(self, remote: Remote) -> RemoteVersion:
        before = self.told(remote)
        stale = RemoteVersion(before.resources, openapi_url=before.openapi_url)
        if not remote.is_available:
            return stale
        try:
            async with asyncio.timeout(TIMEOUT_S):
                resources = await self._resources(remote)
                return RemoteVersion(resources, is_fresh=True, openapi_url=await self._openapi_url(remote))
        except (NoDocument, msgspec.MsgspecError, Unreachable, UnusableBundle, aiohttp.ClientError, OSError) as error:
            _log.info("%s: %s does not say what it serves: %s", self.name, remote.name, error or "it takes too long")
            return stale

    async def _resources(self, remote: Remote) -> Sequence[Object]:
        try:
            body = await self._read(remote, "/apis", identity.AGGREGATOR, AGGREGATED)
            found = await asyncio.to_thread(resource_lists.find_in_discovery, body, remote.group, remote.version)
        except (NoDocument, msgspec.MsgspecError):
            found = None  # older servers have no such document
        if found is not None:
            return found
        body = await self._read(remote, remote.path, identity.DISCOVERER, "application/json")
        return await asyncio.to_thread(resource_lists.of_list, body)

    async def _openapi_url(self, remote: Remote) -> str:
        try:
            body = await self._read(remote, "/openapi/v3", identity.DOCUMENTER, "application/json")
            paths = (await asyncio.to_thread(msgspec.json.decode, body, type=_OpenApiIndex)).paths
        except (NoDocument, msgspec.MsgspecError):
            return ""
        found = paths.get(remote.path.removeprefix("/"))
        url = found.server_relative_url if found is not None else ""
        return (
            url if url.partition("?")[0] == f"/openapi/v3{remote.path}" else ""
        )  # clients follow it with their rights

    async def _read(self, remote: Remote, path: str, user: User, accept: str) -> bytes:
        address = service_resolver.addresses(self._registry, remote.namespace, remote.service, remote.port)[0]
        headers = identity.headers_of(user)
        headers["Accept"] = accept
        answer = await self._connections.send(remote, address, path=path, headers=headers)
        try:
            if answer.status != 200:
                raise NoDocument(f"{path}: status {answer.status}")
            body = bytearray()
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > DOCUMENT_MAX_BYTES:
                    raise NoDocument(f"{path}: more than {DOCUMENT_MAX_BYTES} bytes")
            return bytes(body)
        finally:
            answer.release()
