"""What proves that a pid still is the process that it was.

`process_records` and `leftovers` use it: a pid alone is not enough to kill, as pids are used again.
"""

import os
from pathlib import Path
from typing import Final

import psutil

INSTANCE_VARIABLE: Final = "PODSCALER_INSTANCE"
CONTAINER_VARIABLE: Final = "PODSCALER_CONTAINER_ID"
"""Marks in the environment of every process that a container started, unless it cleared its environment."""

_START_TICKS_FIELD: Final = 19
"""Of /proc/PID/stat, counted after the program's name (field 22 of proc(5))."""


def start_mark(pid: int) -> str | None:
    """A text that no other process of this pid will have, None where there is no such process."""
    if not os.path.exists("/proc/self/stat"):
        return _portable_mark(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(b")")[2].split()
    if fields[0] == b"Z":
        return None
    return f"{boot}:{fields[_START_TICKS_FIELD].decode('ascii')}"


def _portable_mark(pid: int) -> str | None:
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
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
