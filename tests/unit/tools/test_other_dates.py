"""`make test-dates`: which days, and which tests."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import other_dates

import prerequisites

NOW_S = 1_795_305_600  # 2026-11-22T00:00:00Z


def test_the_days_are_those_that_matter() -> None:
    """A day, a year, and the passage into a leap day; both ends of the world's zones, and one with summer time."""
    found = [
        (datetime.fromtimestamp(NOW_S + variant.shift_s, UTC).isoformat(), variant.zone)
        for variant in other_dates.variants(NOW_S)
    ]
    assert found == [
        ("2026-11-23T00:00:00+00:00", "<+14>-14"),
        ("2027-11-22T00:00:00+00:00", "<-12>12"),
        ("2028-02-28T23:59:00+00:00", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ]


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
    variant = other_dates.Variant("", 400 * other_dates.DAY_S, "<+14>-14")
    code = "import subprocess, time; time.sleep(0.01); subprocess.run(['date', '+%s %z']); print(int(time.time()))"
    before_s = _unshifted_s()
    environment = variant.environment(library, os.environ)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    after_s = _unshifted_s()
    child_s, zone, own_s = done.stdout.split()
    assert zone == "+1400"
    assert all(before_s <= int(at_s) - variant.shift_s <= after_s for at_s in (child_s, own_s))
