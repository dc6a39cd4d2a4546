"""The interactive sessions that are open now: not too many, none idle for ever, and all ended when the server stops.

Called by the handlers of streams; `app` stops it.

Source: the kubelet's idle timeout of streaming connections (4 h).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError

SESSIONS_MAX: Final = 1000
IDLE_S: Final = 4 * 3600.0
STOP_TIMEOUT_S: Final = 5.0


class Activity:
    """When something last went through a session."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_s = clock.monotonic_s()

    def note(self) -> None:
        """Something went through."""
        self._last_s = self._clock.monotonic_s()

    async def ceased(self) -> None:
        """Return when nothing has gone through for `IDLE_S`."""
        while (left_s := self._last_s + IDLE_S - self._clock.monotonic_s()) > 0:
            await self._clock.sleep(left_s)


class OpenSessions:
    """See the module."""

    def __init__(self, clock: Clock, *, limit: int = SESSIONS_MAX) -> None:
        self._clock = clock
        self._limit = limit
        self._held: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    def check_room(self) -> None:
        """Refuse (429) one more session than there may be."""
        if self._is_stopping or len(self._held) >= self._limit:
            text = f"too many streams are open: this server has at most {self._limit}"
            raise StatusError(text, code=429, reason="TooManyRequests", details={"retryAfterSeconds": 1})

    async def hold(self, work: Callable[[Activity], Awaitable[None]]) -> None:
        """Do `work` to its end, or until nothing happens any more or the server stops."""
        activity = Activity(self._clock)
        worker = asyncio.ensure_future(_run(work, activity))
        idle = asyncio.ensure_future(activity.ceased())
        self._held.add(worker)
        try:
            await asyncio.wait((worker, idle), return_when=asyncio.FIRST_COMPLETED)
        finally:
            idle.cancel()
            worker.cancel()
            await asyncio.gather(worker, idle, return_exceptions=True)
            self._held.discard(worker)
        if not worker.cancelled() and (error := worker.exception()) is not None:
            raise error

    async def stop(self) -> None:
        """End every session."""
        self._is_stopping = True
        held = list(self._held)
        for worker in held:
            worker.cancel()
        if held:
            await asyncio.wait(held, timeout=STOP_TIMEOUT_S)


async def _run(work: Callable[[Activity], Awaitable[None]], activity: Activity) -> None:
    await work(activity)
