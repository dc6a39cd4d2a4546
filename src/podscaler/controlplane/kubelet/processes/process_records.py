"""Records on disk of the main processes of containers, by which the next `up` finds the orphans of a killed one.

`kubelet.containers.container_process` writes a record when a process starts and removes it after its exit;
`orphaned_processes` reads the records when `up` starts. All functions but `record_of` block and are called in threads.
A new field is one that `read_all` does not require: records of an earlier release lack it.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from podscaler.controlplane.kubelet.processes import process_identity


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process that this node started: its pid and its start time as `process_identity.start_mark` returns it."""

    pid: int
    start_mark: str


def record_of(pid: int) -> ProcessRecord | None:
    """The record of a running process, None if it has exited."""
    mark = process_identity.start_mark(pid)
    return None if mark is None else ProcessRecord(pid, mark)


def write(folder: Path, container_id: str, record: ProcessRecord) -> None:
    """Write the record of the container's main process. Raises OSError."""
    path = folder / container_id
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        json.dump({"pid": record.pid, "startMark": record.start_mark}, file)


def remove(folder: Path, container_id: str) -> None:
    """Remove the container's record, if there is one. Raises OSError."""
    (folder / container_id).unlink(missing_ok=True)


def read_all(folder: Path) -> list[ProcessRecord]:
    """All records but truncated ones, whose processes are found by their environment. Raises OSError."""
    records = []
    for path in folder.iterdir():
        try:
            record_json = json.loads(path.read_bytes())
            records.append(ProcessRecord(pid=int(record_json["pid"]), start_mark=str(record_json["startMark"])))
        except (ValueError, KeyError, TypeError):
            continue
    return records


def clear(folder: Path) -> None:
    """Remove all records. Raises OSError."""
    for path in folder.iterdir():
        path.unlink(missing_ok=True)
