"""Scenario files come out as they expect: upstream's published behaviour (tests/scenarios) and the examples for users.

Source: docs/spec/scenarios.md.
"""

from pathlib import Path

import pytest

from podscaler.simulation import engine
from podscaler.simulation.files import scenario_file
from podscaler.simulation.files.scenario_file import ScenarioFile
from podscaler.simulation.model import expectations

ROOT = Path(__file__).parents[2]
UPSTREAM = sorted((ROOT / "tests" / "scenarios").glob("*.yaml"))
EXAMPLES = sorted((ROOT / "examples" / "simulation").glob("*.yaml"))


def failures(found: ScenarioFile) -> list[str]:
    checks = expectations.checks(found.expectations)
    for sync in engine.simulate(found.scenario):
        for check in checks:
            check.add(sync)
    return [sentence for check in checks if (sentence := check.failure())]


@pytest.mark.parametrize("path", [*UPSTREAM, *EXAMPLES], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_scenario_comes_out_as_it_expects(path: Path) -> None:
    found = scenario_file.read(path)
    assert found.expectations
    assert failures(found) == []


def test_the_files_are_there() -> None:
    """The table above is not empty by mistake."""
    assert (len(UPSTREAM), len(EXAMPLES)) == (21, 8)


SEQUENCES = {
    "walkthrough": [4, 7, 1],
    "kep-853-fast-up": [10, 100, 1000],
    "kep-853-slow-up": [2, 3, 4, 5],
    "kep-853-slow-down": [999, 998],
    "kep-853-down-window": [9],
    "kep-853-up-window": [3],
    "docs-default-policies": [5, 10, 20, 40],
    "docs-two-down-policies": [72, 64, 57, 51, 45, 40, 36, 32, 28, 24, 20, 16, 12, 10],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_replicas_of_a_published_example_come_one_after_another(name: str) -> None:
    found = scenario_file.read(ROOT / "tests" / "scenarios" / f"{name}.yaml")
    written = [each.decision.replicas for each in engine.simulate(found.scenario)]
    assert [replicas for replicas in written if replicas is not None] == SEQUENCES[name]
