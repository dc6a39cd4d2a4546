"""Kills processes that outlived their container, or the `up` that started them, and no others.

`kubelet.containers.container_process` calls `OrphanKiller` after the exit of each container: its process group is dead
by then, but a process that made a session of its own may be left. `kubelet.startup` calls `kill_orphans` once, before
the node starts pods.

Processes are recognized by a mark in their environment (`process_identity`) and by recorded sessions. A mark is
inherited, and can be copied, so it proves nothing alone. A process is ours if one of these holds:

1. Its session is recorded (that of a container's main process or of a client's command), and the leader of the session
   still is the process that was recorded.
2. It has the mark, and its session is recorded.
3. It has the mark and no controlling terminal, and the leader of its session has exited or has the mark, too: a daemon
   that left its session.

So a shell in a terminal that we did not open is left alone, also one in tmux and one that was given a copy of a
container's environment; and so are the marked processes that such a shell descends from (the server of tmux).

The rules are applied in `_classify_processes`. A process is killed through a pidfd, after its start mark was compared
once more: a reused pid is never killed.

Source: credentials(7), pidfd_send_signal(2).
"""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from podscaler.base.clock import Clock
from podscaler.controlplane.kubelet.processes import process_identity, process_records
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.process_identity import ProcessFacts
from podscaler.controlplane.kubelet.processes.process_records import ProcessRecord

SCAN_MAX_S: Final = 5.0
"""The seconds after which a scan that still finds processes ends."""
SCAN_TRIES: Final = 3
SCAN_RETRY_S: Final = 0.5
_RESCAN_S: Final = 0.02
"""The delay after kills, before the processes are listed again."""

_log = logging.getLogger(__name__)


class OrphanKiller:
    """Kills the processes that are left of exited containers; one scan serves all that exited since the scan before."""

    def __init__(self, threads: ThreadPool, clock: Clock) -> None:
        self._threads = threads
        self._clock = clock
        self._sessions: dict[str, dict[int, ProcessRecord]] = {}  # container id -> pid of the leader -> its record
        self._waiting: dict[str, asyncio.Future[None]] = {}  # container id -> done when the scan for it has ended
        self._scanning: asyncio.Task[None] | None = None

    def add_session(self, container_id: str, leader: ProcessRecord) -> None:
        """Record a session of the container: of its main process, or of a command that runs in it."""
        self._sessions.setdefault(container_id, {})[leader.pid] = leader

    def remove_session(self, container_id: str, pid: int) -> None:
        """Remove the session of a command that has exited."""
        self._sessions.get(container_id, {}).pop(pid, None)

    async def kill_orphans_of(self, container_id: str) -> None:
        """Kill the processes that are left of a container that has exited; returns when there is none.

        Returns also when the scan has failed SCAN_TRIES times, which is logged.

        Raises the errors of the scan other than OSError, and CancelledError if the scan is cancelled.
        """
        scan_finished = self._waiting.setdefault(container_id, asyncio.get_running_loop().create_future())
        if self._scanning is None or self._scanning.done():
            self._scanning = asyncio.get_running_loop().create_task(self._scan_for_waiting())
        await asyncio.shield(scan_finished)

    async def _scan_for_waiting(self) -> None:
        """Scan until no caller waits: once for all callers that wait, then for those that came meanwhile."""
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            sessions = tuple(
                leader for container_id in batch for leader in self._sessions.pop(container_id, {}).values()
            )
            try:
                await self._scan_with_retries(
                    OwnershipCriteria(process_identity.CONTAINER_VARIABLE, frozenset(batch), sessions)
                )
            except Exception as error:  # a bug: raised to the callers of this scan; later scans go on
                for scan_finished in batch.values():
                    scan_finished.set_exception(error)
            except BaseException:
                for scan_finished in (*batch.values(), *self._waiting.values()):
                    scan_finished.cancel()
                self._waiting = {}
                raise
            else:
                for scan_finished in batch.values():
                    scan_finished.set_result(None)

    async def _scan_with_retries(self, criteria: "OwnershipCriteria") -> None:
        """Kill the processes that are ours; a scan that fails with OSError (no descriptor left) is repeated."""
        for remaining_tries in reversed(range(SCAN_TRIES)):
            try:
                await self._threads.run(_kill_owned, criteria)
            except OSError as error:
                _log.warning("the scan for processes that exited containers left failed: %s", error)
                if remaining_tries:
                    await self._clock.sleep(SCAN_RETRY_S)
            else:
                return


