"""Starts the process of a container, copies its output to the log, and cleans up after its exit.

`node_agent` injects `start` as `Dependencies.start_process`, which `container_run` calls for each start of a container;
`container_run` calls the other functions after the exit. Another sign that a port could not be bound: a pattern below,
and a case in `bind_error`.

Differs: the file at `terminationMessagePath` is not read; FallbackToLogsOnError does not limit the number of lines.
"""

import logging
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.kubelet.containers.container_state import Terminated
from podscaler.controlplane.kubelet.containers.dependencies import ContainerProcess, Dependencies
from podscaler.controlplane.kubelet.launching import container_config
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig
from podscaler.controlplane.kubelet.logs import rotated_files
from podscaler.controlplane.kubelet.logs.container_log import Stream
from podscaler.controlplane.kubelet.logs.container_streams import ContainerStreams
from podscaler.controlplane.kubelet.processes import process_records, processes, streams
from podscaler.controlplane.kubelet.processes.descriptors import DescriptorWriter, PipeReader
from podscaler.controlplane.kubelet.processes.process_records import ProcessRecord

TERMINATION_MESSAGE_BYTES_MAX: Final = 2048
"""The length of the end of the log that becomes the termination message (FallbackToLogsOnError)."""

# what servers of many languages print when they cannot bind their port
_ADDRESS_IN_USE: Final = re.compile(
    rb"address (?:is )?already in use|EADDRINUSE|Address in use|Only one usage of each socket address", re.IGNORECASE
)
_PERMISSION_DENIED: Final = re.compile(rb"permission denied|EACCES|operation not permitted", re.IGNORECASE)
_ABOUT_BINDING: Final = re.compile(rb"bind|listen|port|socket|address", re.IGNORECASE)

_log = logging.getLogger(__name__)


async def start(
    deps: Dependencies,
    config: ContainerConfig,
    *,
    container_id: str,
    log_path: Path,
    on_exit: Callable[[], None],
    on_cleaned_up: Callable[[ContainerProcess, int], None],
) -> ContainerProcess:
    """Start the process of a container with `config`, and return it with its log and streams.

    Args:
        container_id: the id of this start.
        log_path: the file of its log.
        on_exit: called when the main process has exited.
        on_cleaned_up: called with the return code (minus N for signal N) when the log is complete and no process left.

    Raises StartFailure, OSError (no descriptors for the streams).
    """
    with streams.open_streams(tty=config.tty, stdin=config.stdin, stdout=True, stderr=True) as (ends, child_streams):
        process = await processes.start(container_config.process_spec(config), deps.threads, child_streams)
    log = deps.logs.open(log_path)
    stdin = None if ends.stdin is None else DescriptorWriter(ends.stdin)
    container_streams = ContainerStreams(log, stdin=stdin, master=ends.master)
    outputs: tuple[tuple[Stream, int | None], ...] = (("stdout", ends.stdout), ("stderr", ends.stderr))
    readers = tuple(
        PipeReader(descriptor, partial(container_streams.feed, stream), lambda: container_streams.is_full)
        for stream, descriptor in outputs
        if descriptor is not None
    )

    def resume_readers() -> None:
        for reader in readers:
            reader.resume()

    container_streams.on_room = resume_readers
    started = ContainerProcess(process, log, container_id, deps.clock.now_ns(), container_streams)

    async def clean_up() -> None:
        """Wait for the exit, then complete the log, kill orphaned processes, and remove the record."""
        return_code = await process.exited
        on_exit()
        for reader in readers:
            reader.drain()
        container_streams.close()
        try:
            await deps.logs.close(log)
            await deps.orphans.kill_orphans_of(container_id)
            await deps.threads.run(process_records.remove, deps.paths.process_records, container_id)
        finally:
            on_cleaned_up(started, return_code)

    record = await deps.threads.run(_write_record, deps.paths.process_records, container_id, process.pid, log_path)
    if record is not None:
        deps.orphans.add_session(container_id, record)
    deps.background.start(clean_up(), f"container {container_id}")
    return started


def _write_record(records_folder: Path, container_id: str, pid: int, log_path: Path) -> ProcessRecord | None:
    """Write the process record and remove logs of earlier starts; an OSError is logged, and the container goes on.

    Returns the record, None if the process has exited already. Blocks.
    """
    record = process_records.record_of(pid)
    try:
        if record is not None:
            process_records.write(records_folder, container_id, record)
        rotated_files.remove_older(log_path)
    except OSError as error:
        _log.warning("the process record of container %s cannot be written: %s", container_id, error)
    return record


def terminated_state(
    container: Mapping[str, Any], ended: ContainerProcess, return_code: int, *, now_ns: int, out_of_memory: bool
) -> Terminated:
    """The terminated state of a container whose main process has exited.

    Args:
        container: the core/v1 Container.
        return_code: minus N for signal N; the exit code is 128+N then, as in container runtimes.
        out_of_memory: whether a process in its cgroup was OOM-killed.
    """
    exit_code = processes.exit_code(return_code)
    reason = "Error" if exit_code else "Completed"
    if out_of_memory:
        reason = "OOMKilled"
    message = ""
    if exit_code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        message = ended.log.recent[-TERMINATION_MESSAGE_BYTES_MAX:].decode("utf-8", "replace")
    return Terminated(
        exit_code=exit_code,
        reason=reason,
        finished_ns=now_ns,
        started_ns=ended.started_ns,
        container_id=ended.container_id,
        message=message,
    )


def bind_error(
    recent_output: bytes, *, pod_ip: str, unprivileged_port_start: int, forbidden_ports: Collection[int] = ()
) -> str:
    """Why a container that ended soon after its start could probably not bind its port; empty if its log has no sign.

    All pods share the network of one machine, so that programs made for containers fail to bind 0.0.0.0 or a low port.

    Args:
        recent_output: the end of the container's output.
        unprivileged_port_start: the lowest port that an ordinary user may bind.
        forbidden_ports: the container's declared ports that its user may not bind: with one, any denial in the log
            counts, else only one in a line about binding.
    """
    if _ADDRESS_IN_USE.search(recent_output):
        return (
            "its log says that an address is in use. All pods share the network of this machine: bind to the pod's own "
            f"address in $POD_IP ({pod_ip}) instead of 0.0.0.0"
        )
    denial_lines = [line for line in recent_output.splitlines() if _PERMISSION_DENIED.search(line)]
    if denial_lines and (forbidden_ports or any(_ABOUT_BINDING.search(line) for line in denial_lines)):
        return (
            f"its log says that it may not bind its port. Ports below {unprivileged_port_start} need root here: let it "
            "listen on a higher port (the Service's targetPort can follow)"
        )
    return ""
