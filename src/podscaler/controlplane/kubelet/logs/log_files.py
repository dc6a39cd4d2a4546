"""Writing what containers print to bounded files.

`container_process` opens a `ContainerLog` for each start of a container and feeds it; `log_reader` reads the files. All
logs of the node share one flusher: what arrives is collected for a moment and written in one go in a thread.

Invariants:

1. A log takes at most two files of `max_bytes`: FILE, and FILE.1 with what was there before.
2. What a container printed before it ended is in the file once `close` has returned.
3. A container that prints faster than the disk writes has to wait: `is_full` tells the reader of its pipe.
4. A write that fails (a full disk) is reported once and its bytes are dropped; the container goes on.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, Literal

from podscaler.base.clock import Clock
from podscaler.controlplane.kubelet.logs.log_format import Splitter
from podscaler.controlplane.kubelet.processes.threads import Threads

COLLECT_S: Final = 0.02
PENDING_MAX_BYTES: Final = 1 << 20
RECENT_BYTES: Final = 4096

Stream = Literal["stdout", "stderr"]

_log = logging.getLogger(__name__)


class ContainerLog:
    """The log of one start of a container. Made by `LogBook.open`; methods are called on the event loop.

    Attributes:
        recent: the last few KiB as they were printed.
        version: how often something was written.
        is_finished: the container has ended; `is_complete`: and all it printed is in the files.
        on_room: called when the log was full and is no longer.
    """

    def __init__(self, path: Path, max_bytes: int, clock: Clock, on_pending: Callable[["ContainerLog"], None]) -> None:
        self.path = path
        self.recent = b""
        self.version = 0
        self.is_finished = False
        self.is_complete = False
        self.on_room: Callable[[], None] | None = None
        self._file = _RotatingFile(path, max_bytes)
        self._clock = clock
        self._on_pending = on_pending
        self._splitters = {"stdout": Splitter("stdout"), "stderr": Splitter("stderr")}
        self._pending = bytearray()
        self._changed = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether the reader should wait for `room` before it feeds more."""
        return len(self._pending) >= PENDING_MAX_BYTES

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take what the container printed."""
        self.recent = (self.recent + data)[-RECENT_BYTES:]
        self._append(self._splitters[stream].feed(data, self._clock.now_ns()))

    def finish(self) -> None:
        """The container has ended: take the last lines as they are."""
        for splitter in self._splitters.values():
            self._append(splitter.finish(self._clock.now_ns()))
        self.is_finished = True
        self._on_pending(self)

    async def changed(self, version: int) -> None:
        """Return when more is in the files than there was at `version`, or the log is complete."""
        while self.version == version and not self.is_complete:
            self._changed.clear()
            await self._changed.wait()

    @property
    def is_pending(self) -> bool:
        """Whether there is something left to do for the flusher."""
        return bool(self._pending) or (self.is_finished and not self.is_complete)

    def take(self) -> bytes:
        """What is to be written now."""
        data = bytes(self._pending)
        self._pending.clear()
        return data

    def write(self, data: bytes, *, is_last: bool) -> None:
        """Write to the files; called in a thread."""
        self._file.write(data)
        if is_last:
            self._file.close()

    def written(self, *, is_last: bool) -> None:
        """Tell those who wait that the files have changed."""
        self.version += 1
        self.is_complete = is_last
        self._changed.set()
        if self.on_room is not None and not self.is_full:
            self.on_room()

    def _append(self, stored: bytes) -> None:
        if stored:
            self._pending += stored
            self._on_pending(self)


class _RotatingFile:
    """Invariant 1; used in one thread at a time."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file: BinaryIO | None = None
        self._bytes = 0
        self._has_failed = False

    def write(self, data: bytes) -> None:
        try:
            self._write(data)
        except OSError as error:
            if not self._has_failed:
                _log.warning("a container's output is lost: %s: %s", self._path, error.strerror)
            self._has_failed = True

    def _write(self, data: bytes) -> None:
        if self._bytes and self._bytes + len(data) > self._max_bytes:
            self.close()
            os.replace(self._path, f"{self._path}.1")
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self._path, "ab", buffering=0, opener=_private)  # noqa: SIM115  kept open between writes
            self._bytes = self._file.tell()
        self._file.write(data)
        self._bytes += len(data)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._bytes = 0


def remove_older(path: Path) -> None:
    """Remove the logs of starts before the last one: of N.log, everything below N-1. Blocks."""
    if not path.parent.exists():
        return
    for other in path.parent.iterdir():
        number = other.name.partition(".")[0]
        if number.isdigit() and int(number) < int(path.stem) - 1:
            other.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class LogBook:
    """All logs of the node that are being written.

    Args:
        clock: stamps and the moment of collecting.
        max_bytes: of one file.
    """

    def __init__(self, threads: Threads, clock: Clock, *, max_bytes: int) -> None:
        self._threads = threads
        self._clock = clock
        self._max_bytes = max_bytes
        self._live: dict[Path, ContainerLog] = {}
        self._dirty: dict[ContainerLog, None] = {}
        self._flusher: asyncio.Task[None] | None = None

    def open(self, path: Path) -> ContainerLog:
        """A log that writes to `path` (and `path`.1)."""
        log = ContainerLog(path, self._max_bytes, self._clock, self._note)
        self._live[path] = log
        return log

    def find_live(self, path: Path) -> ContainerLog | None:
        """The log that is being written to `path`."""
        return self._live.get(path)

    async def close(self, log: ContainerLog) -> None:
        """Return once everything `log` was fed is in its files."""
        log.finish()
        while not log.is_complete:
            await log.changed(log.version)
        if self._live.get(log.path) is log:
            del self._live[log.path]

    def _note(self, log: ContainerLog) -> None:
        self._dirty[log] = None
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        while self._dirty:
            if not any(log.is_finished for log in self._dirty):
                await self._clock.sleep(COLLECT_S)
            batch = [(log, log.take(), log.is_finished) for log in self._dirty]
            await self._threads.run(_write_all, batch)
            for log, _, is_last in batch:
                log.written(is_last=is_last)
            self._dirty = {log: None for log in self._dirty if log.is_pending}


def _write_all(batch: list[tuple[ContainerLog, bytes, bool]]) -> None:
    for log, data, is_last in batch:
        log.write(data, is_last=is_last)
