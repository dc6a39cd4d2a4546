"""Writes the output of containers to log files of limited size.

`kubelet.containers.container_process` opens a `ContainerLog` for each start of a container; `log_reader` reads the
files and waits for changes. All logs of the node share one flusher: output is collected for COLLECT_S seconds and then
written in a thread.

Invariants:

1. A log has at most two files of `max_bytes` (`rotated_files`).
2. All output of a container is in the files once `ContainerLogManager.close` has returned.
3. A container that prints faster than the disk writes must wait: `is_full` pauses the reader of its pipe
   (`container_streams`), `on_room` resumes it.
4. A write that fails (a full disk) is logged once and its bytes are dropped; the container keeps running.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from podscaler.base.clock import Clock
from podscaler.controlplane.kubelet.logs.log_format import LineSplitter
from podscaler.controlplane.kubelet.logs.rotated_files import RotatingFile
from podscaler.controlplane.kubelet.processes.background import ThreadPool

COLLECT_S: Final = 0.02
PENDING_MAX_BYTES: Final = 1 << 20
"""From so many bytes that wait for a write on, a log is full."""
RECENT_BYTES: Final = 4096
"""Kept for the termination message and the search for bind errors (`container_process`)."""

Stream = Literal["stdout", "stderr"]


class ContainerLog:
    """The log of one start of a container, opened by `ContainerLogManager.open`. Only `write` is called in a thread.

    Args:
        on_pending: called when the log has something for the flusher.

    Attributes:
        recent: the last RECENT_BYTES of the output, without timestamps.
        version: the number of writes to the files so far.
        is_finished: whether `finish` was called: the container has exited.
        is_complete: whether, after that, all its output is in the files.
        on_room: called after a write if the log is not full; set by `container_streams`.
    """

    def __init__(self, path: Path, max_bytes: int, clock: Clock, on_pending: Callable[["ContainerLog"], None]) -> None:
        self.path = path
        self.recent = b""
        self.version = 0
        self.is_finished = False
        self.is_complete = False
        self.on_room: Callable[[], None] | None = None
        self._file = RotatingFile(path, max_bytes)
        self._clock = clock
        self._on_pending = on_pending
        self._splitters = {"stdout": LineSplitter("stdout"), "stderr": LineSplitter("stderr")}
        self._pending = bytearray()
        self._changed = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether the reader of the pipe should pause until `on_room` is called."""
        return len(self._pending) >= PENDING_MAX_BYTES

    def feed(self, stream: Stream, data: bytes) -> None:
        """Append output of the container, with the present time as timestamp."""
        self.recent = (self.recent + data)[-RECENT_BYTES:]
        self._append_pending(self._splitters[stream].feed(data, self._clock.now_ns()))

    def finish(self) -> None:
        """Append the last lines, which may lack a newline, and set `is_finished`."""
        for splitter in self._splitters.values():
            self._append_pending(splitter.finish(self._clock.now_ns()))
        self.is_finished = True
        self._on_pending(self)

    async def wait_for_change(self, version: int) -> None:
        """Return when `self.version` is no longer `version`, or the log is complete."""
        while self.version == version and not self.is_complete:
            self._changed.clear()
            await self._changed.wait()

    @property
    def is_pending(self) -> bool:
        """Whether the flusher has to write or close the files."""
        return bool(self._pending) or (self.is_finished and not self.is_complete)

    def take_pending(self) -> bytes:
        """Remove and return the stored lines that are not written yet."""
        stored_lines = bytes(self._pending)
        self._pending.clear()
        return stored_lines

    def write(self, stored_lines: bytes, *, is_last: bool) -> None:
        """Write stored lines to the files, and close them if this is the last write; called in a thread."""
        self._file.write(stored_lines)
        if is_last:
            self._file.close()

    def finish_write(self, *, is_last: bool) -> None:
        """Wake the readers that wait in `wait_for_change`, and the reader of the pipe; called after `write`."""
        self.version += 1
        self.is_complete = is_last
        self._changed.set()
        if self.on_room is not None and not self.is_full:
            self.on_room()

    def _append_pending(self, stored_lines: bytes) -> None:
        """Add lines to those that wait for the flusher, and notify it."""
        if stored_lines:
            self._pending += stored_lines
            self._on_pending(self)


class ContainerLogManager:
    """The logs of running containers, and the flusher that writes them.

    Args:
        clock: of the timestamps and of COLLECT_S.
        max_bytes: the size of a file at which it is rotated.
    """

    def __init__(self, threads: ThreadPool, clock: Clock, *, max_bytes: int) -> None:
        self._threads = threads
        self._clock = clock
        self._max_bytes = max_bytes
        self._live: dict[Path, ContainerLog] = {}
        self._dirty: dict[ContainerLog, None] = {}  # the logs that the flusher has to write; a set with an order
        self._flusher: asyncio.Task[None] | None = None

    def open(self, path: Path) -> ContainerLog:
        """Open a log that is written to `path` (and `path`.1)."""
        log = ContainerLog(path, self._max_bytes, self._clock, self._add_dirty)
        self._live[path] = log
        return log

    def find_live(self, path: Path) -> ContainerLog | None:
        """The log that is being written to `path`, None if there is none."""
        return self._live.get(path)

    async def close(self, log: ContainerLog) -> None:
        """Finish `log`; returns once all its output is in the files (or dropped, invariant 4)."""
        log.finish()
        while not log.is_complete:
            await log.wait_for_change(log.version)
        if self._live.get(log.path) is log:
            del self._live[log.path]

    def _add_dirty(self, log: ContainerLog) -> None:
        """Let the flusher write this log; the flusher is started unless it runs."""
        self._dirty[log] = None
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.get_running_loop().create_task(self._flush_dirty())

    async def _flush_dirty(self) -> None:
        """Write the collected lines of the dirty logs, in a thread, until no log is dirty."""
        while self._dirty:
            if not any(log.is_finished for log in self._dirty):
                await self._clock.sleep(COLLECT_S)
            batch = [(log, log.take_pending(), log.is_finished) for log in self._dirty]
            await self._threads.run(_write_all, batch)
            for log, _, is_last in batch:
                log.finish_write(is_last=is_last)
            self._dirty = {log: None for log in self._dirty if log.is_pending}


def _write_all(batch: list[tuple[ContainerLog, bytes, bool]]) -> None:
    """Write to several logs; one element is the log, its stored lines, and whether they are the last. Blocks."""
    for log, stored_lines, is_last in batch:
        log.write(stored_lines, is_last=is_last)
