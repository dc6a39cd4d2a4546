"""Identifies processes by pid and start time, and by marks in their environment.

`process_records` and `orphaned_processes` use it: a pid alone does not identify a process, as pids are reused.
`kubelet.pods.container_setup` sets the marks, and `kubelet.launching.container_config` keeps them for the launcher. A
new fact: a field of `ProcessFacts`, read in `facts` and `_portable_facts`.

Source: proc_pid_stat(5), proc_pid_environ(5).
"""

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

INSTANCE_VARIABLE: Final = "PODSCALER_INSTANCE"
"""A mark: the id of the data directory, in the environment of every process that a container started."""
CONTAINER_VARIABLE: Final = "PODSCALER_CONTAINER_ID"
"""A mark: the id of the container's start. A process that clears its environment has neither."""

_STATE_FIELD, _PARENT_FIELD, _SESSION_FIELD, _TERMINAL_FIELD, _START_TICKS_FIELD = 0, 1, 3, 4, 19
"""Indices in /proc/PID/stat after the program's name: fields 3, 4, 6, 7 and 22 of proc_pid_stat(5)."""
_ZOMBIE: Final = b"Z"


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """A running process.

    Attributes:
        parent: the pid of its parent.
        session: the id of its session, which is the pid of the session's leader, even if that has exited.
        has_terminal: whether it has a controlling terminal.
        start_mark: boot id and start time; no other process with this pid has the same.
    """

    pid: int
    parent: int
    session: int
    has_terminal: bool
    start_mark: str


def facts(pid: int) -> ProcessFacts | None:
    """The facts of a process; None if there is no such process, or it is a zombie."""
    if not os.path.exists("/proc/self/stat"):
        return _portable_facts(pid)
    try:
        stat_bytes = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    _, _, after_name = stat_bytes.rpartition(b")")  # the name of the program may contain blanks and parentheses
    fields = after_name.split()
    if fields[_STATE_FIELD] == _ZOMBIE:
        return None
    return ProcessFacts(
        pid=pid,
        parent=int(fields[_PARENT_FIELD]),
        session=int(fields[_SESSION_FIELD]),
        has_terminal=fields[_TERMINAL_FIELD] != b"0",
        start_mark=f"{_boot_id()}:{fields[_START_TICKS_FIELD].decode('ascii')}",
    )


def start_mark(pid: int) -> str | None:
    """The start mark of a process, None if there is no such process."""
    process_facts = facts(pid)
    return None if process_facts is None else process_facts.start_mark


@functools.cache
def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _portable_facts(pid: int) -> ProcessFacts | None:
    """As `facts`, on systems without /proc."""
    try:
        process = psutil.Process(pid)
        return ProcessFacts(
            pid=pid,
            parent=process.ppid(),
            session=os.getsid(pid),
            has_terminal=process.terminal() is not None,
            start_mark=f"{process.create_time():.2f}",
        )
    except (psutil.Error, ProcessLookupError, PermissionError):
        return None


def marked_pids(variable: str, values: frozenset[str]) -> set[int]:
    """The pids of all processes but this one whose environment has `variable` with one of `values`. Blocks."""
    marks = {f"{variable}={value}".encode() for value in values}
    return {pid for pid in psutil.pids() if pid != os.getpid() and not marks.isdisjoint(_environment_of(pid))}


def _environment_of(pid: int) -> list[bytes]:
    """The environment of a process as NAME=VALUE; empty if it may not be read, or the process has exited."""
    if os.path.exists("/proc/self/environ"):
        try:
            return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return []
    try:
        return [f"{name}={value}".encode() for name, value in psutil.Process(pid).environ().items()]
    except (psutil.Error, OSError):
        return []
