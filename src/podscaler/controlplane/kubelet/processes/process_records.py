"""Notes on disk of the processes that containers run as, by which the next `up` finds what this one left behind.

`container_process` writes a note when a process starts and removes it when it has ended; `orphaned_processes` reads
them after `up` was killed. All functions block: they are called in threads.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from podscaler.controlplane.kubelet.processes import process_identity


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One note: the process `pid` was ours while `start_mark` is true of it."""

    pid: int
    start_mark: str


def record(pid: int) -> ProcessRecord | None:
    """The note of a process, None where it has ended already."""
    mark = process_identity.start_mark(pid)
    return None if mark is None else ProcessRecord(pid, mark)


def write(folder: Path, container_id: str, noted: ProcessRecord) -> None:
    """Note that the container runs as this process. Raises OSError."""
    path = folder / container_id
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        json.dump({"pid": noted.pid, "startMark": noted.start_mark}, file)


def remove(folder: Path, container_id: str) -> None:
    """The container's process has ended."""
    (folder / container_id).unlink(missing_ok=True)


def read_all(folder: Path) -> list[ProcessRecord]:
    """All notes that can be read; one that was cut by a crash is skipped (the environment's mark finds its process)."""
    found = []
    for path in folder.iterdir():
        try:
            note = json.loads(path.read_bytes())
            found.append(ProcessRecord(int(note["pid"]), str(note["startMark"])))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def clear(folder: Path) -> None:
    """Forget all notes."""
    for path in folder.iterdir():
        path.unlink(missing_ok=True)
