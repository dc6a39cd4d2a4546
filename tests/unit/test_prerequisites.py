"""What a machine may lack: the end of a run says how to run what was skipped."""

import re
from pathlib import Path

import prerequisites

TESTS = Path(__file__).parents[1]
SKIPS = re.compile(r"pytest\.(skip|mark\.skip|importorskip)|unittest\.skip|skipTest\(")


def test_tests_are_skipped_by_prerequisites_alone() -> None:
    """A test that skips itself in its own words says nothing of a remedy."""
    files = {path for path in TESTS.rglob("*.py") if SKIPS.search(path.read_text(encoding="utf-8"))}
    assert files - {Path(__file__)} == {TESTS / "prerequisites.py"}


def test_every_prerequisite_names_its_remedy() -> None:
    """Both halves of the reason are there."""
    known = [each for each in vars(prerequisites).values() if isinstance(each, prerequisites.Prerequisite)]
    assert len(known) > 8
    assert [each for each in known if not each.lack or not each.remedy] == []


def test_every_prerequisite_is_of_some_test() -> None:
    """What no test names is checked nowhere: a machine that lacks it gets failures, or the line is dead."""
    names = {name for name, each in vars(prerequisites).items() if isinstance(each, prerequisites.Prerequisite)}
    code = "".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py"))
    assert names - set(re.findall(r"prerequisites\.([A-Z_0-9]+)\.(?:skip|mark)\(", code)) == set()


def test_reasons_are_counted() -> None:
    """One line for each, the most frequent first."""
    found = prerequisites.summary(["Skipped: no b; to run: c", "Skipped: no a; to run: c", "Skipped: no b; to run: c"])
    assert found == ["    2 no b; to run: c", "    1 no a; to run: c"]


def test_nothing_was_skipped() -> None:
    """No reason, no line."""
    assert prerequisites.summary([]) == []
