"""Reads the discovery and OpenAPI documents of other API servers, every minute, for this server's own discovery.

`aggregation_layer.Aggregation` runs it in a `control_loop.ControlLoop`; keys are names of APIServices, such as
`v1beta1.metrics.k8s.io`. If a server does not respond, its last documents stay and count as stale. A new document: a
field of `RemoteDiscovery`, which `_read_version` fills in.

Source: kube-aggregator's discovery manager (`/apis` in the aggregated form, else the list of the group and version) and
its OpenAPI v3 aggregator.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from podscaler.controlplane.aggregator import discovery_parsing, proxy_headers, service_resolver
from podscaler.controlplane.aggregator.remote_versions import API_SERVICES, Remote, RemoteVersions
from podscaler.controlplane.aggregator.server_connections import APIServerConnections, UnusableBundle
from podscaler.controlplane.aggregator.service_resolver import Unreachable
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.registry.users import User

READ_PERIOD_S = 60.0
READ_TIMEOUT_S = 5.0
DOCUMENT_MAX_BYTES = 16 << 20
AGGREGATED_DISCOVERY_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

Object = dict[str, Any]
_log = logging.getLogger(__name__)


class NoDocument(Exception):
    """A server did not respond with the requested document."""


@dataclass(frozen=True, slots=True)
class RemoteDiscovery:
    """The discovery of one group and version of another server.

    Attributes:
        resources: the resources, in the form of aggregated discovery (APIResourceDiscovery).
        is_fresh: whether the last request for it succeeded.
        openapi_url: the path, with hash, of its OpenAPI document; empty if it has none.
    """

    resources: Sequence[Object] = field(default=())
    is_fresh: bool = False
    openapi_url: str = ""


NOT_READ = RemoteDiscovery()
"""What is known of a server before its first response."""


class _OpenApiReference(msgspec.Struct):
    server_relative_url: str = msgspec.field(name="serverRelativeURL", default="")


class _OpenApiIndex(msgspec.Struct):
    """The document /openapi/v3: {"paths": {"apis/GROUP/VERSION": {"serverRelativeURL": "/openapi/v3/..."}}}."""

    paths: dict[str, _OpenApiReference] = msgspec.field(default_factory=dict)


class RemoteDocuments(Reconciler[str]):
    """The controller that reads the documents, and their latest state.

    Attributes:
        generation: increases whenever a document changes.
    """

    name = "remote-discovery"

    def __init__(self, registry: Registry, remotes: RemoteVersions, connections: APIServerConnections) -> None:
        self.generation = 0
        self._registry = registry
        self._remotes = remotes
        self._connections = connections
        self._documents: dict[str, RemoteDiscovery] = {}

    def of(self, remote: Remote) -> RemoteDiscovery:
        """The discovery of a group and version; empty and stale before the first response."""
        return self._documents.get(remote.name, NOT_READ)

    def watches(self) -> Sequence[Watched[str]]:
        """APIServices, whose condition Available matters."""
        return [Watched(API_SERVICES, lambda event: [event.object["metadata"]["name"]])]

    def prime(self) -> Iterable[str]:
        """The names of the APIServices of other servers, and of those with documents."""
        return {*self._documents, *(remote.name for remote in self._remotes.all())}

    async def sync(self, key: str) -> float | None:
        """Read the documents of the APIService named `key`, and close the connections to servers that are gone.

        Returns the seconds until the next reading; None if no other server serves the APIService.
        """
        version, _, group = key.partition(".")
        remote = self._remotes.find(group, version)
        self._replace_documents(key, await self._read_version(remote) if remote is not None else None)
        await self._connections.keep_only(self._remotes.all())
        return READ_PERIOD_S if remote is not None else None

    def _replace_documents(self, key: str, documents: RemoteDiscovery | None) -> None:
        """Replace the documents of a server; a new generation begins if they differ."""
        if self._documents.get(key) == documents:
            return
        if documents is None:
            del self._documents[key]
        else:
            self._documents[key] = documents
        self.generation += 1

    async def _read_version(self, remote: Remote) -> RemoteDiscovery:
        """The documents of a server; if it does not respond, those that it had before, marked stale."""
        previous = self.of(remote)
        stale = RemoteDiscovery(previous.resources, openapi_url=previous.openapi_url)
        if not remote.is_available:
            return stale
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                resources = await self._read_resources(remote)
                return RemoteDiscovery(resources, is_fresh=True, openapi_url=await self._read_openapi_url(remote))
        except (NoDocument, msgspec.MsgspecError, Unreachable, UnusableBundle, aiohttp.ClientError, OSError) as error:
            cause = str(error) or "timeout"  # a TimeoutError, which is an OSError, has no text
            _log.info("%s: cannot read the discovery of %s: %s", self.name, remote.name, cause)
            return stale

    async def _read_resources(self, remote: Remote) -> Sequence[Object]:
        """The resources of a server, from aggregated discovery or, of older servers, from an APIResourceList.

        Raises NoDocument, msgspec.MsgspecError, and the errors of a connection.
        """
        try:
            body = await self._read_body(remote, "/apis", proxy_headers.AGGREGATOR_USER, AGGREGATED_DISCOVERY_TYPE)
            resources = await asyncio.to_thread(discovery_parsing.find_in_discovery, body, remote.group, remote.version)
        except (NoDocument, msgspec.MsgspecError):
            resources = None  # older servers have no such document
        if resources is not None:
            return resources
        body = await self._read_body(remote, remote.path, proxy_headers.DISCOVERY_USER, "application/json")
        return await asyncio.to_thread(discovery_parsing.from_resource_list, body)

    async def _read_openapi_url(self, remote: Remote) -> str:
        """The URL of the server's OpenAPI document; empty if it has none. Raises the errors of a connection."""
        try:
            body = await self._read_body(remote, "/openapi/v3", proxy_headers.OPENAPI_USER, "application/json")
            paths = (await asyncio.to_thread(msgspec.json.decode, body, type=_OpenApiIndex)).paths
        except (NoDocument, msgspec.MsgspecError):
            return ""
        reference = paths.get(remote.path.removeprefix("/"))
        url = reference.server_relative_url if reference is not None else ""
        # clients follow the URL with their own rights: only the document itself may be there
        return url if url.partition("?")[0] == f"/openapi/v3{remote.path}" else ""

    async def _read_body(self, remote: Remote, path: str, user: User, accept: str) -> bytes:
        """The document at `path`, requested as `user`.

        Raises NoDocument, and the errors of a connection: Unreachable, UnusableBundle, aiohttp.ClientError, OSError.
        """
        # all endpoints of a server have the same documents
        address, *_ = service_resolver.resolve(self._registry, remote.namespace, remote.service, remote.port)
        headers = proxy_headers.user_headers(user)
        headers["Accept"] = accept
        response = await self._connections.send(remote, address, path=path, headers=headers)
        try:
            if response.status != 200:
                raise NoDocument(f"{path}: status {response.status}")
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > DOCUMENT_MAX_BYTES:
                    raise NoDocument(f"{path}: more than {DOCUMENT_MAX_BYTES} bytes")
            return bytes(body)
        finally:
            response.release()
