"""Ending processes that outlived their container, or the `up` that started them - and nobody else's.

`Sweeper` is asked after each end of a container: its process group is gone by then, but a process that made a session
of its own is found by the mark in its environment. `kill_orphans` runs once, before a node starts pods. Proof is either
a note with pid and start (`process_records`) or the mark; what has neither is left alone.
"""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

from podscaler.controlplane.runtime import identity, process_records
from podscaler.controlplane.runtime.threads import Threads

GONE_WITHIN_S: Final = 5.0
_LOOK_AGAIN_S: Final = 0.02


class Sweeper:
    """Kills what is left of ended containers; one look at the machine's processes serves all that ended meanwhile."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._round: asyncio.Task[None] | None = None

    async def sweep(self, container_id: str) -> None:
        """Return when no process carries the mark of this container."""
        done = self._waiting.setdefault(container_id, asyncio.get_running_loop().create_future())
        if self._round is None or self._round.done():
            self._round = asyncio.get_running_loop().create_task(self._sweep_waiting())
        await asyncio.shield(done)

    async def _sweep_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            try:
                await self._threads.run(_kill_marked, identity.CONTAINER_VARIABLE, frozenset(batch))
            finally:
                for done in batch.values():
                    done.set_result(None)


def _kill_marked(variable: str, values: frozenset[str]) -> int:
    """Kill until a look finds no process with the mark any more (children may be born meanwhile)."""
    killed = 0
    deadline = time.monotonic() + GONE_WITHIN_S
    while time.monotonic() < deadline:
        pids = [pid for pid in identity.marked_processes(variable, values) if identity.start_mark(pid)]
        if not pids:
            break
        killed += len(pids)
        for pid in pids:
            _kill(pid)
        time.sleep(_LOOK_AGAIN_S)
    return killed


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def kill_orphans(records: Path, instance: str) -> int:
    """Kill the processes that an earlier `up` of this data directory left; returns how many. Blocks.

    Args:
        records: the folder of `process_records`, emptied afterwards.
        instance: the mark of this data directory.
    """
    killed = 0
    for record in process_records.read_all(records):
        if identity.start_mark(record.pid) == record.start_mark:
            killed += 1
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(record.pid, signal.SIGKILL)
            _wait_gone(record)
    killed += _kill_marked(identity.INSTANCE_VARIABLE, frozenset((instance,)))
    process_records.clear(records)
    return killed


def _wait_gone(record: process_records.ProcessRecord) -> None:
    deadline = time.monotonic() + GONE_WITHIN_S
    while identity.start_mark(record.pid) == record.start_mark and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN_S)
