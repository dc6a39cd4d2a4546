"""What ends the processes that tests leave behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

import survivors
from patience import WITHIN_S

SLEEP = [sys.executable, "-c", "import time; time.sleep(1000)"]


def test_what_is_marked_or_works_in_the_folder_is_ended(tmp_path: Path) -> None:
    """By its environment or by where it works; others live on."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    with survivors.ended(inside) as mark:
        marked = subprocess.Popen(SLEEP, cwd=outside)
        worker = subprocess.Popen(SLEEP, cwd=inside, env={})
    other = subprocess.Popen(SLEEP, cwd=outside, env={survivors.VARIABLE: f"{mark}-not"})
    try:
        codes = marked.wait(WITHIN_S), worker.wait(WITHIN_S)
        assert (codes, other.poll()) == ((-15, -15), None)
    finally:
        other.kill()
        other.wait()


def test_the_end_of_pytest_is_enough(tmp_path: Path) -> None:
    """A process that is killed cannot tidy up, and need not."""
    code = (
        "import os, signal, subprocess, sys; from pathlib import Path; import survivors\n"
        "with survivors.ended(Path(sys.argv[1])):\n"
        "    left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
        "    print(left.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    paths = (str(Path(survivors.__file__).parent), os.environ.get("PYTHONPATH", ""))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, stdout=subprocess.PIPE, timeout=WITHIN_S
    )
    assert done.returncode == -9
    deadline_s = time.monotonic() + WITHIN_S
    while runs(int(done.stdout)) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not runs(int(done.stdout))


def runs(pid: int) -> bool:
    """Whether a process of that id runs (a zombie does not)."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
