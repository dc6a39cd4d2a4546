"""Limits the number of concurrent syncs: a semaphore whose slot a sync returns while it waits for a response.

    slots = Slots(5)
    slot = await slots.take()              the sync runs with `enter(slot, context)` in effect
    async with slots.without_slot():       its code waits for a metrics API; another sync can use the slot
        response = await request()
    slot.release()

`podscaler.controller.work_assignment` takes a Slot for each sync of an autoscaler; clients of the controller enter
`without_slot` for requests. So a slow or dead metrics API delays only the syncs that need it. Invariant: the sum of
free and held slots is constant, whichever task is cancelled at whichever await.

Differs: the workers of kube-controller-manager's HPA controller block during requests, so that five slow responses stop
all syncs.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context, ContextVar

WithoutSlot = Callable[[], AbstractAsyncContextManager[None]]
"""A function such as `Slots.without_slot`, which returns a context manager, or `keep_slot`."""


class Slot:
    """The concurrency slot of one sync; made by `Slots.take`.

    Several tasks of the sync may wait for a response at the same time: the slot is free while at least one does.

    Args:
        free_slots: counts the free slots; one of them was acquired for this object.
    """

    def __init__(self, free_slots: asyncio.Semaphore) -> None:
        self._free_slots = free_slots
        self._is_held = True
        self._is_sync_over = False
        self._waiting_count = 0
        self._reacquiring = asyncio.Lock()

    def release(self) -> None:
        """Release the slot at the end of the sync, or after its cancellation; calling it again does nothing."""
        self._is_sync_over = True
        self._free_slot()

    def begin_wait(self) -> None:
        """Free the slot: a task of the sync begins to wait for a response."""
        self._waiting_count += 1
        self._free_slot()

    async def end_wait(self) -> None:
        """A task of the sync has its response; reacquires a slot, unless another task of it still waits."""
        self._waiting_count -= 1
        async with self._reacquiring:
            if self._is_held or not self._is_needed():
                return
            await self._free_slots.acquire()
            self._is_held = True
            if not self._is_needed():  # released, or another task began to wait, in the meantime
                self._free_slot()

    def cancel_wait(self) -> None:
        """A task of the sync was cancelled while it waited; it needs no slot any more."""
        self._waiting_count -= 1

    def _is_needed(self) -> bool:
        return self._waiting_count == 0 and not self._is_sync_over

    def _free_slot(self) -> None:
        if self._is_held:
            self._is_held = False
            self._free_slots.release()


_CURRENT: ContextVar[Slot | None] = ContextVar("slot", default=None)
"""The slot of the sync to which the running task belongs; None outside of syncs."""


class Slots:
    """All concurrency slots of a controller.

    Args:
        count: the number of syncs that may run at once, at least 1 (`--concurrent-horizontal-pod-autoscaler-syncs`).
    """

    def __init__(self, count: int) -> None:
        self._free_slots = asyncio.Semaphore(count)

    async def take(self) -> Slot:
        """Wait for a free slot and return it; the caller calls its `release`."""
        await self._free_slots.acquire()
        return Slot(self._free_slots)

    @asynccontextmanager
    async def without_slot(self) -> AsyncIterator[None]:
        """A context in which the running task waits for a response: its slot is free, and reacquired at the end.

        It does nothing outside of syncs.
        """
        slot = _CURRENT.get()
        if slot is None:
            yield
            return
        slot.begin_wait()
        try:
            yield
        except Exception:  # the sync goes on, and handles the error
            await slot.end_wait()
            raise
        except BaseException:  # a cancellation
            slot.cancel_wait()
            raise
        await slot.end_wait()


def enter(slot: Slot, context: Context) -> Context:
    """Set `slot` as the slot of all code that runs in `context`, and return the context."""
    context.run(_CURRENT.set, slot)
    return context


@asynccontextmanager
async def keep_slot() -> AsyncIterator[None]:
    """A `WithoutSlot` that does nothing, for callers without concurrency slots."""
    yield
