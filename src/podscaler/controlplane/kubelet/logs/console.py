"""The standard streams of a container's main process: what it prints goes to its log and to who is attached.

`container_process` makes one for each start; `ContainerRun.attach` hands out sessions. A client that is attached and
does not read makes the container wait, as a terminal would.

Source: the attach of container runtimes, `stdin`, `stdinOnce` and `tty` of core/v1 Container.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from podscaler.controlplane.kubelet.launching import terminals
from podscaler.controlplane.kubelet.logs.log_files import ContainerLog, Stream
from podscaler.controlplane.kubelet.processes.descriptors import DescriptorWriter
from podscaler.controlplane.registry.pod_connections import SessionStreams

PENDING_MAX_BYTES: Final = 256 * 1024


class Console:
    """See the module.

    Args:
        log: takes everything that is printed.
        stdin: the container's input, None where it has none.
        master: the terminal's master side; closed by `close`.
    """

    def __init__(self, log: ContainerLog, *, stdin: DescriptorWriter | None = None, master: int | None = None) -> None:
        self._log = log
        self._stdin = stdin
        self._master = master
        self._attached: list[AttachSession] = []
        self.on_room: Callable[[], None] | None = None
        log.on_room = self.tell_room

    @property
    def is_full(self) -> bool:
        """Whether the container has to wait: for the disk, or for a client."""
        return self._log.is_full or any(session.is_full for session in self._attached)

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take what the container printed."""
        self._log.feed(stream, data)
        for session in self._attached:
            session.feed(stream, data)

    def attach(self, options: SessionStreams, *, stdin_once: bool) -> "AttachSession":
        """A session that sees what is printed from now on.

        Args:
            stdin_once: whether the container's input ends with that of the first client that has one.
        """
        closes_input = stdin_once and options.stdin and self._master is None
        session = AttachSession(self, options, closes_input=closes_input)
        self._attached.append(session)
        return session

    def detach(self, session: "AttachSession") -> None:
        """The session sees nothing any more; the container need not wait for it."""
        if session in self._attached:
            self._attached.remove(session)
            self.tell_room()

    async def write(self, data: bytes) -> None:
        """Input for the container; dropped where it has none."""
        if self._stdin is not None:
            await self._stdin.write(data)

    def end_input(self) -> None:
        """The container reads the end of its input."""
        if self._stdin is not None:
            self._stdin.close()

    def resize(self, columns: int, rows: int) -> None:
        """The terminal's size, if there is one."""
        if self._master is not None:
            terminals.resize(self._master, columns, rows)

    def close(self) -> None:
        """The container has ended, and everything that it printed was fed."""
        if self._stdin is not None:
            self._stdin.close()
        if self._master is not None:
            os.close(self._master)
            self._master = None
        for session in self._attached:
            session.end()

    def tell_room(self) -> None:
        """Somebody has taken what the container printed: let it go on, unless another is still behind."""
        if self.on_room is not None and not self.is_full:
            self.on_room()


class AttachSession:
    """One client of a container's streams. Implements `pod_connections.Session`."""

    def __init__(self, console: Console, options: SessionStreams, *, closes_input: bool) -> None:
        self._console = console
        self._options = options
        self._closes_input = closes_input
        self._pending: dict[Stream, deque[bytes]] = {"stdout": deque(), "stderr": deque()}
        self._pending_bytes = 0
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether the client is far behind."""
        return self._pending_bytes >= PENDING_MAX_BYTES

    def feed(self, stream: Stream, data: bytes) -> None:
        """The container printed that."""
        wanted = self._options.stdout if stream == "stdout" else self._options.stderr
        if wanted and not self._ended.is_set():
            self._pending[stream].append(data)
            self._pending_bytes += len(data)
            self._changed.set()

    def end(self) -> None:
        """Nothing more will come."""
        self._ended.set()
        self._changed.set()

    def stdout(self) -> AsyncIterator[bytes]:
        """What the container prints."""
        return self._chunks("stdout")

    def stderr(self) -> AsyncIterator[bytes]:
        """What the container prints to standard error."""
        return self._chunks("stderr")

    async def write(self, data: bytes) -> None:
        """Input for the container."""
        await self._console.write(data)

    async def end_input(self) -> None:
        """The client has no more input: with `stdinOnce` the container reads the end of it, else the session ends."""
        if self._closes_input:
            self._console.end_input()
        else:
            self.end()

    def resize(self, columns: int, rows: int) -> None:
        """The container's terminal gets the client's size."""
        self._console.resize(columns, rows)

    async def wait(self) -> int:
        """0, when the container or the session has ended."""
        await self._ended.wait()
        return 0

    async def close(self) -> None:
        """Leave the container alone."""
        if self._closes_input:
            self._console.end_input()
        self.end()
        self._console.detach(self)

    async def _chunks(self, stream: Stream) -> AsyncIterator[bytes]:
        waiting = self._pending[stream]
        while True:
            while waiting:
                chunk = waiting.popleft()
                yield chunk
                self._pending_bytes -= len(chunk)
                self._console.tell_room()
            if self._ended.is_set():
                return
            await self._woken()

    async def _woken(self) -> None:
        """Return when something was fed, or the session has ended."""
        self._changed.clear()
        await self._changed.wait()
