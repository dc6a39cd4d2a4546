"""An API server in the test's own event loop, on a store of its own, with a client that speaks plain HTTP.

Called by the tests of the server package.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from podscaler.api.kinds import catalog
from podscaler.api.resource.resources import Resource
from podscaler.controlplane.apiserver.app import ApiServer
from podscaler.controlplane.apiserver.http.resource_request import NO_PARTS, ServerParts
from podscaler.controlplane.auth.account_tokens import AccountTokens
from podscaler.controlplane.auth.authenticator import Authenticator
from podscaler.controlplane.credentials import signing_key
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.users import ADMIN, User
from podscaler.controlplane.storage.store import open_store, run_inline
from podscaler.testing import VirtualClock

Object = dict[str, Any]
ADMIN_TOKEN = "admin-token"
VIEWER_TOKEN = "viewer-token"


@dataclass(frozen=True)
class Reply:
    """One answer; `body` is decoded JSON where it is JSON, else text."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass
class Running:
    """A started server and its client."""

    server: ApiServer
    objects: Objects
    clock: VirtualClock
    client: aiohttp.ClientSession
    url: str
    accounts: AccountTokens

    async def request(self, method: str, path: str, **arguments: Any) -> Reply:
        """Send one request as the admin, unless `headers` say otherwise; `json` and `data` as aiohttp has them."""
        async with self.client.request(method, self.url + path, **arguments) as answer:
            text = await answer.text()
            is_json = answer.content_type == "application/json" and text
            return Reply(answer.status, json.loads(text) if is_json else text, answer.headers)

    async def get(self, path: str, **arguments: Any) -> Reply:
        """GET."""
        return await self.request("GET", path, **arguments)

    async def create(self, path: str, obj: Object) -> Object:
        """POST an object that must be accepted."""
        reply = await self.request("POST", path, json=obj)
        assert reply.status == 201, reply.body
        created: Object = reply.body
        return created


@asynccontextmanager
async def running_server(
    folder: Path, parts: ServerParts = NO_PARTS, resources: Sequence[Resource] = catalog.RESOURCES
) -> AsyncIterator[Running]:
    """A server with the namespace `default` in it."""
    clock = VirtualClock()
    store = await open_store(folder, clock, run=run_inline, is_synced=False)
    objects = Objects(store, [resource for resource in resources if resource.stored])
    accounts = AccountTokens(signing_key.generate(), objects.find, clock)
    users = Authenticator({ADMIN_TOKEN: ADMIN, VIEWER_TOKEN: User("viewer", ("viewers",))}, accounts)
    parts = replace(parts, accounts=accounts)
    server = ApiServer(objects, resources, authenticator=users, tls=None, clock=clock, parts=parts)
    port = await server.start("127.0.0.1", 0)
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0)) as client:
        running = Running(server, objects, clock, client, f"http://127.0.0.1:{port}", accounts)
        await running.create("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "default"}})
        yield running
    await server.stop()
    await store.close()


def config_map(name: str, **data: str) -> Object:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
