"""Reading and writing pipes and terminals on the event loop, with waiting instead of buffers.

`sessions` and `console` use it. A reader takes bytes only when it is asked for them, so that a process whose client is
slow has to wait, as it would with any pipe.

Invariant: a descriptor is registered with the event loop only while somebody waits for it, and closed exactly once.
"""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable
from typing import Final

READ_BYTES: Final = 32 * 1024
_END_OF_TERMINAL: Final = errno.EIO
"""What reading the master side says once nobody has the terminal open any more."""


class _Readiness:
    """Waiting, by one at a time, until a descriptor can be read or written.

    Args:
        watch, unwatch: of the event loop, for the one or the other.
    """

    def __init__(
        self, descriptor: int, watch: Callable[[int, Callable[[], None]], object], unwatch: Callable[[int], object]
    ) -> None:
        self._descriptor = descriptor
        self._watch = watch
        self._unwatch = unwatch
        self._waiter: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        self._watch(self._descriptor, self.wake)
        try:
            await self._waiter
        finally:
            if self._waiter is not None:
                self._unwatch(self._descriptor)
                self._waiter = None

    def wake(self) -> None:
        """Who waits goes on, ready or not."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            self._unwatch(self._descriptor)
            if not waiter.done():
                waiter.set_result(None)


class DescriptorReader:
    """The read end of a pipe, or a terminal.

    Args:
        descriptor: becomes non-blocking; closed by `close`.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        loop = asyncio.get_running_loop()
        self._readiness = _Readiness(descriptor, loop.add_reader, loop.remove_reader)
        self._is_last = False
        self._is_closed = False
        os.set_blocking(descriptor, False)

    def finish(self) -> None:
        """No more is expected: what is there now is still read, then the stream ends."""
        self._is_last = True
        self._readiness.wake()

    def close(self) -> None:
        """Let go of the descriptor; who waits is told the end."""
        if not self._is_closed:
            self._is_closed = True
            self._readiness.wake()
            os.close(self._descriptor)

    async def chunks(self) -> AsyncIterator[bytes]:
        """What arrives, until the end of the stream."""
        while not self._is_closed:
            try:
                data = os.read(self._descriptor, READ_BYTES)
            except BlockingIOError:
                if self._is_last:
                    return
                await self._readiness.wait()
                continue
            except OSError as error:
                if error.errno == _END_OF_TERMINAL:
                    return
                raise
            if not data:
                return
            yield data


class DescriptorWriter:
    """The write end of a pipe, or a terminal.

    Args:
        descriptor: becomes non-blocking; closed by `close`.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        loop = asyncio.get_running_loop()
        self._readiness = _Readiness(descriptor, loop.add_writer, loop.remove_writer)
        self._turn = asyncio.Lock()
        self._is_closed = False
        os.set_blocking(descriptor, False)

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be written any more."""
        return self._is_closed

    async def write(self, data: bytes) -> None:
        """Write all of `data`, one caller after the other; what nobody will read any more is dropped."""
        async with self._turn:
            rest = memoryview(data)
            while rest and not self._is_closed:
                try:
                    rest = rest[os.write(self._descriptor, rest) :]
                except BlockingIOError:
                    await self._readiness.wait()
                except OSError:  # EPIPE, or EIO of a terminal: its reader has gone
                    self.close()

    def close(self) -> None:
        """Let go of the descriptor; a write that waits ends."""
        if not self._is_closed:
            self._is_closed = True
            self._readiness.wake()
            os.close(self._descriptor)
