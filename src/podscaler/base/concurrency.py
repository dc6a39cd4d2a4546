"""Limits the number of concurrent syncs: a semaphore whose slot a sync returns while it waits for a response.

    slots = Slots(5)
    slot = await slots.take()              the sync runs with `enter(slot, context)` in effect
    async with slots.away():               its code waits for a metrics API; another sync can use the slot
        response = await request()
    slot.release()

The controller takes a Slot for each sync of an autoscaler. So a slow or dead metrics API delays only the syncs that
need it. Invariant: the sum of free and held slots is constant, whichever task is cancelled at whichever await.

Differs: the workers of kube-controller-manager's HPA controller block during requests, so that five slow responses stop
all syncs.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context, ContextVar

Away = Callable[[], AbstractAsyncContextManager[None]]
"""A function such as `Slots.away`: returns a context manager, inside of which the caller waits without a slot."""


class Slot:
    """The concurrency slot of one sync; made by `Slots.take`.

    Several tasks of the sync may be away (wait for a response) at the same time: the slot is free while at least one
    is.

    Args:
        free: counts the free slots; one of them was acquired for this object.
    """

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._is_held = True
        self._is_over = False
        self._away_count = 0
        self._reacquiring = asyncio.Lock()

    def release(self) -> None:
        """Release the slot at the end of the sync, or after its cancellation; calling it again does nothing."""
        self._is_over = True
        self._free_slot()

    def leave(self) -> None:
        """Free the slot: a task of the sync begins to wait."""
        self._away_count += 1
        self._free_slot()

    async def come_back(self) -> None:
        """A task of the sync has its response; waits until a slot is free, unless another task of it is still away."""
        self._away_count -= 1
        async with self._reacquiring:
            if self._is_held or not self._is_needed():
                return
            await self._free.acquire()
            self._is_held = True
            if not self._is_needed():  # released, or a task went away, while this one waited
                self._free_slot()

    def stay_away(self) -> None:
        """A task of the sync was cancelled while it waited; it needs no slot any more."""
        self._away_count -= 1

    def _is_needed(self) -> bool:
        return self._away_count == 0 and not self._is_over

    def _free_slot(self) -> None:
        if self._is_held:
            self._is_held = False
            self._free.release()


_CURRENT: ContextVar[Slot | None] = ContextVar("slot", default=None)
"""The slot of the sync to which the running task belongs; None outside of syncs."""


class Slots:
    """All concurrency slots of a controller.

    Args:
        count: the number of syncs that may run at once, at least 1 (`--concurrent-horizontal-pod-autoscaler-syncs`).
    """

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def take(self) -> Slot:
        """Wait for a free slot and return it; the caller calls its `release`."""
        await self._free.acquire()
        return Slot(self._free)

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """A context in which the running task waits for a response: its slot is free, and reacquired at the end.

        It does nothing outside of syncs.
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
    """Set `slot` as the slot of all code that runs in `context`, and return the context."""
    context.run(_CURRENT.set, slot)
    return context


@asynccontextmanager
async def stay() -> AsyncIterator[None]:
    """An `Away` that does nothing, for callers without a slot."""
    yield
