"""One start of a container: its process, its log, and how it ended.

`container_run` makes one. The end is told once everything is in order: the log is complete on disk, no process of the
container is left, and its note is removed.
"""

import logging
import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.kubelet.containers.container_state import Terminated
from podscaler.controlplane.kubelet.containers.host import ContainerProcess, Host
from podscaler.controlplane.kubelet.launching import launch_plan, terminals
from podscaler.controlplane.kubelet.launching.launch_plan import Launch
from podscaler.controlplane.kubelet.logs import log_files
from podscaler.controlplane.kubelet.logs.console import Console
from podscaler.controlplane.kubelet.logs.log_files import Stream
from podscaler.controlplane.kubelet.logs.pipe_reader import PipeReader
from podscaler.controlplane.kubelet.processes import process_records, processes
from podscaler.controlplane.kubelet.processes.descriptors import DescriptorWriter
from podscaler.controlplane.kubelet.processes.process_records import ProcessRecord
from podscaler.controlplane.kubelet.processes.processes import Descriptors, Process

MESSAGE_BYTES: Final = 2048

_log = logging.getLogger(__name__)


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
    process, ends = await _start_with_streams(host, launch)
    log = host.book.open(log_path)
    stdin = None if ends.stdin is None else DescriptorWriter(ends.stdin)
    console = Console(log, stdin=stdin, master=ends.master)
    readers = tuple(PipeReader(descriptor, stream, console) for stream, descriptor in ends.outputs.items())

    def resume() -> None:
        for reader in readers:
            reader.resume()

    console.on_room = resume
    started = ContainerProcess(process, log, container_id, host.clock.now_ns(), console)

    async def settle() -> None:
        code = await process.exited
        on_exit()
        for reader in readers:
            reader.drain()
        console.close()
        try:
            await host.book.close(log)
            await host.sweeper.sweep(container_id)
            await host.threads.run(process_records.remove, host.paths.processes, container_id)
        finally:
            on_end(started, code)

    if (record := await host.threads.run(_note, host.paths.processes, container_id, process.pid, log_path)) is not None:
        host.sweeper.record(container_id, record)
    host.background.start(settle(), f"container {container_id}")
    return started


@dataclass(slots=True)
class _Ends:
    """Our ends of the container's streams."""

    outputs: dict[Stream, int]
    stdin: int | None = None
    master: int | None = None


async def _start_with_streams(host: Host, launch: Launch) -> tuple[Process, _Ends]:
    with ExitStack() as theirs, ExitStack() as undo:
        ends, given = _terminal(launch, theirs, undo) if launch.tty else _pipes(launch, theirs, undo)
        process = await processes.start(
            launch_plan.process_spec(launch),
            host.threads,
            stdin=given.stdin,
            stdout=given.stdout,
            stderr=given.stderr,
        )
        undo.pop_all()
        return process, ends


def _terminal(launch: Launch, theirs: ExitStack, undo: ExitStack) -> tuple[_Ends, Descriptors]:
    terminal = terminals.open_terminal()
    theirs.callback(os.close, terminal.slave)
    undo.callback(os.close, terminal.master)
    ends = _Ends({"stdout": _noted(os.dup(terminal.master), undo)}, master=terminal.master)
    if launch.stdin:
        ends.stdin = _noted(os.dup(terminal.master), undo)
    return ends, Descriptors(terminal.slave, terminal.slave, terminal.slave)


def _pipes(launch: Launch, theirs: ExitStack, undo: ExitStack) -> tuple[_Ends, Descriptors]:
    outputs: dict[Stream, int] = {}
    given: list[int] = []
    names: tuple[Stream, Stream] = ("stdout", "stderr")
    for name in names:
        reader, writer = os.pipe()
        outputs[name] = _noted(reader, undo)
        given.append(_noted(writer, theirs))
    ends = _Ends(outputs)
    stdin = subprocess.DEVNULL
    if launch.stdin:
        reader, writer = os.pipe()
        stdin = _noted(reader, theirs)
        ends.stdin = _noted(writer, undo)
    return ends, Descriptors(stdin, *given)


def _noted(descriptor: int, owner: ExitStack) -> int:
    """The descriptor, which `owner` will close."""
    owner.callback(os.close, descriptor)
    return descriptor


def _note(records: Path, container_id: str, pid: int, log_path: Path) -> ProcessRecord | None:
    """Leave a note of the process, and drop logs that nobody can ask for any more. A full disk stops no container."""
    record = process_records.record(pid)
    try:
        if record is not None:
            process_records.write(records, container_id, record)
        log_files.remove_older(log_path)
    except OSError as error:
        _log.warning("container %s is running, but not noted: %s", container_id, error)
    return record


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
