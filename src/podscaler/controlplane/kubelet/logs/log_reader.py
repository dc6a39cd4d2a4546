"""Reads the logs of containers for `kubectl logs`.

`kubelet.node_agent` makes one `NodeLogs`; the API server calls its `stream`, which implements
`podscaler.controlplane.registry.providers.PodLogs`. Files are read in threads, in chunks. A new option of the request:
a field of `providers.LogOptions`, and a case in `Renderer` or `stream`.

Source: PodLogOptions (API reference); the messages are those of kubelet.
"""

from collections.abc import AsyncIterator
from pathlib import Path

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
"""This node runs no ephemeral containers: they have no status, and so no log."""
AFTER_EVERY_STAMP = b"~"
"""Sorts after all timestamps, which are digits."""


class Renderer:
    """Renders stored lines as `kubectl logs` shows them. It counts what it has rendered: each request has its own.

    Args:
        options: `timestamps`, `since_ns` and `limit_bytes` are used, and without `follow` `tail_lines`: lines that are
            stored after the tail was found are not shown.
        until_ns: later lines are not shown, so that reading ends though the container prints on; None: no end.
    """

    def __init__(self, options: LogOptions, until_ns: int | None = None) -> None:
        self._timestamps = options.timestamps
        self._until_stamp = log_format.stamp(until_ns) if until_ns is not None else AFTER_EVERY_STAMP
        self._since_stamp = log_format.stamp(options.since_ns) if options.since_ns is not None else b""
        self._remaining_bytes = options.limit_bytes
        self._remaining_lines = None if options.follow else options.tail_lines
        self._at_start = True
        self._is_past_end = False

    @property
    def is_done(self) -> bool:
        """Whether `limit_bytes`, `tail_lines` or `until_ns` has been reached."""
        return self._remaining_bytes == 0 or self._remaining_lines == 0 or self._is_past_end

    def render(self, stored_lines: list[bytes]) -> bytes:
        """The output for these lines of a log file (without newlines); empty if none of them is shown."""
        outputs = []
        for stored_line in stored_lines:
            if self._remaining_lines == 0:
                break
            line = log_format.parse(stored_line)
            if line is None or line.stamp < self._since_stamp:
                continue
            if line.stamp > self._until_stamp:
                self._is_past_end = True
                break
            outputs.append(log_format.kubectl_output(line, timestamps=self._timestamps, at_start=self._at_start))
            self._at_start = line.is_complete
            if self._remaining_lines is not None:
                self._remaining_lines -= 1
        return self._within_limit(b"".join(outputs))

    def _within_limit(self, output: bytes) -> bytes:
        """The beginning of `output` that is within `limit_bytes`."""
        if self._remaining_bytes is None:
            return output
        output = output[: self._remaining_bytes]
        self._remaining_bytes -= len(output)
        return output


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
        """Yield the log in chunks, with `follow` until its end. Raises StatusError 400 (there is no log), OSError."""
        path = self._paths.log(pod["metadata"]["uid"], options.container, start_number(pod, options))
        cursor = await self._threads.run(_open_cursor, path, options.tail_lines)
        renderer = Renderer(options, None if options.follow else self._clock.now_ns())
        try:
            while not renderer.is_done:
                log = self._live.find_live(path)
                # both as before the read: what is written during it is a change to wait for
                version, is_complete = (log.version, log.is_complete) if log else (0, True)
                stored_lines = await self._threads.run(cursor.read)
                if output := renderer.render(stored_lines):
                    yield output
                if not stored_lines:
                    if not options.follow or log is None or is_complete:
                        return
                    await log.wait_for_change(version)
        finally:
            cursor.close()


def _open_cursor(path: Path, tail_lines: int | None) -> LogCursor:
    """A cursor at the beginning of the log, or at its last `tail_lines` lines. Blocks. Raises OSError."""
    cursor = LogCursor(path)
    if tail_lines is not None:
        cursor.seek_tail(tail_lines)
    return cursor


def start_number(pod: Object, options: LogOptions) -> int:
    """The number of the start (the restart count then) whose log the `options` name. Raises StatusError 400."""
    name, pod_name = options.container, pod["metadata"]["name"]
    containers = [container for field in _SPEC_FIELDS for container in pod["spec"].get(field) or []]
    if not any(container["name"] == name for container in containers):
        raise _bad_request(f"container {name} is not valid for pod {pod_name}")
    status = _find_status(pod, name) or {}
    state = status.get("state") or {"waiting": {"reason": "ContainerCreating"}}
    has_last_termination = "terminated" in (status.get("lastState") or {})
    restart_count: int = status.get("restartCount", 0)
    if options.previous:
        if not has_last_termination:
            raise _bad_request(f'previous terminated container "{name}" in pod "{pod_name}" not found')
        return restart_count if "waiting" in state else restart_count - 1  # a restart that it waits for is not counted
    if "waiting" in state and not has_last_termination:  # else the log of the start before it is shown
        reason = state["waiting"].get("reason", "")
        state_text = "trying and failing to pull image" if reason == "ErrImagePull" else f"waiting to start: {reason}"
        raise _bad_request(f'container "{name}" in pod "{pod_name}" is {state_text}')
    return restart_count


def _find_status(pod: Object, name: str) -> Object | None:
    """The core/v1 ContainerStatus of the container with this name, None if the pod's status has none."""
    pod_status = pod.get("status") or {}
    statuses: list[Object] = [status for field in _STATUS_FIELDS for status in pod_status.get(field) or []]
    return next((status for status in statuses if status["name"] == name), None)


def _bad_request(message: str) -> StatusError:
    return StatusError(message, code=400, reason="BadRequest")
