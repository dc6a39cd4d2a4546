"""`make test-dates`: which days, places and users, and which tests."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import asset_modules
import other_dates
import pytest

import prerequisites

NOW_S = 1_795_305_600  # 2026-11-22T00:00:00Z


def test_the_runs_are_those_that_matter() -> None:
    """A day, a year, and the passage into a leap day; both ends of the world's zones, and one with summer time.

    The locales are that of no language with UTF-8 and without, and one with a decimal comma; homes have a space in
    their names, or none; one run has one CPU.
    """
    found = [
        (
            datetime.fromtimestamp(NOW_S + variant.shift_s, UTC).isoformat(),
            variant.zone,
            variant.language,
            variant.home,
            variant.is_on_one_cpu,
        )
        for variant in other_dates.variants(NOW_S, "de_DE.utf8")
    ]
    assert found == [
        ("2026-11-23T00:00:00+00:00", "<+14>-14", "C.UTF-8", "a home", False),
        ("2027-11-22T00:00:00+00:00", "<-12>12", "POSIX", "home", True),
        ("2028-02-28T23:59:00+00:00", "CET-1CEST,M3.5.0,M10.5.0/3", "de_DE.utf8", "a home", False),
    ]


def test_the_environment_is_that_of_another_user() -> None:
    """What names the user, the home or a language is replaced; the rest is inherited."""
    variant = other_dates.Variant("", 7, "<+14>-14", "POSIX", "a home")
    inherited = {"PATH": "/bin", "LC_TIME": "de_DE", "LANGUAGE": "de", "XDG_CACHE_HOME": "/root/c", "USER": "root"}
    assert variant.environment(Path("/l/shifted.so"), Path("/t/a home"), inherited) == {
        "PATH": "/bin",
        "LD_PRELOAD": "/l/shifted.so",
        "SHIFTED_CLOCK_S": "7",
        "TZ": "<+14>-14",
        "LANG": "POSIX",
        "LC_ALL": "POSIX",
        "HOME": "/t/a home",
        "USER": "nobody-knows",
        "LOGNAME": "nobody-knows",
    }


def test_a_home_has_the_programs_of_make_assets_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is new, and no test is skipped for it."""
    monkeypatch.delenv(asset_modules.INSTEAD_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = asset_modules.MODULES[0].folder / next(iter(asset_modules.MODULES[0].programs))
    home = other_dates.new_home(tmp_path, "a home")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(home))
    there = asset_modules.MODULES[0].folder / program.name
    assert (home.name, there.resolve()) == ("a home", program)
    assert [str(each.relative_to(home)) for each in home.rglob("*")] == [
        ".cache",
        ".cache/podscaler",
        ".cache/podscaler/assets",
    ]


def test_a_run_on_one_cpu() -> None:
    """Processes that are started meanwhile have one CPU; this one has all of its own afterwards."""
    former = os.sched_getaffinity(0)
    code = "import os; print(len(os.sched_getaffinity(0)))"
    with other_dates.cpus(is_one=True):
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"1\n"
    assert os.sched_getaffinity(0) == former


LOCALE_PROGRAM = """#!/bin/sh
printf 'C\nC.utf8\nPOSIX\nno_SUCH.utf8\n'
"""


def test_no_locale_with_a_comma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A locale without a comma is none, nor is one that cannot be used."""
    program = tmp_path / "locale"
    program.write_text(LOCALE_PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert other_dates.find_locale_with_comma() is None
    program.unlink()
    assert other_dates.find_locale_with_comma() is None


@pytest.mark.parametrize(
    ("variable", "status", "said"),
    [
        pytest.param(
            "0",
            1,
            "failed: there is no C compiler, which shifts the clock: install one (apt-get install gcc libc6-dev), "
            "or skip this with MAY_SKIP_DATES=1\n",
            id="required",
        ),
        pytest.param(
            "1",
            0,
            "skipped: there is no C compiler, which shifts the clock: install one (apt-get install gcc libc6-dev)\n",
            id="may be skipped",
        ),
    ],
)
def test_a_machine_without_a_c_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, status: int, said: str
) -> None:
    """It is a failure, unless the environment says otherwise; a sentence names what to install."""
    monkeypatch.setattr(other_dates, "built", lambda folder: None)
    monkeypatch.setenv(other_dates.SKIP_VARIABLE, variable)
    assert (other_dates.main([]), capsys.readouterr().out) == (status, said)


def test_a_new_folder_of_tests_is_run(tmp_path: Path) -> None:
    """Only the slow folders are left out by name."""
    for name in ("e2e", "fuzz", "new/deep", "property", "unit"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "test_it.py").touch()
    (tmp_path / "__pycache__").mkdir()
    found = [str(Path(each).relative_to(tmp_path)) for each in other_dates.targets(tmp_path)]
    assert found == ["new", "unit", *other_dates.ALSO]


def test_what_is_named_exists() -> None:
    """No folder or file of the rule is gone."""
    assert [each for each in other_dates.targets(other_dates.TESTS) if not Path(each).exists()] == []
    assert [name for name in other_dates.SLOW if not (other_dates.TESTS / name).is_dir()] == []


def _unshifted_s() -> int:
    """The machine's clock, in `make test-dates` too."""
    return int(time.time()) - int(os.environ.get(other_dates.SHIFT_VARIABLE, "0"))


def test_processes_have_the_other_clock(tmp_path: Path) -> None:
    """A Python process and those that it starts are ahead by as much, in the zone; sleeping still works."""
    library = other_dates.built(tmp_path)
    if library is None:
        prerequisites.C_COMPILER.skip()
    variant = other_dates.Variant("", 400 * other_dates.DAY_S, "<+14>-14", "POSIX", "home")
    code = "import subprocess, time; time.sleep(0.01); subprocess.run(['date', '+%s %z']); print(int(time.time()))"
    before_s = _unshifted_s()
    environment = variant.environment(library, tmp_path, os.environ)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    after_s = _unshifted_s()
    child_s, zone, own_s = done.stdout.split()
    assert zone == "+1400"
    assert all(before_s <= int(at_s) - variant.shift_s <= after_s for at_s in (child_s, own_s))
