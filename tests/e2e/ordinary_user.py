"""An `up` of a user without privileges: of the one who runs the tests, or of `nobody` where that is root."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from up_process import Up

import prerequisites

NOBODY = 65534
SOURCES = Path(__file__).parents[2] / "src"


def usable_python() -> str | None:
    """A Python of our version that everyone may run; None where there is none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        try:
            done = subprocess.run([candidate, "-c", ""], user=NOBODY, group=NOBODY, extra_groups=[], check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    return None


@contextmanager
def ordinary_up() -> Iterator[Up]:
    """The `up`, started; skips the test where no Python can be run without privileges."""
    if os.geteuid() != 0:
        folder = Path(tempfile.mkdtemp(prefix="podscaler-user-"))
        instance = Up(folder / "data").start()
    else:
        python = usable_python()
        if python is None:
            prerequisites.PYTHON_OF_ALL.skip()
        folder = Path(tempfile.mkdtemp(prefix="podscaler-user-"))
        os.chown(folder, NOBODY, NOBODY)
        env = {
            "HOME": str(folder),
            "PYTHONPATH": f"{sysconfig.get_paths()['purelib']}{os.pathsep}{SOURCES}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        instance = Up(folder / "data").start(python=python, env=env, user=NOBODY, group=NOBODY, extra_groups=[])
    try:
        yield instance
        assert instance.stop() == 0, instance.log.read_text()
    finally:
        shutil.rmtree(folder)
