"""Reading containers' logs back: what `kubectl logs` shows.

The API server calls `NodeLogs.stream` (the `PodLogs` of the registry's seam). Files are read in threads, in chunks.
A reader keeps its files open, so that it loses nothing when they rotate while it reads.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet.logs import log_format
from podscaler.controlplane.kubelet.logs.log_files import LogBook
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.processes.threads import Threads
from podscaler.controlplane.registry.providers import LogOptions
from podscaler.controlplane.registry.registry import Object

CHUNK_BYTES: Final = 1 << 18
_ROTATED: Final = ".1"


class LogCursor:
    """A place in the files of one log; its methods block, each is called in a thread, one at a time.

    Args:
        path: the log's newest file; a missing one reads as empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: list[BinaryIO] = []
        self._rest = b""
        for candidate in (Path(f"{path}{_ROTATED}"), path):
            self._open(candidate)

    def seek_tail(self, lines: int) -> None:
        """Move to the last `lines` complete lines."""
        missing = lines
        for index in range(len(self._files) - 1, -1, -1):
            missing = _seek_back(self._files[index], missing)
            if missing == 0:
                self._drop(index)
                return

    def read(self) -> list[bytes]:
        """The next stored lines, without newlines; empty at the end of what is written now."""
        while self._files:
            data = self._files[0].read(CHUNK_BYTES)
            if data:
                *lines, self._rest = (self._rest + data).split(b"\n")
                if lines:
                    return lines
            elif len(self._files) > 1 or self._has_rotated():
                self._drop(1)
            else:
                return []
        self._open(self._path)
        return self.read() if self._files else []

    def close(self) -> None:
        """Close the files."""
        self._drop(len(self._files))

    def _has_rotated(self) -> bool:
        """Whether the newest file is another one by now; opens what is newer."""
        mine = os.fstat(self._files[-1].fileno()).st_ino
        for candidate in (Path(f"{self._path}{_ROTATED}"), self._path):
            if _inode(candidate) != mine:
                self._open_newer(candidate, mine)
        return len(self._files) > 1

    def _open_newer(self, candidate: Path, mine: int) -> None:
        # FILE.1 is newer than ours only if FILE is not ours: ours was rotated away altogether.
        if candidate != self._path and _inode(self._path) == mine:
            return
        self._open(candidate)

    def _open(self, path: Path) -> None:
        try:
            self._files.append(open(path, "rb", buffering=0))  # noqa: SIM115  kept open while the log is followed
        except FileNotFoundError:
            return

    def _drop(self, count: int) -> None:
        for file in self._files[:count]:
            file.close()
        del self._files[:count]


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _seek_back(file: BinaryIO, lines: int) -> int:
    """Move `file` to its last `lines` lines; returns how many it did not have."""
    end = file.seek(0, os.SEEK_END)
    found, position = 0, end
    while position > 0:
        start = max(0, position - CHUNK_BYTES)
        file.seek(start)
        block = file.read(position - start)
        for offset in _newlines_backwards(block):
            if start + offset + 1 == end:
                continue  # the newline of the last line
            found += 1
            if found == lines:
                file.seek(start + offset + 1)
                return 0
        position = start
    file.seek(0 if lines else end)
    return max(0, lines - found - (1 if end else 0)) if lines else 0


def _newlines_backwards(block: bytes) -> list[int]:
    offsets = []
    offset = block.rfind(b"\n")
    while offset >= 0:
        offsets.append(offset)
        offset = block.rfind(b"\n", 0, offset)
    return offsets


class Renderer:
    """Turns stored lines into what is shown.

    Args:
        options: timestamps, since and the limit of bytes.
        until_ns: the time at which to end, so that a container that never stops printing does not keep a reader.
    """

    def __init__(self, options: LogOptions, until_ns: int | None = None) -> None:
        self._timestamps = options.timestamps
        self._until = log_format.stamp(until_ns) if until_ns is not None else b"~"
        self._since = log_format.stamp(options.since_ns) if options.since_ns is not None else b""
        self._left = options.limit_bytes
        self._at_start = True
        self._is_past_end = False

    @property
    def is_done(self) -> bool:
        """Whether the limit is reached, or the end."""
        return self._left == 0 or self._is_past_end

    def render(self, stored: list[bytes]) -> bytes:
        """The bytes to show for these lines."""
        parts = []
        for entry in stored:
            line = log_format.parse(entry)
            if line is None or line.stamp < self._since:
                continue
            if line.stamp > self._until:
                self._is_past_end = True
                break
            parts.append(log_format.shown(line, timestamps=self._timestamps, at_start=self._at_start))
            self._at_start = line.is_complete
        return self._cut(b"".join(parts))

    def _cut(self, data: bytes) -> bytes:
        if self._left is None:
            return data
        data = data[: self._left]
        self._left -= len(data)
        return data


class NodeLogs:
    """The logs of all pods of the node.

    Args:
        paths: where log files are.
        clock: the one that stamps lines.
    """

    def __init__(self, threads: Threads, book: LogBook, paths: NodePaths, clock: Clock) -> None:
        self._threads = threads
        self._clock = clock
        self._book = book
        self._paths = paths

    async def stream(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """The log in chunks; see `podscaler.controlplane.registry.providers.PodLogs`. Raises StatusError 400."""
        path = self._paths.log(pod["metadata"]["uid"], options.container, start_number(pod, options))
        cursor = await self._threads.run(_cursor, path, options.tail_lines)
        renderer = Renderer(options, None if options.follow else self._clock.now_ns())
        try:
            while not renderer.is_done:
                log = self._book.find_live(path)
                version = log.version if log else 0
                is_over = log is None or log.is_complete
                lines = await self._threads.run(cursor.read)
                if data := renderer.render(lines):
                    yield data
                if not lines:
                    if not options.follow or is_over or log is None:
                        return
                    await log.changed(version)
        finally:
            cursor.close()


def _cursor(path: Path, tail_lines: int | None) -> LogCursor:
    cursor = LogCursor(path)
    if tail_lines is not None:
        cursor.seek_tail(tail_lines)
    return cursor


def start_number(pod: Object, options: LogOptions) -> int:
    """Which start of the container is meant: its restart count then. Raises StatusError 400 where it has no log."""
    name, pod_name = options.container, pod["metadata"]["name"]
    if not any(entry["name"] == name for group in _GROUPS for entry in pod["spec"].get(group) or []):
        raise _bad_request(f"container {name} is not valid for pod {pod_name}")
    status = _find_status(pod, name) or {}
    state = status.get("state") or {"waiting": {"reason": "ContainerCreating"}}
    has_ended = "terminated" in (status.get("lastState") or {})
    count: int = status.get("restartCount", 0)
    if options.previous:
        if not has_ended:
            raise _bad_request(f'previous terminated container "{name}" in pod "{pod_name}" not found')
        return count if "waiting" in state else count - 1
    if "waiting" in state and not has_ended:
        reason = state["waiting"].get("reason", "")
        text = "trying and failing to pull image" if reason == "ErrImagePull" else f"waiting to start: {reason}"
        raise _bad_request(f'container "{name}" in pod "{pod_name}" is {text}')
    return count


_GROUPS = ("containers", "initContainers", "ephemeralContainers")


def _find_status(pod: Object, name: str) -> dict[str, Any] | None:
    status = pod.get("status") or {}
    for group in ("containerStatuses", "initContainerStatuses"):
        for entry in status.get(group) or []:
            if entry["name"] == name:
                return dict(entry)
    return None


def _bad_request(message: str) -> StatusError:
    return StatusError(message, code=400, reason="BadRequest")
