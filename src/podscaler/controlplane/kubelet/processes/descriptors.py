"""Readers and writers of pipes and terminals on the event loop.

* `DescriptorReader` is pulled: it reads only when `chunks` is iterated, so that a process whose client is slow blocks
  in its write, as with any pipe. `DescriptorWriter` is its counterpart. `kubelet.containers.exec_session` uses both,
  `kubelet.logs.container_streams` the writer.
* `PipeReader` is pushed: it reads whenever there is output, unless its consumer is full.
  `kubelet.containers.container_process` and `kubelet.probes.exec_check` use it.

Invariant: a descriptor is closed exactly once, and is not registered with the event loop then.
"""

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Callable
from typing import Final

READ_BYTES: Final = 32 * 1024
"""The most that one read of a `DescriptorReader` returns."""
PUSHED_BYTES: Final = 15 * 1024
"""The most of one read of a `PipeReader`: small, so that containers alternate and `log_format` needs one pass."""
DRAIN_BYTES: Final = 4 << 20
"""The most that is read of a pipe after the exit of its process: a process that is left could fill it without end."""


def _read_available(descriptor: int, size: int) -> bytes:
    """As os.read; b"" also for the master side of a terminal (EIO) that no process has open any more."""
    try:
        return os.read(descriptor, size)
    except OSError as error:
        if error.errno == errno.EIO:
            return b""
        raise


class _Readiness:
    """Lets one task wait until a descriptor is readable or writable.

    Args:
        watch, unwatch: add_reader and remove_reader of the event loop, or add_writer and remove_writer.
    """

    def __init__(
        self, descriptor: int, watch: Callable[[int, Callable[[], None]], object], unwatch: Callable[[int], object]
    ) -> None:
        self._descriptor = descriptor
        self._watch = watch
        self._unwatch = unwatch
        self._waiter: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Wait until the descriptor is ready, or `wake` is called."""
        self._waiter = asyncio.get_running_loop().create_future()
        self._watch(self._descriptor, self.wake)
        try:
            await self._waiter
        finally:
            if self._waiter is not None:  # cancelled: `wake` has not been called
                self._unwatch(self._descriptor)
                self._waiter = None

    def wake(self) -> None:
        """Let `wait` return, whether the descriptor is ready or not."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            self._unwatch(self._descriptor)
            if not waiter.done():
                waiter.set_result(None)


class DescriptorReader:
    """Reads a pipe or terminal when its consumer iterates `chunks`.

    Args:
        descriptor: becomes non-blocking; closed by `close`.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        loop = asyncio.get_running_loop()
        self._readiness = _Readiness(descriptor, loop.add_reader, loop.remove_reader)
        self._is_finishing = False
        self._is_closed = False
        os.set_blocking(descriptor, False)

    def finish(self) -> None:
        """End the stream after the data that is in the pipe now; called when the process has exited."""
        self._is_finishing = True
        self._readiness.wake()

    def close(self) -> None:
        """Close the descriptor and end `chunks`."""
        if not self._is_closed:
            self._is_closed = True
            self._readiness.wake()
            os.close(self._descriptor)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield data as it arrives, at most READ_BYTES each, until the end of the stream. Raises OSError."""
        while not self._is_closed:
            try:
                data = _read_available(self._descriptor, READ_BYTES)
            except BlockingIOError:
                if self._is_finishing:
                    return
                await self._readiness.wait()
                continue
            if not data:
                return
            yield data


class DescriptorWriter:
    """Writes to a pipe or terminal, waiting while it is full.

    Args:
        descriptor: becomes non-blocking; closed by `close`.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        loop = asyncio.get_running_loop()
        self._readiness = _Readiness(descriptor, loop.add_writer, loop.remove_writer)
        self._lock = asyncio.Lock()
        self._is_closed = False
        os.set_blocking(descriptor, False)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called, or a write has found that the reader has closed its end."""
        return self._is_closed

    async def write(self, data: bytes) -> None:
        """Write all of `data`; concurrent writes are serialized. Data is dropped once the reader has closed its end."""
        async with self._lock:
            unwritten = memoryview(data)
            while unwritten and not self._is_closed:
                try:
                    unwritten = unwritten[os.write(self._descriptor, unwritten) :]
                except BlockingIOError:
                    await self._readiness.wait()
                except OSError:  # EPIPE, or EIO of a terminal: the reader has closed its end
                    self.close()

    def close(self) -> None:
        """Close the descriptor; a `write` that waits returns."""
        if not self._is_closed:
            self._is_closed = True
            self._readiness.wake()
            os.close(self._descriptor)


class PipeReader:
    """Reads a pipe or terminal as data arrives and passes it to `feed`; pauses while `is_full` returns True.

    Args:
        descriptor: becomes non-blocking; closed by `drain`, or at the end of the stream.
        feed: takes data, at most PUSHED_BYTES each.
        is_full: called after each `feed`. The owner of the consumer calls `resume` when there is room again.
    """

    def __init__(
        self, descriptor: int, feed: Callable[[bytes], None], is_full: Callable[[], bool] = lambda: False
    ) -> None:
        self._descriptor = descriptor
        self._feed = feed
        self._is_full = is_full
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._is_reading = False
        os.set_blocking(descriptor, False)
        self.resume()

    def resume(self) -> None:
        """Continue to read, unless the stream has ended; called by `__init__`, and by the owner after a pause."""
        if self._is_open and not self._is_reading:
            self._loop.add_reader(self._descriptor, self._on_readable)
            self._is_reading = True

    def drain(self) -> None:
        """Pass on what is in the pipe, up to DRAIN_BYTES, and close it; called when the process has exited."""
        remaining_bytes = DRAIN_BYTES
        while self._is_open and remaining_bytes > 0 and (read_bytes := self._read_once()):
            remaining_bytes -= read_bytes
        self._close()

    def _on_readable(self) -> None:
        """Read once, and pause if the consumer is full then; called by the event loop."""
        self._read_once()
        if self._is_full():
            self._pause()

    def _read_once(self) -> int:
        """Pass one read to the consumer; returns its size in bytes, 0 if there is no data now."""
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = _read_available(self._descriptor, PUSHED_BYTES)
            if not data:
                self._close()
        if data:
            self._feed(data)
        return len(data)

    def _pause(self) -> None:
        """Stop reading until `resume`."""
        if self._is_reading:
            self._loop.remove_reader(self._descriptor)
            self._is_reading = False

    def _close(self) -> None:
        if self._is_open:
            self._pause()
            os.close(self._descriptor)
            self._is_open = False
