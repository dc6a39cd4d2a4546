"""Orphaned processes of containers and of earlier runs: which ones are killed, and which ones are left alone."""

import asyncio
import os
import pty
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import prerequisites
from patience import WITHIN_S
from podscaler.controlplane.kubelet.processes import orphaned_processes, process_identity, process_records
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.orphaned_processes import OrphanKiller
from podscaler.testing import VirtualClock

SHELL = ("/bin/sh", "-c")
ENV = {"PATH": "/usr/bin:/bin"}
INSTANCE = secrets.token_hex(8)
"""Of this run of the tests: others may run at the same time on this machine."""
MARK = {process_identity.INSTANCE_VARIABLE: INSTANCE}


TAKE_TERMINAL = "import fcntl, termios, time; fcntl.ioctl(0, termios.TIOCSCTTY, 0); time.sleep(1000)"


@pytest.fixture
async def threads() -> AsyncIterator[ThreadPool]:
    found = ThreadPool()
    yield found
    found.close()


def write_record(folder: Path, container_id: str, pid: int) -> None:
    noted = process_records.record_of(pid)
    assert noted is not None
    process_records.write(folder, container_id, noted)


async def gone(pid: int) -> bool:
    deadline_s = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline_s:
        if process_identity.start_mark(pid) is None:
            return True
        await asyncio.sleep(0.02)
    return False


def test_a_pid_alone_proves_nothing() -> None:
    """The mark of a process is stable while it lives and differs between processes; a dead one has none."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mine, its = process_identity.start_mark(os.getpid()), process_identity.start_mark(process.pid)
    assert its is not None
    assert (its == process_identity.start_mark(process.pid), its == mine) == (True, False)
    process.kill()
    process.communicate()
    assert process_identity.start_mark(process.pid) is None


def escaped(mark: str, value: str) -> int:
    """A process that left its session, marked in its environment."""
    command = f"setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo {mark}"
    subprocess.run([*SHELL, command], env={**ENV, mark: value}, check=True, stdout=subprocess.DEVNULL)
    deadline_s = time.monotonic() + WITHIN_S
    while True:
        found = [pid for pid in process_identity.marked_pids(mark, frozenset((value,))) if os.getsid(pid) == pid]
        if found or time.monotonic() > deadline_s:
            (pid,) = found
            return pid
        time.sleep(0.01)


async def test_what_a_container_left_over_is_killed(threads: ThreadPool) -> None:
    """A process with a session of its own is found by its mark; that of another container is not touched."""
    mine, others = (escaped(process_identity.CONTAINER_VARIABLE, value) for value in (INSTANCE, f"{INSTANCE}-others"))
    await OrphanKiller(threads, VirtualClock()).kill_orphans_of(INSTANCE)
    try:
        assert await gone(mine)
        assert process_identity.start_mark(others) is not None
    finally:
        os.kill(others, signal.SIGKILL)
        wait_until_gone(others)


async def test_orphans_are_killed_if_they_are_proven(threads: ThreadPool, tmp_path: Path) -> None:
    """By record and start time, or by mark; a reused pid and unmarked processes are left alone."""
    noted, innocent = (
        subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL) for _ in range(2)
    )
    marked = escaped(process_identity.INSTANCE_VARIABLE, INSTANCE)
    write_record(tmp_path, "c1", noted.pid)
    (tmp_path / "c2").write_text(f'{{"pid": {innocent.pid}, "startMark": "another time"}}')
    (tmp_path / "c3").write_text("cut by a cra")
    reaped = asyncio.create_task(threads.run(noted.wait))
    try:
        assert await asyncio.to_thread(orphaned_processes.kill_orphans, tmp_path, INSTANCE) == 2
        assert await reaped == -signal.SIGKILL
        assert await gone(marked)
        assert innocent.poll() is None
        assert list(tmp_path.iterdir()) == []
    finally:
        innocent.kill()
        innocent.wait()


@contextmanager
def running(*argv: str, **fields: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that leads a session; it and its session's processes are killed, and gone, in the end.

    Another test of this module would count those that are not gone yet: they have the mark.
    """
    process = subprocess.Popen(argv, start_new_session=True, stdout=subprocess.PIPE, **fields)
    try:
        yield process
    finally:
        members = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if session(pid) == process.pid]
        for pid in members:
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        for pid in members:
            wait_until_gone(pid)


