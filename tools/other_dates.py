"""Runs tests on other days, in other places and as another user: `make test-dates`.

Each run has the clock of one day, a time zone, a locale, an unknown user's name and a new home, all also for the
processes that tests start; one run has a single CPU. The tests are those of every folder except the slow ones, which
take the clock from the same code, and two of those. Programs written in Go keep the machine's clock: tests that need
kubectl are skipped.

Exit status 0 when all runs pass; 1 when one fails, or nothing can be run because the machine has no C compiler: the
latter is 0 where the environment has MAY_SKIP_DATES=1.
"""

import locale
import os
import shutil
import subprocess
import sys
import tempfile
import time
from calendar import timegm
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asset_modules

SHIFT_VARIABLE = "SHIFTED_CLOCK_S"
"""In the environment of a run: how many seconds the clock is ahead."""
SKIP_VARIABLE = "MAY_SKIP_DATES"
"""In the environment of this program: `1` where a machine without a C compiler is fine."""
SOURCE = Path(__file__).with_name("shifted_clock.c")
TESTS = Path(__file__).resolve().parent.parent / "tests"
SLOW = ("e2e", "fuzz", "property")
"""Folders that are not run."""
ALSO = ("e2e/test_e2e_api_only.py", "e2e/test_e2e_ordinary_user.py")
"""Run nevertheless: `podscaler up` as a process, with certificates and tokens."""
DAY_S = 86_400
UTF_8 = "C.UTF-8"
USER = "nobody-knows"
"""A name that no machine has."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One run.

    Attributes:
        name: for the user.
        shift_s: seconds that the clock is ahead.
        zone: TZ, in the form of POSIX, which needs no database of time zones.
        language: LANG and LC_ALL, a locale that the machine has.
        home: the name of the new folder that is HOME.
        is_on_one_cpu: whether there is one CPU alone, else all that this program has.
    """

    name: str
    shift_s: int
    zone: str
    language: str
    home: str
    is_on_one_cpu: bool = False

    def environment(self, library: Path, home: Path, inherited: Mapping[str, str]) -> dict[str, str]:
        """That of a process of this run; `home` is an absolute path."""
        others = [each for each in inherited.get("LD_PRELOAD", "").split() if not each.endswith(library.name)]
        kept = {
            name: value
            for name, value in inherited.items()
            if not name.startswith(("LC_", "XDG_")) and name != "LANGUAGE"
        }
        return kept | {
            "LD_PRELOAD": " ".join((str(library), *others)),
            SHIFT_VARIABLE: str(self.shift_s),
            "TZ": self.zone,
            "LANG": self.language,
            "LC_ALL": self.language,
            "HOME": str(home),
            "USER": USER,
            "LOGNAME": USER,
        }


def variants(now_s: int, with_comma: str) -> list[Variant]:
    """The runs that are made: two clocks that go on, and one that passes into a leap day.

    Args:
        with_comma: the locale of the run that has a decimal comma where the machine has such a locale.
    """
    to_leap_day_s = timegm((2028, 2, 29, 0, 0, 0)) - 60 - now_s
    summer_time = "CET-1CEST,M3.5.0,M10.5.0/3"
    return [
        Variant("a day later, 14 hours east", DAY_S, "<+14>-14", UTF_8, "a home"),
        Variant("a year later, 12 hours west", 365 * DAY_S, "<-12>12", "POSIX", "home", is_on_one_cpu=True),
        Variant("from 28 to 29 February 2028, with summer time", to_leap_day_s, summer_time, with_comma, "a home"),
    ]


def find_locale_with_comma() -> str | None:
    """A locale of this machine, of UTF-8, in which one half is `0,5`; None where none is installed."""
    try:
        listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return None
    former = locale.setlocale(locale.LC_NUMERIC)
    try:
        return next((name for name in sorted(listed) if "utf" in name.lower() and _has_comma(name)), None)
    finally:
        locale.setlocale(locale.LC_NUMERIC, former)


def _has_comma(name: str) -> bool:
    try:
        locale.setlocale(locale.LC_NUMERIC, name)
    except locale.Error:
        return False
    return locale.localeconv()["decimal_point"] == ","


@contextmanager
def cpus(*, is_one: bool) -> Iterator[None]:
    """While it is open, this program and what it starts run on one CPU, or on those that they have."""
    former = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(former)} if is_one else former)
    try:
        yield
    finally:
        os.sched_setaffinity(0, former)


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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # tests start processes of other users, too
        library = built(folder)
        if library is None:
            return _without_compiler()
        with_comma = find_locale_with_comma()
        if with_comma is None:
            print("no locale with a decimal comma is installed (localedef -i de_DE -f UTF-8 de_DE.UTF-8)")
        runs = variants(int(time.time()), with_comma or UTF_8)
        failed = [variant.name for variant in runs if not _passes(variant, library, folder, more)]
    print(f"failed: {'; '.join(failed)}" if failed else "every run passed")
    return 1 if failed else 0


def _without_compiler() -> int:
    may_skip = os.environ.get(SKIP_VARIABLE) == "1"
    print(
        f"{'skipped' if may_skip else 'failed'}: there is no C compiler, which shifts the clock: install one "
        f"(apt-get install gcc libc6-dev){'' if may_skip else f', or skip this with {SKIP_VARIABLE}=1'}"
    )
    return 0 if may_skip else 1


def new_home(folder: Path, name: str) -> Path:
    """A home in a new folder below `folder`, in which nothing is but the programs that `make assets` built."""
    parent = Path(tempfile.mkdtemp(dir=folder))
    parent.chmod(0o755)
    home = parent / name
    home.mkdir(mode=0o700)
    programs = asset_modules.cache()
    (home / ".cache" / programs.parent.name).mkdir(parents=True)
    (home / ".cache" / programs.parent.name / programs.name).symlink_to(programs)
    return home


def _passes(variant: Variant, library: Path, folder: Path, arguments: list[str]) -> bool:
    """Run pytest with a new home in `folder`; whether it passes."""
    home = new_home(folder, variant.home)
    environment = variant.environment(library, home, os.environ)
    shown = (SHIFT_VARIABLE, "TZ", "LC_ALL", "HOME", "USER")
    of_cpus = ", on one CPU" if variant.is_on_one_cpu else ""
    print(f"== {variant.name}{of_cpus}: {' '.join(f'{each}={environment[each]!r}' for each in shown)}", flush=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    with cpus(is_one=variant.is_on_one_cpu):
        return subprocess.run(command, check=False, env=environment).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
