"""The bytes exchanged with a proxy before it forwards anything.

`transport.dialing` opens one to a proxy and hands its transport on once the proxy has agreed.
"""

import asyncio
from typing import cast

HELLO_MAX_BYTES = 1 << 16


class ProxyTunnel(asyncio.Protocol):
    """A connection to a proxy, read in pieces of a known end. Reading raises EOFError where the proxy hangs up."""

    def __init__(self) -> None:
        self.transport = cast(asyncio.Transport, None)
        self._data = b""
        self._is_closed = False
        self._waiter: asyncio.Future[None] | None = None

    def write(self, data: bytes) -> None:
        """Send `data`."""
        self.transport.write(data)

    def close(self) -> None:
        """Close at once."""
        self.transport.abort()

    async def exactly(self, count: int) -> bytes:
        """The next `count` bytes."""
        while len(self._data) < count:
            await self._more()
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    async def until(self, end: bytes) -> bytes:
        """The next bytes up to `end`, with it. Raises ValueError where that does not come."""
        while end not in self._data:
            if len(self._data) > HELLO_MAX_BYTES:
                raise ValueError("the proxy's answer is too long")
            await self._more()
        return await self.exactly(self._data.index(end) + len(end))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The proxy is there."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """The proxy said something."""
        self._data += data
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """The proxy is gone."""
        self._is_closed = True
        self._wake()

    async def _more(self) -> None:
        if self._is_closed:
            raise EOFError
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