def wait_until_gone(pid: int) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while process_identity.start_mark(pid) is not None:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1


def first_line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


needs_proc = prerequisites.PROC.mark(is_there=sys.platform == "linux")


@needs_proc
async def test_a_copied_environment_makes_no_orphan(tmp_path: Path) -> None:
    """A process in a session whose leader is not ours is left alone, whatever its environment."""
    with running(*SHELL, f"PODSCALER_INSTANCE={INSTANCE} sleep 1000 & echo $!; wait", env=ENV) as outsider:
        child = int(first_line(outsider))
        await _until_marked(child)
        assert await asyncio.to_thread(orphaned_processes.kill_orphans, tmp_path, INSTANCE) == 0
        assert (outsider.poll(), process_identity.start_mark(child) is None) == (None, False)


@needs_proc
async def test_an_interactive_shell_is_no_orphan(tmp_path: Path) -> None:
    """A process with a terminal that we did not open is left alone, and so is the server of the terminal (tmux)."""
    master, slave = pty.openpty()
    script = "exec 3<&0 0</dev/null; setsid --ctty sleep 1000 <&3 >/dev/null 2>&1 & echo $!; exec 3<&-; wait"
    try:
        with running(*SHELL, script, env=ENV | MARK, stdin=slave) as server:
            shell = int(first_line(server))
            await _until(lambda: (found := process_identity.facts(shell)) is not None and found.has_terminal)
            try:
                assert await asyncio.to_thread(orphaned_processes.kill_orphans, tmp_path, INSTANCE) == 0
                assert (server.poll(), process_identity.start_mark(shell) is None) == (None, False)
            finally:
                os.kill(shell, signal.SIGKILL)
                wait_until_gone(shell)
    finally:
        os.close(master)
        os.close(slave)


@needs_proc
async def test_a_recorded_session_is_ours_without_a_mark(tmp_path: Path) -> None:
    """A process that cleared its environment is killed with the recorded session of its container."""
    with running(*SHELL, "env -i /bin/sleep 1000 & echo $!; wait", env=ENV) as container:
        child = int(first_line(container))
        write_record(tmp_path, "c1", container.pid)
        reaped = asyncio.create_task(asyncio.to_thread(container.wait))
        assert await asyncio.to_thread(orphaned_processes.kill_orphans, tmp_path, INSTANCE) == 2
        assert (await reaped, await gone(child)) == (-signal.SIGKILL, True)


@needs_proc
async def test_a_command_with_a_terminal_ends_with_its_container(threads: ThreadPool) -> None:
    """The session of `kubectl exec -it` is recorded: its terminal is one that we opened."""
    master, slave = pty.openpty()
    mark = {process_identity.CONTAINER_VARIABLE: INSTANCE}
    try:
        with running(sys.executable, "-c", TAKE_TERMINAL, env=ENV | mark, stdin=slave) as command:
            await _until(lambda: (found := process_identity.facts(command.pid)) is not None and found.has_terminal)
            killer, record = OrphanKiller(threads, VirtualClock()), process_records.record_of(command.pid)
            assert record is not None
            killer.add_session(INSTANCE, record)
            reaped = asyncio.create_task(asyncio.to_thread(command.wait))
            await killer.kill_orphans_of(INSTANCE)
            assert await reaped == -signal.SIGKILL
    finally:
        os.close(master)
        os.close(slave)


