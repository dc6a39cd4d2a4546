"""Taking what a process prints off its pipe, on the event loop."""

import asyncio
import contextlib
import errno
import os
from typing import Final

from podscaler.controlplane.kubelet.logs.console import Console
from podscaler.controlplane.kubelet.logs.log_files import Stream

READ_BYTES: Final = 15 * 1024
"""So little that what many containers print is taken by turns, and that it is split in one pass (`log_format`)."""

DRAIN_BYTES: Final = 4 << 20


class PipeReader:
    """Feeds the read end of a pipe, or a terminal, to a console, and waits while that is full.

    Args:
        descriptor: the read end; closed by `drain` or at the end of the stream.
    """

    def __init__(self, descriptor: int, stream: Stream, console: Console) -> None:
        self._descriptor = descriptor
        self._stream = stream
        self._console = console
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._is_reading = False
        os.set_blocking(descriptor, False)
        self.resume()

    def resume(self) -> None:
        """Read on, if there is anything to read."""
        if self._is_open and not self._is_reading:
            self._loop.add_reader(self._descriptor, self._readable)
            self._is_reading = True

    def drain(self) -> None:
        """The process has ended: take what is left in the pipe, and close it."""
        left = DRAIN_BYTES
        while self._is_open and left > 0:
            taken = self._take()
            if taken == 0:
                break
            left -= taken
        self._close()

    def _readable(self) -> None:
        self._take()
        if self._console.is_full and self._is_reading:
            self._loop.remove_reader(self._descriptor)
            self._is_reading = False

    def _take(self) -> int:
        """Feed one piece; returns its size, 0 where there is none now."""
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = self._read()
            if not data:
                self._close()
        if data:
            self._console.feed(self._stream, data)
        return len(data)

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, READ_BYTES)
        except OSError as error:
            if error.errno == errno.EIO:  # the terminal's last process has closed it
                return b""
            raise

    def _close(self) -> None:
        if not self._is_open:
            return
        if self._is_reading:
            self._loop.remove_reader(self._descriptor)
            self._is_reading = False
        os.close(self._descriptor)
        self._is_open = False
