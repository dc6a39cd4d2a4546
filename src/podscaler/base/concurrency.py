"""Limits the number of concurrent syncs by slots, which a sync gives up while it waits for a response.

The controller takes a slot (`Slot`) for each sync; a task of the sync that waits for a metrics API or another server is
`away`, and the slot is free for another sync. So a slow or dead API delays only the syncs that need it. Invariant: free
and held slots are always as many as at the start, whatever is cancelled when.

Differs: upstream's workers block during requests, so that five slow responses stop all syncs.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context, ContextVar

Away = Callable[[], AbstractAsyncContextManager[None]]
"""Makes the context to wait in."""


class Slot:
    """The concurrency slot of one sync; made by `Slots.take`.

    Several tasks of the sync may be away at the same time: the slot is free while at least one of them is.

    Args:
        free: the free slots, one of which was acquired for this.
    """

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._is_held = True
        self._is_over = False
        self._away = 0
        self._returning = asyncio.Lock()

    def release(self) -> None:
        """Release the slot at the end of the sync, or after its cancellation; calling it again does nothing."""
        self._is_over = True
        self._release()

    def leave(self) -> None:
        """A task of the sync begins to wait."""
        self._away += 1
        self._release()

    async def come_back(self) -> None:
        """A task of the sync has its response: return once another task waits still, or a slot is acquired again."""
        self._away -= 1
        async with self._returning:
            if self._is_held or not self._is_wanted():
                return
            await self._free.acquire()
            self._is_held = True
            if not self._is_wanted():  # released or away again meanwhile
                self._release()

    def stay_away(self) -> None:
        """A task of the sync was cancelled while it waited; it needs no slot any more."""
        self._away -= 1

    def _is_wanted(self) -> bool:
        return self._away == 0 and not self._is_over

    def _release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._free.release()


_CURRENT: ContextVar[Slot | None] = ContextVar("slot", default=None)
"""The slot of the running sync and of its tasks."""


class Slots:
    """The slots; see the module.

    Args:
        count: the number of syncs that may run at once, at least 1.
    """

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def take(self) -> Slot:
        """A slot, once one is free; the caller calls its `release`."""
        await self._free.acquire()
        return Slot(self._free)

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Wait in this context for a response: the slot is free meanwhile, and acquired again at the end.

        Outside of syncs it does nothing.
        """
        slot = _CURRENT.get()
        if slot is None:
            yield
            return
        slot.leave()
        try:
            yield
        except Exception:
            await slot.come_back()
            raise
        except BaseException:  # a cancellation
            slot.stay_away()
            raise
        await slot.come_back()


def enter(slot: Slot, context: Context) -> Context:
    """The context, in which code runs with this slot from now on."""
    context.run(_CURRENT.set, slot)
    return context


@asynccontextmanager
async def stay() -> AsyncIterator[None]:
    """An `Away` that does nothing, for callers without a slot."""
    yield
