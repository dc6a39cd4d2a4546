"""Limits and ends the open interactive sessions (exec, attach, port-forward): by number, when idle, at shutdown.

The handlers of `streaming` call `check_limit` before a handshake, and `OpenSessions.run` after it; `app` calls `stop`.

Source: the kubelet's idle timeout of streaming connections (4 h).
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError

SESSIONS_MAX: Final = 1000
"""The most sessions of one API server."""
IDLE_TIMEOUT_S: Final = 4 * 3600.0
"""A session without a transfer for this time is ended."""
STOP_TIMEOUT_S: Final = 5.0
"""How long ending sessions are waited for at shutdown."""


class Activity:
    """The time of the last transfer of a session, to which the session reports each transfer by `touch`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_s = clock.monotonic_s()

    def touch(self) -> None:
        """Record a transfer."""
        self._last_s = self._clock.monotonic_s()

    async def wait_idle(self) -> None:
        """Return when there was no transfer for `IDLE_TIMEOUT_S`."""
        while (left_s := self._last_s + IDLE_TIMEOUT_S - self._clock.monotonic_s()) > 0:
            await self._clock.sleep(left_s)


class OpenSessions:
    """The open sessions of one API server.

    Args:
        clock: measures idle times.
        limit: the most sessions at a time.
    """

    def __init__(self, clock: Clock, *, limit: int = SESSIONS_MAX) -> None:
        self._clock = clock
        self._limit = limit
        self._session_tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    def check_limit(self) -> None:
        """Check that one more session may be opened. Raises StatusError 429 at the limit, or while the server stops."""
        if self._is_stopping or len(self._session_tasks) >= self._limit:
            message = f"too many streams are open: this server has at most {self._limit}"
            raise StatusError(message, code=429, reason="TooManyRequests", details={"retryAfterSeconds": 1})

    async def run(self, run_session: Callable[[Activity], Coroutine[None, None, None]]) -> None:
        """Run a session until it ends, is idle for `IDLE_TIMEOUT_S`, or the server stops. Its errors escape.

        To be called after `check_limit`; in between, while the handshake runs, others may pass the limit.
        """
        activity = Activity(self._clock)
        session_task = asyncio.create_task(run_session(activity))
        idle_task = asyncio.create_task(activity.wait_idle())
        self._session_tasks.add(session_task)
        try:
            await asyncio.wait((session_task, idle_task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            idle_task.cancel()
            session_task.cancel()
            await asyncio.gather(session_task, idle_task, return_exceptions=True)
            self._session_tasks.discard(session_task)
        if not session_task.cancelled() and (error := session_task.exception()) is not None:
            raise error

    async def stop(self) -> None:
        """Cancel every session; returns when they have ended, or after `STOP_TIMEOUT_S`."""
        self._is_stopping = True
        await cancel(self._session_tasks)


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel all tasks; returns when they have ended, or after `STOP_TIMEOUT_S`. Also for `watch_streams`."""
    cancelled = list(tasks)
    for task in cancelled:
        task.cancel()
    if cancelled:
        await asyncio.wait(cancelled, timeout=STOP_TIMEOUT_S)
