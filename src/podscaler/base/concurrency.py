"""How many syncs run at the same time: as many as there are turns, not counting those that wait for an answer.

The loop takes a turn for each sync; what waits for a metrics API or another server on behalf of a sync is `away`
meanwhile, and its turn is another's. So an API that is slow or dead delays the syncs that need it, and no others.
Invariant: the turns that are free and those that are held are always as many as there were at the start, whatever is
cancelled when.

Differs: upstream's workers wait with the request, so that five slow answers stop everything.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context, ContextVar

Away = Callable[[], AbstractAsyncContextManager[None]]
"""Makes what to be in while waiting."""


class Turn:
    """The turn of one sync; made by `Turns.take`.

    Several tasks of the sync may be away at the same time: the turn is free while at least one of them is.

    Args:
        free: the turns that nobody has; one of them has been taken for this.
    """

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._is_held = True
        self._is_over = False
        self._away = 0
        self._returning = asyncio.Lock()

    def give(self) -> None:
        """The sync has ended, or was cancelled anywhere; calling it again does nothing."""
        self._is_over = True
        self._release()

    def leave(self) -> None:
        """A task of the sync begins to wait."""
        self._away += 1
        self._release()

    async def come_back(self) -> None:
        """A task of the sync has its answer: return once no other waits for one, or there is a turn again."""
        self._away -= 1
        async with self._returning:
            if self._is_held or not self._is_wanted():
                return
            await self._free.acquire()
            self._is_held = True
            if not self._is_wanted():  # it was left again, or given, before it came
                self._release()

    def stay_away(self) -> None:
        """A task of the sync was cancelled while it waited: it ends, and needs no turn for that."""
        self._away -= 1

    def _is_wanted(self) -> bool:
        return self._away == 0 and not self._is_over

    def _release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._free.release()


_CURRENT: ContextVar[Turn | None] = ContextVar("turn", default=None)
"""That of the running sync, and of the tasks that it starts."""


class Turns:
    """See the module.

    Args:
        count: how many syncs may run at once, at least 1.
    """

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def take(self) -> Turn:
        """A turn, once one is free. Whoever takes it calls its `give`."""
        await self._free.acquire()
        return Turn(self._free)

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """The running sync waits for somebody else: others run, and it goes on when it gets a turn again.

        What runs outside of syncs has no turn to leave, and just waits.
        """
        turn = _CURRENT.get()
        if turn is None:
            yield
            return
        turn.leave()
        try:
            yield
        except Exception:
            await turn.come_back()
            raise
        except BaseException:  # a cancellation
            turn.stay_away()
            raise
        await turn.come_back()


def enter(turn: Turn, context: Context) -> Context:
    """The context, in which code runs by this turn from now on."""
    context.run(_CURRENT.set, turn)
    return context


@asynccontextmanager
async def stay() -> AsyncIterator[None]:
    """Wait in place: for those that have no turn to give."""
    yield