@dataclass(frozen=True, slots=True)
class OwnershipCriteria:
    """The marks and sessions by which a process is ours.

    Attributes:
        variable, values: the mark: an environment variable that has one of these values.
        sessions: the leaders of the recorded sessions.
    """

    variable: str
    values: frozenset[str]
    sessions: tuple[ProcessRecord, ...] = ()


def _kill_owned(criteria: OwnershipCriteria) -> int:
    """Kill until a scan finds no process that is ours (processes may fork meanwhile), at most SCAN_MAX_S seconds.

    Returns how many were killed. Blocks. Raises OSError.
    """
    killed = set()  # pid and start mark: a process may be found again before it is dead
    deadline_s = time.monotonic() + SCAN_MAX_S
    while time.monotonic() < deadline_s:
        ours, foreign = _classify_processes(criteria)
        if not ours:
            if foreign:
                _log.warning("processes with our mark in sessions of others are not killed: %s", _pids_text(foreign))
            break
        for process in ours:
            if kill(process):
                killed.add((process.pid, process.start_mark))
        time.sleep(_RESCAN_S)
    return len(killed)


def _pids_text(processes: Iterable[ProcessFacts]) -> str:
    return ", ".join(str(process.pid) for process in processes)


def _classify_processes(criteria: OwnershipCriteria) -> tuple[list[ProcessFacts], list[ProcessFacts]]:
    """The processes that are ours by rules 1 to 3, and those that have the mark but are not."""
    marked = _facts_by_pid(process_identity.marked_pids(criteria.variable, criteria.values))
    running_leaders = {
        leader.pid for leader in criteria.sessions if process_identity.start_mark(leader.pid) == leader.start_mark
    }
    # rule 1; without a leader no process need be read
    members = (
        _facts_by_pid(pid for pid in psutil.pids() if _session_of(pid) in running_leaders) if running_leaders else {}
    )
    foreign = _foreign_pids(marked, recorded={leader.pid for leader in criteria.sessions})
    ours = {pid: process for pid, process in marked.items() if pid not in foreign} | members
    ours.pop(os.getpid(), None)  # never `up` itself, whatever session it is in
    return list(ours.values()), [marked[pid] for pid in sorted(foreign - set(members))]


def _facts_by_pid(pids: Iterable[int]) -> dict[int, ProcessFacts]:
    """The facts of the processes that still run."""
    return {pid: process_facts for pid in pids if (process_facts := process_identity.facts(pid)) is not None}


def _session_of(pid: int) -> int:
    """The id of a process's session, -1 if it has exited or may not be read."""
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return -1


def _foreign_pids(marked: Mapping[int, ProcessFacts], recorded: set[int]) -> set[int]:
    """The pids of `marked` for which neither rule 2 nor rule 3 holds, and their marked ancestors.

    Args:
        marked: pid -> a process with the mark.
        recorded: the ids of the recorded sessions.
    """
    foreign = {
        pid
        for pid, process in marked.items()
        if process.session not in recorded and (process.has_terminal or _is_led_by_another(process, marked))
    }
    for pid in list(foreign):  # the ancestors of a shell, such as the server of tmux, are not ours either
        parent = marked.get(marked[pid].parent)
        while parent is not None and parent.session not in recorded and parent.pid not in foreign:
            foreign.add(parent.pid)
            parent = marked.get(parent.parent)
    return foreign


def _is_led_by_another(process: ProcessFacts, marked: Mapping[int, ProcessFacts]) -> bool:
    """Whether a running process without the mark leads its session."""
    return process.session not in marked and process_identity.facts(process.session) is not None


def kill(process: ProcessFacts) -> bool:
    """Send SIGKILL to exactly this process; returns whether it was sent. Raises OSError (no descriptor left)."""
    try:
        descriptor = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
    except ProcessLookupError:
        return False
    try:
        if process_identity.start_mark(process.pid) != process.start_mark:
            return False
        if descriptor is None:
            os.kill(process.pid, signal.SIGKILL)
        else:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def kill_orphans(records_folder: Path, instance: str) -> int:
    """Kill the processes that an earlier `up` of this data directory left; returns how many. Blocks. Raises OSError.

    Args:
        records_folder: the directory of `process_records`, emptied afterwards.
        instance: the id of this data directory, which is the mark.
    """
    sessions = tuple(process_records.read_all(records_folder))
    killed = _kill_owned(OwnershipCriteria(process_identity.INSTANCE_VARIABLE, frozenset((instance,)), sessions))
    process_records.clear(records_folder)
    return killed
