"""Ending processes that outlived their container, or the `up` that started them - and nobody else's.

`Sweeper` is asked after each end of a container: its process group is gone by then, but a process that made a session
of its own is found by the mark in its environment. `kill_orphans` runs once, before a node starts pods.

A mark is inherited, and can be copied, so it proves nothing alone. A process is ours if one of these holds:

1. Its session is recorded (that of a container's main process or of a client's command), and the leader of the session
   still is the process that was recorded.
2. It has the mark, and its session is recorded.
3. It has the mark, no controlling terminal, and no session that a living process without the mark leads: a daemon that
   left its session.

So a shell in a terminal that we did not open is left alone, also one in tmux and one that was given a copy of a
container's environment; and so are the processes with the mark that such a shell descends from (the server of tmux).

A process is killed by a pidfd, after its start was compared once more: a pid that was used again is never hit.
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
from podscaler.controlplane.kubelet.processes.process_identity import ProcessFacts
from podscaler.controlplane.kubelet.processes.process_records import ProcessRecord
from podscaler.controlplane.kubelet.processes.threads import Threads

GONE_WITHIN_S: Final = 5.0
SCAN_TRIES: Final = 3
SCAN_RETRY_S: Final = 0.5
_LOOK_AGAIN_S: Final = 0.02


_log = logging.getLogger(__name__)


class Sweeper:
    """Kills what is left of ended containers; one look at the machine's processes serves all that ended meanwhile."""

    def __init__(self, threads: Threads, clock: Clock) -> None:
        self._threads = threads
        self._clock = clock
        self._sessions: dict[str, dict[int, ProcessRecord]] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._round: asyncio.Task[None] | None = None

    def record(self, container_id: str, session: ProcessRecord) -> None:
        """A session of the container: of its main process, or of a command that runs in it."""
        self._sessions.setdefault(container_id, {})[session.pid] = session

    def forget(self, container_id: str, pid: int) -> None:
        """The command that led this session has ended."""
        self._sessions.get(container_id, {}).pop(pid, None)

    async def sweep(self, container_id: str) -> None:
        """Return when nothing of this container is left, or the scan failed too often (which is logged).

        Raises what the scan for it raises besides OSError, and CancelledError when that scan is cancelled.
        """
        done = self._waiting.setdefault(container_id, asyncio.get_running_loop().create_future())
        if self._round is None or self._round.done():
            self._round = asyncio.get_running_loop().create_task(self._sweep_waiting())
        await asyncio.shield(done)

    async def _sweep_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            sessions = [session for name in batch for session in self._sessions.pop(name, {}).values()]
            try:
                await self._scan(Proof(process_identity.CONTAINER_VARIABLE, frozenset(batch), tuple(sessions)))
            except Exception as error:  # a bug: it belongs to the callers of this scan, and must not end the loop
                for done in batch.values():
                    done.set_exception(error)
            except BaseException:
                for done in (*batch.values(), *self._waiting.values()):
                    done.cancel()
                self._waiting = {}
                raise
            else:
                for done in batch.values():
                    done.set_result(None)

    async def _scan(self, proof: "Proof") -> None:
        """Kill what is proven; a scan that fails with OSError (no descriptor is left) is repeated after a moment."""
        for left in reversed(range(SCAN_TRIES)):
            try:
                await self._threads.run(_kill_proven, proof)
            except OSError as error:
                _log.warning("what ended containers left behind cannot be looked for: %s", error)
                if left:
                    await self._clock.sleep(SCAN_RETRY_S)
            else:
                return


@dataclass(frozen=True, slots=True)
class Proof:
    """What makes a process ours.

    Attributes:
        variable, values: the mark: a variable of the environment that has one of these values.
        sessions: the leaders of recorded sessions.
    """

    variable: str
    values: frozenset[str]
    sessions: tuple[ProcessRecord, ...] = ()


def _kill_proven(proof: Proof) -> int:
    """Kill until a look finds nothing that is ours any more (children may be born meanwhile); returns how many."""
    killed = set()
    deadline = time.monotonic() + GONE_WITHIN_S
    while time.monotonic() < deadline:
        ours, foreign = _told_apart(proof)
        if not ours:
            if foreign:
                _log.warning("processes with our mark in sessions of others are left alone: %s", _pids(foreign))
            break
        killed |= {process.start_mark + str(process.pid) for process in ours if kill(process)}
        time.sleep(_LOOK_AGAIN_S)
    return len(killed)


def _pids(processes: Iterable[ProcessFacts]) -> str:
    return ", ".join(str(process.pid) for process in processes)


def _told_apart(proof: Proof) -> tuple[list[ProcessFacts], list[ProcessFacts]]:
    """The processes that are ours, and those that have the mark only (see the module)."""
    marked = _known(process_identity.marked_processes(proof.variable, proof.values))
    leaders = {s.pid for s in proof.sessions if process_identity.start_mark(s.pid) == s.start_mark}
    members = _known(pid for pid in psutil.pids() if _session(pid) in leaders) if leaders else {}
    foreign = _foreign(marked, recorded={session.pid for session in proof.sessions})
    ours = {pid: process for pid, process in marked.items() if pid not in foreign} | members
    ours.pop(os.getpid(), None)
    return list(ours.values()), [marked[pid] for pid in sorted(foreign - set(members))]


def _known(pids: Iterable[int]) -> dict[int, ProcessFacts]:
    return {pid: found for pid in pids if (found := process_identity.facts(pid)) is not None}


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return -1


def _foreign(marked: Mapping[int, ProcessFacts], recorded: set[int]) -> set[int]:
    """The pids of `marked` that somebody else started: neither rule 2 nor rule 3 holds."""
    foreign = {
        pid
        for pid, process in marked.items()
        if process.session not in recorded and (process.has_terminal or _is_led_by_another(process, marked))
    }
    for pid in list(foreign):
        parent = marked.get(marked[pid].parent)
        while parent is not None and parent.session not in recorded and parent.pid not in foreign:
            foreign.add(parent.pid)
            parent = marked.get(parent.parent)
    return foreign


def _is_led_by_another(process: ProcessFacts, marked: Mapping[int, ProcessFacts]) -> bool:
    """Whether a living process without the mark leads its session."""
    return process.session not in marked and process_identity.facts(process.session) is not None


def kill(process: ProcessFacts) -> bool:
    """Send SIGKILL to exactly this process; returns whether that was possible. Raises OSError (no descriptor left)."""
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


def kill_orphans(records: Path, instance: str) -> int:
    """Kill the processes that an earlier `up` of this data directory left; returns how many. Blocks. Raises OSError.

    Args:
        records: the folder of `process_records`, emptied afterwards.
        instance: the mark of this data directory.
    """
    sessions = tuple(process_records.read_all(records))
    killed = _kill_proven(Proof(process_identity.INSTANCE_VARIABLE, frozenset((instance,)), sessions))
    process_records.clear(records)
    return killed
