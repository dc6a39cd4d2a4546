"""docs/conformance.md names every capture that our server does not reproduce, and no other."""

import json
import re
from pathlib import Path

from golden_gaps import GAPS, KUBECTL_GAPS, RECORDED_GAPS

PAGE = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
GOLDEN = Path(__file__).parent / "golden"
RECORDED = Path(__file__).parent / "recorded"
NEEDS_A_FLAG = {"discovery:metrics-absent"}
"""Passes in the tests, whose server has no metrics.k8s.io, and fails against `up --api-only` without a further flag."""


def _named() -> dict[str, str]:
    """The cases in the page's table of differences, with their reasons."""
    table = PAGE.partition("## Cases that differ")[2].partition("\n## ")[0]
    single = dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", table, re.MULTILINE))
    several = re.findall(r"^\| ([^`|]+) \| (`.+`) \|$", table, re.MULTILINE)
    return single | {f"kinds:{name}": why for why, names in several for name in re.findall("`([^`]+)`", names)}


def _count(*families: Path) -> int:
    return sum(len(family.read_text(encoding="utf-8").splitlines()) for family in families)


def test_the_table_of_differences_is_that_of_the_tests() -> None:
    """Every gap is on the page with its reason, and nothing else is."""
    gaps = GAPS | RECORDED_GAPS | {f"kubectl:{name}": reason for name, reason in KUBECTL_GAPS.items()}
    named = _named()
    assert named.keys() == gaps.keys() | NEEDS_A_FLAG
    assert {name: named[name] for name in gaps} == gaps


def test_gaps_are_at_most_one_percent() -> None:
    """Of all golden cases, at most one in a hundred differs."""
    assert (len(GAPS) + len(KUBECTL_GAPS) + len(NEEDS_A_FLAG)) * 100 <= _count(*GOLDEN.glob("*.jsonl"))


def test_the_figures_are_right() -> None:
    """The page counts the cases that there are."""
    rest = _count(*(family for family in GOLDEN.glob("*.jsonl") if family.stem != "kubectl"))
    recorded = _count(*RECORDED.glob("*.jsonl"))
    for count in (rest, _count(GOLDEN / "kubectl.jsonl"), recorded):
        assert f"| {count:,} |" in PAGE
    assert f"{recorded - len(RECORDED_GAPS):,} |" in PAGE


def test_recorded_cases_are_json_in_the_golden_form() -> None:
    """Each line is a case with a name of its own, steps and answers."""
    for family in RECORDED.glob("*.jsonl"):
        cases = [json.loads(line) for line in family.read_text(encoding="utf-8").splitlines()]
        assert len({case["name"] for case in cases}) == len(cases)
        assert all(step["response"]["status"] for case in cases for step in case["steps"])
