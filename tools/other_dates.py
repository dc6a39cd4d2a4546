"""Runs tests with the wall clock and the time zone of other days: `make test-dates`.

Each run has the clock of one day and a time zone, both also for the processes that tests start. The tests are those of
every folder except the slow ones, which take the clock from the same code, and two of those. Programs written in Go
keep the machine's clock: tests that need kubectl are skipped.

Exit status 0 when all runs pass, or nothing can be run because the machine has no C compiler; 1 otherwise.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from calendar import timegm
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SHIFT_VARIABLE = "SHIFTED_CLOCK_S"
"""In the environment of a run: how many seconds the clock is ahead."""
SOURCE = Path(__file__).with_name("shifted_clock.c")
TESTS = Path(__file__).resolve().parent.parent / "tests"
SLOW = ("e2e", "fuzz", "property")
"""Folders that are not run."""
ALSO = ("e2e/test_e2e_api_only.py", "e2e/test_e2e_ordinary_user.py")
"""Run nevertheless: `podscaler up` as a process, with certificates and tokens."""
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Variant:
    """One run.

    Attributes:
        name: for the user.
        shift_s: seconds that the clock is ahead.
        zone: TZ, in the form of POSIX, which needs no database of time zones.
    """

    name: str
    shift_s: int
    zone: str

    def environment(self, library: Path, inherited: Mapping[str, str]) -> dict[str, str]:
        """That of a process with this clock and zone."""
        others = [each for each in inherited.get("LD_PRELOAD", "").split() if not each.endswith(library.name)]
        preloaded = " ".join((str(library), *others))
        return {**inherited, "LD_PRELOAD": preloaded, SHIFT_VARIABLE: str(self.shift_s), "TZ": self.zone}


def variants(now_s: int) -> list[Variant]:
    """The runs that are made: two clocks that go on, and one that passes into a leap day."""
    leap_day_s = timegm((2028, 2, 29, 0, 0, 0))
    return [
        Variant("a day later, 14 hours east", DAY_S, "<+14>-14"),
        Variant("a year later, 12 hours west", 365 * DAY_S, "<-12>12"),
        Variant("from 28 to 29 February 2028, with summer time", leap_day_s - 60 - now_s, "CET-1CEST,M3.5.0,M10.5.0/3"),
    ]


def targets(tests: Path) -> list[str]:
    """What pytest is given: every folder but the slow ones, and what is run nevertheless."""
    folders = sorted(child for child in tests.iterdir() if child.is_dir() and any(child.rglob("test_*.py")))
    return [str(folder) for folder in folders if folder.name not in SLOW] + [str(tests / name) for name in ALSO]


def built(folder: Path) -> Path | None:
    """The library that shifts the clock, compiled into `folder`; None where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    library = folder / "shifted_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def main(arguments: Iterable[str]) -> int:
    """The exit status, as the module says; `arguments`, where there are any, replace pytest's usual ones."""
    more = list(arguments) or ["-q", "-n", "4", "--dist", "loadfile", "-m", "not real", *targets(TESTS)]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # tests start processes of other users, too
        library = built(Path(folder))
        if library is None:
            print("skipped: there is no C compiler; to run it, install one (apt-get install gcc libc6-dev)")
            return 0
        failed = []
        for variant in variants(int(time.time())):
            print(f"== {variant.name}: {SHIFT_VARIABLE}={variant.shift_s} TZ='{variant.zone}'", flush=True)
            command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *more]
            if subprocess.run(command, check=False, env=variant.environment(library, os.environ)).returncode != 0:
                failed.append(variant.name)
    print(f"failed: {'; '.join(failed)}" if failed else "every run passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
