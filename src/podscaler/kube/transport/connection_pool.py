"""Keeps a pool of idle HTTP connections to one API server, for reuse.

`transport.http_transport` acquires one for each request and releases it; a request that fails on an idle connection is
repeated on a new one (`dial_new`), which does not wait. Otherwise at most CONNECTIONS exist; further requests wait,
about in order. The connection that was used last is used first, so that surplus ones grow old and are closed.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from podscaler.kube.transport.connection import Connection

CONNECTIONS = 256
"""Enough that three slow metrics APIs (`podscaler.metrics.concurrency_limiter`) leave some for other requests."""
KEEP_ALIVE_S = 45.0
"""Shorter than servers keep an idle connection, so that no request is sent on one that the server is closing."""


class Pool:
    """The idle connections to one API server.

    Args:
        dial: makes a connection; what it raises escapes from `acquire`.
    """

    def __init__(self, dial: Callable[[], Awaitable[Connection]]) -> None:
        self._dial = dial
        self._loop = asyncio.get_running_loop()
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()
        self._dialing_count = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._retired: set[Connection] = set()

    @property
    def in_use(self) -> int:
        """The number of connections that serve a request."""
        return len(self._busy)

    def take_idle(self) -> Connection | None:
        """An idle connection that is still usable, now in use; None if there is none."""
        now_s = self._loop.time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable and now_s - connection.idle_since_s < KEEP_ALIVE_S:
                self._busy.add(connection)
                return connection
            connection.close()
        return None

    async def acquire(self) -> Connection:
        """An idle connection, or a new one if there is none; waits at CONNECTIONS. Raises what `dial` raises."""
        while (connection := self.take_idle()) is None:
            if len(self._busy) + self._dialing_count < CONNECTIONS:
                return await self.dial_new()
            await self._wait_for_connection()
        return connection

    async def dial_new(self) -> Connection:
        """A new connection, in use, even beyond CONNECTIONS. Raises what `dial` raises."""
        self._dialing_count += 1
        try:
            connection = await self._dial()
        except BaseException:
            self._dialing_count -= 1
            self._wake_next()
            raise
        self._dialing_count -= 1
        self._busy.add(connection)
        return connection

    def release(self, connection: Connection) -> None:
        """Return a connection, in any state; closed unless another request can use it."""
        self._busy.discard(connection)
        if connection in self._retired or not connection.is_usable:
            self._retired.discard(connection)
            connection.close()
        else:
            self._drop_old()
            self._idle.append(connection)
        if self._waiters:
            self._wake_next()

    def retire(self) -> None:
        """Use none of the existing connections for another request, as after a change of the client certificate."""
        self._retired |= self._busy
        while self._idle:
            self._idle.pop().close()

    def close(self) -> None:
        """Close all connections, those in use too. To be called last: `acquire` refuses no call afterwards."""
        self.retire()
        for connection in self._busy:
            connection.close()

    def _drop_old(self) -> None:
        """Close the oldest idle connection if it is too old; a call adds one, so that closing one is enough."""
        if self._idle and self._loop.time() - self._idle[0].idle_since_s >= KEEP_ALIVE_S:
            self._idle.popleft().close()

    async def _wait_for_connection(self) -> None:
        """Return when a connection may be free; a caller that is cancelled after it was woken wakes the next one."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake_next()
            raise

    def _wake_next(self) -> None:
        """Let the first caller that still waits in `acquire` go on."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
