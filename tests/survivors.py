"""Ends what a run of the tests leaves behind: a program that `conftest.py` starts beside each pytest process.

    python survivors.py MARK FOLDER

It outlives pytest, by whatever pytest ends: as soon as its standard input ends, which pytest holds open, every process
with MARK in its environment is told to end, and so is every one that works below FOLDER, the run's temporary folder
(containers have an environment of their own). Without it a run that is killed would leave control planes and pods.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

VARIABLE = "RUN_OF_TESTS"
"""In the environment of everything that tests start."""

END_WITHIN_S = 30
WAIT_S = 120
RESOURCE_TRACKER = "from multiprocessing.resource_tracker import main"
"""The program that multiprocessing starts: it ignores SIGTERM, and ends with the process that started it."""


@contextmanager
def ended(folder: Path) -> Iterator[str]:
    """Have what is started from now on ended when the block does, or this process; yields the mark."""
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    command = [sys.executable, __file__, mark, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        before = os.environ.get(VARIABLE, "")
        os.environ[VARIABLE] = mark
        try:
            yield mark
        finally:
            os.environ[VARIABLE] = before
            assert process.stdin is not None
            process.stdin.close()
            process.wait(WAIT_S)


def found(mark: str, folder: Path) -> list[psutil.Process]:
    """What is left."""
    return [process for process in psutil.process_iter() if _is_left(process, mark, folder)]


def _is_left(process: psutil.Process, mark: str, folder: Path) -> bool:
    with suppress(psutil.Error, OSError):  # it has ended, or is somebody else's
        if any(RESOURCE_TRACKER in argument for argument in process.cmdline()):
            return False
        return process.environ().get(VARIABLE) == mark or Path(process.cwd()).is_relative_to(folder)
    return False


def end(mark: str, folder: Path) -> None:
    """Tell them to end, as control planes end their pods then; kill those that do not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = found(mark, folder)
        for process in left:
            with suppress(psutil.Error):
                process.send_signal(number)
                process.send_signal(signal.SIGCONT)
        deadline_s = time.monotonic() + END_WITHIN_S
        while any(map(_runs, left)) and time.monotonic() < deadline_s:
            time.sleep(0.05)


def _runs(process: psutil.Process) -> bool:
    """A zombie does not: pytest may not have asked for its exit status yet."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end(sys.argv[1], Path(sys.argv[2]))
