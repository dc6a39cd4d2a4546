"""One start of a container: its process, its log, and how it ended.

`container_run` makes one. The end is told once everything is in order: the log is complete on disk, no process of the
container is left, and its note is removed.
"""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.runtime import launch_plan, log_files, process_records, processes
from podscaler.controlplane.runtime.container_state import Terminated
from podscaler.controlplane.runtime.host import Host
from podscaler.controlplane.runtime.launch_plan import Launch
from podscaler.controlplane.runtime.log_files import ContainerLog
from podscaler.controlplane.runtime.pipe_reader import PipeReader
from podscaler.controlplane.runtime.processes import Process

MESSAGE_BYTES: Final = 2048

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContainerProcess:
    """A started container.

    Attributes:
        exited: return code of the main process, before the rest is in order; `on_end` follows.
    """

    process: Process
    log: ContainerLog
    container_id: str
    started_ns: int


async def start(
    host: Host,
    launch: Launch,
    *,
    container_id: str,
    log_path: Path,
    on_exit: Callable[[], None],
    on_end: Callable[[ContainerProcess, int], None],
) -> ContainerProcess:
    """Start the process.

    Args:
        on_exit: called when the main process has ended.
        on_end: called with its return code when all is in order after that.

    Raises StartFailure.
    """
    (out_reader, out_writer), (err_reader, err_writer) = os.pipe(), os.pipe()
    try:
        process = await processes.start(
            launch_plan.process_spec(launch), host.threads, stdout=out_writer, stderr=err_writer
        )
    except BaseException:
        os.close(out_reader)
        os.close(err_reader)
        raise
    finally:
        os.close(out_writer)
        os.close(err_writer)
    log = host.book.open(log_path)
    readers = (PipeReader(out_reader, "stdout", log), PipeReader(err_reader, "stderr", log))

    def resume() -> None:
        for reader in readers:
            reader.resume()

    log.on_room = resume
    started = ContainerProcess(process, log, container_id, host.clock.now_ns())

    async def settle() -> None:
        code = await process.exited
        on_exit()
        for reader in readers:
            reader.drain()
        try:
            await host.book.close(log)
            await host.sweeper.sweep(container_id)
            await host.threads.run(process_records.remove, host.paths.processes, container_id)
        finally:
            on_end(started, code)

    await host.threads.run(_note, host.paths.processes, container_id, process.pid, log_path)
    host.background.start(settle(), f"container {container_id}")
    return started


def _note(records: Path, container_id: str, pid: int, log_path: Path) -> None:
    """Leave a note of the process, and drop logs that nobody can ask for any more. A full disk stops no container."""
    try:
        process_records.write(records, container_id, pid)
        log_files.remove_older(log_path)
    except OSError as error:
        _log.warning("container %s is running, but not noted: %s", container_id, error)


def terminated(
    container: Mapping[str, Any], ended: ContainerProcess, code: int, *, now_ns: int, out_of_memory: bool
) -> Terminated:
    """How a container whose main process ended with `code` shows in its status.

    A signal N is exit code 128+N, as it is in a container runtime.
    """
    exit_code = 128 - code if code < 0 else code
    reason = "OOMKilled" if out_of_memory else ("Error" if exit_code else "Completed")
    message = ""
    if exit_code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        message = ended.log.recent[-MESSAGE_BYTES:].decode("utf-8", "replace")
    return Terminated(
        exit_code=exit_code,
        reason=reason,
        finished_ns=now_ns,
        started_ns=ended.started_ns,
        container_id=ended.container_id,
        message=message,
    )
