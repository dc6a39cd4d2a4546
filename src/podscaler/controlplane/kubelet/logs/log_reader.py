"""Reads the logs of containers for `kubectl logs`.

The API server calls `NodeLogs.stream`, which implements `podscaler.controlplane.registry.providers.PodLogs`. Files are
read in threads, in chunks.

Source: PodLogOptions (API reference); the messages are those of kubelet.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet.logs import log_format
from podscaler.controlplane.kubelet.logs.container_log import ContainerLogManager
from podscaler.controlplane.kubelet.logs.rotated_files import LogCursor
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.registry.providers import LogOptions
from podscaler.controlplane.registry.registry import Object

_SPEC_FIELDS = ("containers", "initContainers", "ephemeralContainers")
_STATUS_FIELDS = ("containerStatuses", "initContainerStatuses")


class Renderer:
    """Renders stored lines as `kubectl logs` shows them.

    Args:
        options: `timestamps`, `since_ns` and `limit_bytes` are used, and without `follow` `tail_lines`: lines that are
            stored after the tail was found are not shown.
        until_ns: later lines are not shown, so that reading ends though the container prints on; None: no end.
    """

    def __init__(self, options: LogOptions, until_ns: int | None = None) -> None:
        self._timestamps = options.timestamps
        self._until = log_format.stamp(until_ns) if until_ns is not None else b"~"
        self._since = log_format.stamp(options.since_ns) if options.since_ns is not None else b""
        self._left = options.limit_bytes
        self._lines_left = None if options.follow else options.tail_lines
        self._at_start = True
        self._is_past_end = False

    @property
    def is_done(self) -> bool:
        """Whether `limit_bytes`, `tail_lines` or `until_ns` has been reached."""
        return self._left == 0 or self._lines_left == 0 or self._is_past_end

    def render(self, stored: list[bytes]) -> bytes:
        """The output for these lines; empty if none of them is shown."""
        parts = []
        for entry in stored:
            if self._lines_left == 0:
                break
            line = log_format.parse(entry)
            if line is None or line.stamp < self._since:
                continue
            if line.stamp > self._until:
                self._is_past_end = True
                break
            parts.append(log_format.shown(line, timestamps=self._timestamps, at_start=self._at_start))
            self._at_start = line.is_complete
            if self._lines_left is not None:
                self._lines_left -= 1
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
        live: the logs that are being written.
        clock: the clock of the timestamps in the logs.
    """

    def __init__(self, threads: ThreadPool, live: ContainerLogManager, paths: NodePaths, clock: Clock) -> None:
        self._threads = threads
        self._clock = clock
        self._live = live
        self._paths = paths

    async def stream(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield the log in chunks. Raises StatusError 400 for a container without a log, OSError."""
        path = self._paths.log(pod["metadata"]["uid"], options.container, start_number(pod, options))
        cursor = await self._threads.run(_cursor, path, options.tail_lines)
        renderer = Renderer(options, None if options.follow else self._clock.now_ns())
        try:
            while not renderer.is_done:
                log = self._live.find_live(path)
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
    """The number of the start (the restart count then) whose log `options` asks for. Raises StatusError 400."""
    name, pod_name = options.container, pod["metadata"]["name"]
    if not any(entry["name"] == name for group in _SPEC_FIELDS for entry in pod["spec"].get(group) or []):
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


def _find_status(pod: Object, name: str) -> dict[str, Any] | None:
    status = pod.get("status") or {}
    for group in _STATUS_FIELDS:
        for entry in status.get(group) or []:
            if entry["name"] == name:
                return dict(entry)
    return None


def _bad_request(message: str) -> StatusError:
    return StatusError(message, code=400, reason="BadRequest")
