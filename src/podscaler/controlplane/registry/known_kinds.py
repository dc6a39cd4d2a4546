"""Lists the kinds that the API server serves at the moment, and restarts controllers when that set changes.

CustomResourceDefinitions add and remove kinds. `cli.up.control_plane` creates a `KnownKinds` and calls `notify` after
each change; `controlplane.controller_manager` runs controllers in `restart_on_change`. The garbage collector, the
namespace controller and the custom metrics iterate over it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from podscaler.api.resource.resources import Resource
from podscaler.controlplane.registry.objects import Objects


class KnownKinds:
    """The served kinds; iterating yields those that are served at that moment.

    Args:
        objects: knows the served kinds.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[Resource]:
        """The resources, including several for kinds that are served in several API groups."""
        return iter(self._objects.resources)

    def notify(self) -> None:
        """Restart the functions that run in `restart_on_change`: a kind was added or removed."""
        self._changed.set()

    async def restart_on_change(self, run: Callable[[], Awaitable[None]]) -> None:
        """Await `run`, cancelled and begun again whenever kinds change; returns, or raises, when `run` does."""
        while True:
            self._changed.clear()
            task = asyncio.ensure_future(run())
            change_task = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait((task, change_task), return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    return task.result()
            finally:
                await _cancel_all(task, change_task)


async def _cancel_all(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end; their errors are dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
