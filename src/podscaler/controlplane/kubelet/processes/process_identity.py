"""What proves that a pid still is the process that it was.

`process_records` and `orphaned_processes` use it: a pid alone is not enough to kill, as pids are used again.
"""

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

INSTANCE_VARIABLE: Final = "PODSCALER_INSTANCE"
CONTAINER_VARIABLE: Final = "PODSCALER_CONTAINER_ID"
"""Marks in the environment of every process that a container started, unless it cleared its environment."""

_PARENT_FIELD, _SESSION_FIELD, _TERMINAL_FIELD, _START_TICKS_FIELD = 1, 3, 4, 19
"""Of /proc/PID/stat, counted after the program's name (fields 4, 6, 7 and 22 of proc(5))."""


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """A process that lives.

    Attributes:
        parent: the pid of its parent.
        session: the id of its session, which is the pid of the session's leader, living or not.
        has_terminal: whether it has a controlling terminal.
        start_mark: a text that no other process of this pid will have.
    """

    pid: int
    parent: int
    session: int
    has_terminal: bool
    start_mark: str


def facts(pid: int) -> ProcessFacts | None:
    """What is known of a process, None where there is no such process (a zombie is none)."""
    if not os.path.exists("/proc/self/stat"):
        return _portable_facts(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(b")")[2].split()
    if fields[0] == b"Z":
        return None
    return ProcessFacts(
        pid=pid,
        parent=int(fields[_PARENT_FIELD]),
        session=int(fields[_SESSION_FIELD]),
        has_terminal=fields[_TERMINAL_FIELD] != b"0",
        start_mark=f"{_boot_id()}:{fields[_START_TICKS_FIELD].decode('ascii')}",
    )


def start_mark(pid: int) -> str | None:
    """A text that no other process of this pid will have, None where there is no such process."""
    found = facts(pid)
    return None if found is None else found.start_mark


@functools.cache
def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _portable_facts(pid: int) -> ProcessFacts | None:
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


def marked_processes(variable: str, values: frozenset[str]) -> dict[int, str]:
    """The processes whose environment has `variable` with one of `values`: pid -> value. One look at each process."""
    found = {}
    head = f"{variable}=".encode()
    wanted = {head + value.encode(): value for value in values}
    for pid in psutil.pids():
        for entry in _environment(pid):
            if entry in wanted:
                found[pid] = wanted[entry]
    found.pop(os.getpid(), None)
    return found


def _environment(pid: int) -> list[bytes]:
    """The environment of a process; empty where it may not be read."""
    if os.path.exists("/proc/self/environ"):
        try:
            return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return []
    try:
        return [f"{name}={value}".encode() for name, value in psutil.Process(pid).environ().items()]
    except (psutil.Error, OSError):
        return []
