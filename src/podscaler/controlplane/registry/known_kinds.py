"""The set of served kinds, for controllers that work on all of them; custom kinds are added and removed.

`cli.up` creates it and calls `notify` whenever the API server serves another set of kinds. The garbage collector, the
namespace controller and the custom metrics iterate over it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from podscaler.api.resource.resources import Resource
from podscaler.controlplane.registry.objects import Objects


class KnownKinds:
    """See the module. Iterating yields the kinds that are served at that moment."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[Resource]:
        """The resources, including several for kinds that are served in several API groups."""
        return iter(self._objects.resources)

    def notify(self) -> None:
        """Restart the parts in `restart_on_change`: a kind was added or removed."""
        self._changed.set()

    async def restart_on_change(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run a part and restart it whenever kinds are added or removed; returns or raises what the part does."""
        while True:
            self._changed.clear()
            part = asyncio.ensure_future(run())
            change = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait((part, change), return_when=asyncio.FIRST_COMPLETED)
                if part.done():
                    return part.result()
            finally:
                await _cancelled(part, change)


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
