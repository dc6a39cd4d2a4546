"""The standard streams of a container's main process: copies its output to the log and to attached clients.

`kubelet.containers.container_process` makes one `ContainerStreams` for each start; `container_run` opens sessions of
clients by `attach`. An attached client that does not read makes the container wait, as a terminal does.

Source: `stdin`, `stdinOnce` and `tty` of Container (API reference); attach in the CRI.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from podscaler.controlplane.kubelet.logs.container_log import ContainerLog, Stream
from podscaler.controlplane.kubelet.processes import streams
from podscaler.controlplane.kubelet.processes.descriptors import DescriptorWriter
from podscaler.controlplane.registry.pod_connections import SessionStreams

PENDING_MAX_BYTES: Final = 256 * 1024
"""From so many bytes that wait for an attached client on, the output of the container is not read."""


class ContainerStreams:
    """The standard streams of one container process, with the attached clients.

    Args:
        log: receives all output.
        stdin: the container's standard input, None if it has none; closed by `close`.
        master: the master side of its terminal, None without one; closed by `close`.

    Attributes:
        on_room: called when output of the container can be taken again; set by `container_process`.
    """

    def __init__(self, log: ContainerLog, *, stdin: DescriptorWriter | None = None, master: int | None = None) -> None:
        self._log = log
        self._stdin = stdin
        self._master = master
        self._attached: list[AttachSession] = []
        self.on_room: Callable[[], None] | None = None
        log.on_room = self.resume_output

    @property
    def is_full(self) -> bool:
        """Whether the container has to wait for the disk or for a client."""
        return self._log.is_full or any(session.is_full for session in self._attached)

    def feed(self, stream: Stream, data: bytes) -> None:
        """Copy output of the container to the log and the clients, also while `is_full`."""
        self._log.feed(stream, data)
        for session in self._attached:
            session.feed(stream, data)

    def attach(self, options: SessionStreams, *, stdin_once: bool) -> "AttachSession":
        """Open a session, which gets the output from now on.

        Args:
            stdin_once: whether the container's input ends with the input of the first client that sends any.
        """
        closes_input = stdin_once and options.stdin and self._master is None  # a terminal's input has no end
        session = AttachSession(self, options, closes_input=closes_input)
        self._attached.append(session)
        return session

    def detach(self, session: "AttachSession") -> None:
        """Remove the session; the container waits for it no longer."""
        if session in self._attached:
            self._attached.remove(session)
            self.resume_output()

    async def write(self, data: bytes) -> None:
        """Write to the container's standard input; dropped where it has none."""
        if self._stdin is not None:
            await self._stdin.write(data)

    def end_input(self) -> None:
        """Close the container's standard input."""
        if self._stdin is not None:
            self._stdin.close()

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the terminal, if there is one. Raises OSError."""
        if self._master is not None:
            streams.resize(self._master, columns, rows)

    def close(self) -> None:
        """Close input and terminal and end the sessions; called after the container's exit and its last output."""
        if self._stdin is not None:
            self._stdin.close()
        if self._master is not None:
            os.close(self._master)
            self._master = None
        for session in self._attached:
            session.end()

    def resume_output(self) -> None:
        """Let the container print again, unless the log or a client is still full."""
        if self.on_room is not None and not self.is_full:
            self.on_room()


class AttachSession:
    """An attached client; `closes_input`: `stdinOnce` of its container. Implements `pod_connections.PodSession`."""

    def __init__(self, streams: ContainerStreams, options: SessionStreams, *, closes_input: bool) -> None:
        self._streams = streams
        self._options = options
        self._closes_input = closes_input
        self._pending: dict[Stream, deque[bytes]] = {"stdout": deque(), "stderr": deque()}
        self._pending_bytes = 0
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether PENDING_MAX_BYTES wait for the client."""
        return self._pending_bytes >= PENDING_MAX_BYTES

    def feed(self, stream: Stream, data: bytes) -> None:
        """Queue output of the container, if the client requested this stream."""
        is_requested = self._options.stdout if stream == "stdout" else self._options.stderr
        if is_requested and not self._ended.is_set():
            self._pending[stream].append(data)
            self._pending_bytes += len(data)
            self._changed.set()

    def end(self) -> None:
        """End the session's output after what is queued."""
        self._ended.set()
        self._changed.set()

    def stdout(self) -> AsyncIterator[bytes]:
        """Yield the container's standard output."""
        return self._stream_chunks("stdout")

    def stderr(self) -> AsyncIterator[bytes]:
        """Yield the container's standard error."""
        return self._stream_chunks("stderr")

    async def write(self, data: bytes) -> None:
        """Write to the container's standard input."""
        await self._streams.write(data)

    async def end_input(self) -> None:
        """End the client's input: with `closes_input` the container's input is closed, else the session ends."""
        if self._closes_input:
            self._streams.end_input()
        else:
            self.end()

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the container's terminal, if there is one. Raises OSError."""
        self._streams.resize(columns, rows)

    async def wait(self) -> int:
        """Wait until the container or the session has ended; returns 0, as attach reports no exit status."""
        await self._ended.wait()
        return 0

    async def close(self) -> None:
        """Detach the client; the container goes on. With `closes_input` its input is closed."""
        if self._closes_input:
            self._streams.end_input()
        self.end()
        self._streams.detach(self)

    async def _stream_chunks(self, stream: Stream) -> AsyncIterator[bytes]:
        """Yield the chunks of one stream until the session ends; the container goes on once they are read."""
        pending = self._pending[stream]
        while True:
            while pending:
                chunk = pending.popleft()
                yield chunk
                self._pending_bytes -= len(chunk)
                self._streams.resume_output()
            if self._ended.is_set():
                return
            self._changed.clear()
            await self._changed.wait()
