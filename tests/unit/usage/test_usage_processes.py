"""Readings of real process trees."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from patience import WITHIN_S
from podscaler.controlplane.metrics.resource.processes import machine_usage, read_trees

BURN_IN_A_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
child.wait()
"""
BURN_IN_A_FINISHED_CHILD = """
import subprocess, sys, time
subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.5: pass"])
time.sleep(600)
"""


@contextmanager
def running(code: str) -> Iterator[int]:
    """A Python process in a session of its own; yields its pid and ends the whole session."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], start_new_session=True)
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def cpu_reaches(pid: int, cpu_s: float) -> bool:
    """Whether the tree has used that much CPU before patience ends."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        readings = read_trees([pid])
        if readings and readings[pid].cpu_s >= cpu_s:
            return True
        time.sleep(0.05)
    return False


def test_a_childs_time_counts_for_the_tree() -> None:
    """The root only waits: what its child burns is the tree's."""
    with running(BURN_IN_A_CHILD) as pid:
        assert cpu_reaches(pid, 0.3)
        assert read_trees([pid])[pid].memory_bytes > 1_000_000


def test_a_finished_childs_time_stays() -> None:
    """What a child had used when it ended is not lost."""
    with running(BURN_IN_A_FINISHED_CHILD) as pid:
        assert cpu_reaches(pid, 0.4)  # the kernel counts in ticks of 10 ms


def test_a_process_that_is_gone_has_no_reading() -> None:
    """A root that has ended is left out."""
    with running("import time; time.sleep(60)") as pid:
        pass
    assert read_trees([pid]) == {}


def test_the_machine_has_used_something() -> None:
    """CPU seconds and memory of the whole machine are positive."""
    usage = machine_usage()
    assert usage.cpu_s > 0
    assert usage.memory_bytes > 0
