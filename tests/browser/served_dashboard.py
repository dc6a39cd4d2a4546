"""A dashboard over a fake cluster in virtual time, served from a thread, for tests that drive a browser."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dashboard_world import DashboardWorld
from patience import WITHIN_S

T = TypeVar("T")


class ServedDashboard:
    """The cluster and its server; methods are called from the thread of the test."""

    def __init__(self, world: DashboardWorld, loop: asyncio.AbstractEventLoop) -> None:
        self._world = world
        self._loop = loop

    @property
    def url(self) -> str:
        """The address of the page."""
        return self._world.server.url

    def login_link(self) -> str:
        """A link that logs in once."""
        return self.call(self._world.server.login_link)

    def call(self, function: Callable[[], T]) -> T:
        """The result of a function that runs in the server's thread."""

        async def run() -> T:
            return function()

        return self.run(run())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine in the server's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WITHIN_S)

    def advance(self, span_s: float) -> None:
        """Let virtual time pass in small steps, so that streams send what happened."""

        async def move() -> None:
            for _ in range(round(span_s / 0.5)):
                await self._world.cluster.advance(0.5)
                await asyncio.sleep(0.001)

        self.run(move())

    def change(self, act: Callable[[Any], object]) -> None:
        """Change the fake cluster, and let the page get it."""
        self.call(lambda: act(self._world.cluster.cluster))
        self.advance(2)

    def stop_server(self) -> None:
        """End the server."""
        self.run(self._world.server.stop())

    def advance_long(self, span_s: float) -> None:
        """Let much virtual time pass."""
        self.run(self._world.cluster.advance(span_s))


@contextmanager
def serve(**settings: Any) -> Iterator[ServedDashboard]:
    """A dashboard whose cluster has the autoscaler shop/web, with 2 pods at 100 % of their requests."""
    ready, holder = threading.Event(), dict[str, Any]()

    async def keep() -> None:
        async with DashboardWorld.open(is_logged_in=False, **settings) as world:
            holder["world"], holder["loop"] = world, asyncio.get_running_loop()
            holder["ended"] = asyncio.Event()
            ready.set()
            await holder["ended"].wait()

    def body() -> None:
        try:
            asyncio.run(keep())
        finally:
            ready.set()

    thread = threading.Thread(target=body)
    thread.start()
    ready.wait(WITHIN_S)
    try:
        yield ServedDashboard(holder["world"], holder["loop"])
    finally:
        if "ended" in holder:
            holder["loop"].call_soon_threadsafe(holder["ended"].set)
        thread.join(WITHIN_S)
