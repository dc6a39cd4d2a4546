"""The stored kinds as they are now, for those who must know all of them: custom kinds come and go.

Made by the wiring of `up`, which tells it (`notice`) whenever the API server serves another set of kinds; iterated by
the garbage collector, the namespace controller and the metric values.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from podscaler.api.resource.resources import Resource
from podscaler.controlplane.registry.objects import Objects


class KnownKinds:
    """See the module. Iterating gives the kinds that are known at that moment."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[Resource]:
        """The kinds, faces of others included."""
        return iter(self._objects.resources)

    def notice(self) -> None:
        """Tell those who wait in `follow` that a kind came or went."""
        self._changed.set()

    async def follow(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run a part, and start it anew whenever kinds come or go; ends as the part does, if that ends."""
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