@needs_proc
def test_a_pid_that_was_used_again_is_not_killed() -> None:
    """The start of the process is compared after its pidfd was opened."""
    with running("sleep", "1000") as process:
        found = process_identity.facts(process.pid)
        assert found is not None
        assert orphaned_processes.kill(replace(found, start_mark="another time")) is False
        assert process.poll() is None
        assert orphaned_processes.kill(found) is True


class FailingThreads(ThreadPool):
    """ThreadPool in which the first looks fail: no descriptor is left, unless another error is named."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        super().__init__()
        self.failures = failures
        self.error = error or OSError(24, "Too many open files")
        self.looks: list[frozenset[str]] = []

    async def run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        self.looks.append(args[0].values)
        await asyncio.sleep(0)
        self.failures -= 1
        if self.failures >= 0:
            raise self.error
        return 0


async def test_a_scan_that_fails_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    """It is repeated after a delay; containers that ended meanwhile are served by the next scan."""
    threads, clock = FailingThreads(1), VirtualClock()
    killer = OrphanKiller(threads, clock)
    first = asyncio.create_task(killer.kill_orphans_of("a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.create_task(killer.kill_orphans_of("b"))
    await clock.advance(orphaned_processes.SCAN_RETRY_S)
    await asyncio.gather(first, second)
    assert threads.looks == [{"a"}, {"a"}, {"b"}]
    assert "Too many open files" in caplog.text
    threads.close()


async def test_scans_that_always_fail_are_given_up() -> None:
    """After SCAN_TRIES the containers end without a scan."""
    threads, clock = FailingThreads(orphaned_processes.SCAN_TRIES), VirtualClock()
    waiting = asyncio.create_task(OrphanKiller(threads, clock).kill_orphans_of("a"))
    await clock.advance(10)
    await waiting
    assert threads.looks == [{"a"}] * orphaned_processes.SCAN_TRIES
    threads.close()


async def test_an_unexpected_error_of_a_scan_reaches_its_callers_alone() -> None:
    """All containers of that scan get the exception; those that ended meanwhile get the next scan."""
    error = RuntimeError("a bug")
    threads = FailingThreads(1, error)
    killer = OrphanKiller(threads, VirtualClock())
    failed = [asyncio.create_task(killer.kill_orphans_of(name)) for name in ("a", "b", "b")]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    meanwhile = asyncio.create_task(killer.kill_orphans_of("c"))
    async with asyncio.timeout(WITHIN_S):
        assert await asyncio.gather(*failed, meanwhile, return_exceptions=True) == [error, error, error, None]
    assert threads.looks == [{"a", "b"}, {"c"}]
    threads.close()


async def test_a_scan_after_one_that_failed_unexpectedly_works() -> None:
    """No state of the failed scan is left, for the same container either."""
    threads = FailingThreads(1, RuntimeError("a bug"))
    killer = OrphanKiller(threads, VirtualClock())
    with pytest.raises(RuntimeError, match="a bug"):
        await killer.kill_orphans_of("a")
    await killer.kill_orphans_of("a")
    assert threads.looks == [{"a"}, {"a"}]
    threads.close()


async def test_a_scan_that_is_cancelled_cancels_its_callers() -> None:
    """Neither the containers of the scan nor those that ended meanwhile wait for it any longer."""
    threads = FailingThreads(1)
    killer = OrphanKiller(threads, VirtualClock())
    callers = [asyncio.create_task(killer.kill_orphans_of("a"))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    callers.append(asyncio.create_task(killer.kill_orphans_of("b")))
    await asyncio.sleep(0)
    assert killer._scanning is not None
    killer._scanning.cancel()
    async with asyncio.timeout(WITHIN_S):
        found = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(each) for each in found] == [asyncio.CancelledError] * 2
    threads.close()


async def _until_marked(pid: int) -> None:
    await _until(
        lambda: pid in process_identity.marked_pids(process_identity.INSTANCE_VARIABLE, frozenset(MARK.values()))
    )


async def _until(holds: Any) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.01)
