"""A dashboard server on a real socket over a fake cluster in virtual time, and its viewer, for tests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from observed_world import ObservedWorld
from podscaler.base.errors import StatusError
from podscaler.dashboard.server import DashboardOptions, DashboardServer
from podscaler.kube.client.client import Client

WEB_PATH = "/api/autoscalers/shop/web"


class DashboardViewer:
    """An HTTP client with a cookie jar, as one browser."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        """The status and the JSON of the response."""
        async with self.session.get(self.url + path, headers=headers) as response:
            return response.status, await response.json()

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        """The status and the JSON of the response."""
        async with self.session.post(self.url + path, json=body, headers=headers) as response:
            return response.status, await response.json()

    async def login(self, link: str) -> tuple[int, Any]:
        """Redeem the token of a login link."""
        return await self.post("/login", {"token": link.partition("#token=")[2]})

    @asynccontextmanager
    async def events(self, query: str = "", **headers: str) -> AsyncIterator["EventReader"]:
        """The event stream."""
        async with self.session.get(f"{self.url}/api/stream{query}", headers=headers) as response:
            assert response.status == 200, await response.text()
            yield EventReader(response)


class EventReader:
    """Reads server-sent events."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.last_id = ""

    async def next(self) -> tuple[str, Any]:
        """The name and the data of the next event; a comment has the name `comment`."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(20):
            while True:
                line = (await self._response.content.readline()).decode()
                if not line:
                    raise EOFError
                if line == "\n":
                    break
                name, _, value = line.rstrip("\n").partition(": ")
                fields[name] = value
        self.last_id = fields.get("id", self.last_id)
        if "event" not in fields:
            return "comment", fields[""] if "" in fields else next(iter(fields)).removeprefix(": ")
        return fields["event"], json.loads(fields["data"])


class DashboardWorld:
    """The cluster, the server and one viewer; `open` makes it."""

    def __init__(self, cluster: ObservedWorld, server: DashboardServer, viewer: DashboardViewer) -> None:
        self.cluster = cluster
        self.server = server
        self.viewer = viewer

    @classmethod
    @asynccontextmanager
    async def open(
        cls, *, options: DashboardOptions | None = None, is_logged_in: bool = True, failing: Any = None, **settings: Any
    ) -> AsyncIterator["DashboardWorld"]:
        """A running server whose cluster has the autoscaler shop/web with 2 pods at 100 % of their requests.

        Args:
            options: how it is served.
            is_logged_in: whether the viewer is logged in.
            failing: what the API server replies to every request from the start; None: it works.
            settings: of the controller.
        """
        cluster = ObservedWorld(**settings)
        cluster.add_web(cpu="1000m", replicas=2)
        if failing is not None:
            cluster.cluster.fail(failing)
        server = DashboardServer(cluster.live, cluster.clock, options or DashboardOptions())
        await server.start()
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            world = cls(cluster, server, DashboardViewer(session, server.url))
            try:
                await cluster.start()
                if is_logged_in:
                    assert (await world.viewer.login(server.login_link()))[0] == 200
                yield world
            finally:
                await server.stop()
                await cluster.close()


class ReviewedViewer:
    """A viewer by bearer token who may see one namespace; the token `unknown` is not known to the API server."""

    client: Client | None = None

    def __init__(self, allowed: str) -> None:
        self._allowed = allowed
        self.is_closed = False

    async def may_see(self, namespace: str) -> bool:
        """Whether it is that namespace."""
        return namespace == self._allowed

    async def close(self) -> None:
        """Note it."""
        self.is_closed = True


async def open_viewer(token: str) -> ReviewedViewer:
    """The viewer of a token, which names the namespace that may be seen; two tokens fail."""
    if token == "unknown":
        raise StatusError("Unauthorized", code=401, reason="Unauthorized")
    if token == "away":
        raise StatusError("the API server does not respond", code=0)
    return ReviewedViewer(token)
