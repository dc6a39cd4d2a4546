"""How many syncs run at the same time: as many as there are turns, not counting those that wait for an answer.

The loop takes a turn for each sync; what waits for a metrics API or another server on behalf of a sync is `away`
meanwhile, and its turn is another's. So an API that is slow or dead delays the syncs that need it, and no others.

Differs: upstream's workers wait with the request, so that five slow answers stop everything.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

Away = Callable[[], AbstractAsyncContextManager[None]]
"""Makes what to be in while waiting."""


class Turns:
    """See the module.

    Args:
        count: how many syncs may run at once, at least 1.
    """

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def take(self) -> None:
        """Return once there is a turn."""
        await self._free.acquire()

    def give(self) -> None:
        """The sync that took a turn has ended."""
        self._free.release()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """A sync that has a turn waits for somebody else: others run, and it goes on when it gets a turn again."""
        self.give()
        try:
            yield
        finally:
            await self.take()


@asynccontextmanager
async def stay() -> AsyncIterator[None]:
    """Wait in place: for those that have no turn to give."""
    yield
