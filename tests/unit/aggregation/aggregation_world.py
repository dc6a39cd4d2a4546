"""An API server with the aggregation layer, and another one behind it, in the test's own event loop.

Nothing runs by itself: `check` looks whether the other server is there, `ask` what it serves.
"""

import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from podscaler.api.kinds import catalog
from podscaler.controlplane.aggregator.aggregation_layer import Aggregation
from podscaler.controlplane.aggregator.availability import Availability
from podscaler.controlplane.apiserver.app import ApiServer
from podscaler.controlplane.apiserver.http.resource_request import NO_PARTS, ServerParts
from podscaler.controlplane.auth.authenticator import Authenticator
from podscaler.controlplane.credentials import front_proxy
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.registry.users import ADMIN, User
from podscaler.controlplane.storage.store import open_store, run_inline
from podscaler.testing import VirtualClock, extension_server
from podscaler.testing.extension_server import ExtensionServer

Object = dict[str, Any]
GROUP = "things.example.com"
ROOT = f"/apis/{GROUP}/v1"
NAME = f"v1.{GROUP}"
APISERVICES = "apiservices.apiregistration.k8s.io"
SERVICE = "extension"
SERVER_NAME = f"{SERVICE}.default.svc"
RESOURCE = {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get", "list"]}
RESOURCE_LIST = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1", "resources": [RESOURCE]}
THINGS = {"kind": "ThingList", "apiVersion": f"{GROUP}/v1", "metadata": {}, "items": []}
USERS = {
    "admin": ADMIN,
    "viewer": User("viewer", ("viewers",)),
    "known": User("ann", ("ops",), "7", {"a/B%": ["x", "y"]}),
}


@dataclass(frozen=True)
class Reply:
    """One answer; `body` is decoded JSON where it is JSON, else text."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass
class World:
    """Both servers, and a client of the first."""

    registry: Registry
    clock: VirtualClock
    aggregation: Aggregation
    extension: ExtensionServer
    authority: bytes
    client: aiohttp.ClientSession
    url: str
    server: ApiServer

    async def request(self, method: str, path: str, *, token: str = "admin", **arguments: Any) -> Reply:
        """Send one request, as the admin unless `token` says otherwise."""
        headers = {"Authorization": f"Bearer {token}", **arguments.pop("headers", {})}
        async with self.client.request(method, self.url + path, headers=headers, **arguments) as answer:
            text = await answer.text()
            is_json = answer.content_type == "application/json" and text
            return Reply(answer.status, json.loads(text) if is_json else text, answer.headers)

    async def get(self, path: str, **arguments: Any) -> Reply:
        """GET."""
        return await self.request("GET", path, **arguments)

    async def serve(self, **service: Any) -> None:
        """Make the Service that leads to the other server: by its external name, or as `service` says."""
        spec = {"type": "ExternalName", "externalName": "localhost", **service}
        body = {"metadata": {"name": SERVICE, "namespace": "default"}, "spec": spec}
        await self.registry.create("services", body)

    async def register(self, group: str = GROUP, version: str = "v1", **spec: Any) -> None:
        """Make the APIService that leads there, with the right authority unless `spec` says otherwise."""
        reference = {"namespace": "default", "name": SERVICE, "port": self.extension.port}
        trust = {} if "insecureSkipTLSVerify" in spec else {"caBundle": base64.b64encode(self.authority).decode()}
        priorities = {"groupPriorityMinimum": 100, "versionPriority": 100}
        full = {"group": group, "version": version, "service": reference, **trust, **priorities, **spec}
        await self.registry.create(APISERVICES, {"metadata": {"name": f"{version}.{group}"}, "spec": full})

    async def check(self, name: str = NAME) -> tuple[str, str, str]:
        """Look whether the server is there; what is said of it then."""
        checker = Availability(self.registry, self.aggregation.remotes, self.aggregation.connections, self.clock)
        await checker.sync(name)
        return self.said(name)

    def said(self, name: str = NAME) -> tuple[str, str, str]:
        """Status, reason and message of the condition; empty where there is none."""
        conditions = self.registry.get(APISERVICES, "", name).get("status", {}).get("conditions") or [{}]
        return tuple(conditions[0].get(key, "") for key in ("status", "reason", "message"))  # type: ignore[return-value]  # three

    async def ask(self, name: str = NAME) -> None:
        """Ask the server what it serves."""
        await self.aggregation.documents.sync(name)

    async def aggregate(self) -> None:
        """All of it, in a way that works."""
        await self.serve()
        await self.register()
        assert (await self.check())[0] == "True"


@asynccontextmanager
async def open_world(folder: Path, parts: ServerParts = NO_PARTS) -> AsyncIterator[World]:
    """Both servers, with nothing that leads from one to the other."""
    clock = VirtualClock()
    store = await open_store(folder / "data", clock, run=run_inline, is_synced=False)
    objects = Objects(store, [resource for resource in catalog.RESOURCES if resource.stored])
    registry = Registry(objects)
    await registry.create("namespaces", {"metadata": {"name": "default"}})
    proxy = front_proxy.ensure(folder / "front-proxy", now_ns=time.time_ns())
    aggregation = Aggregation(objects, clock, proxy.client_path)
    authority = extension_server.write_certificate(folder / "extension.pem", SERVER_NAME)
    extension = ExtensionServer(folder / "extension.pem", proxy.authority_pem, {ROOT: RESOURCE_LIST})
    await extension.start()
    server = ApiServer(
        objects,
        catalog.RESOURCES,
        authenticator=Authenticator(USERS),
        tls=None,
        clock=clock,
        parts=replace(parts, aggregation=aggregation),
    )
    port = await server.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{port}"
        yield World(registry, clock, aggregation, extension, authority, client, url, server)
    await server.stop()
    await aggregation.close()
    await extension.stop()
    await store.close()
