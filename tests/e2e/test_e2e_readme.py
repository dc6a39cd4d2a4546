"""The README's commands, run as they stand there."""

import os
import re

import page_scripts
import pytest
from up_process import Up, eventually

import prerequisites

pytestmark = [pytest.mark.e2e]

ROOT = page_scripts.ROOT


def blocks(language: str) -> list[str]:
    """The README's code blocks of one language."""
    return page_scripts.blocks((ROOT / "README.md").read_text(), language)


@pytest.fixture(params=["up", "ordinary_up"])
def anyones_up(request: pytest.FixtureRequest) -> Up:
    """An `up` of whoever runs the tests, then one of a user without privileges."""
    if request.param == "ordinary_up" and os.geteuid() != 0:
        prerequisites.ANOTHER_USER.skip()
    found: Up = request.getfixturevalue(request.param)
    conditions = eventually(lambda: found.node()["status"].get("conditions"))
    missing = [one for one in conditions if one["type"] in ("PrivateMounts", "LowPorts") and one["status"] != "True"]
    if missing:
        prerequisites.NAMES_AND_PORTS.skip()
    return found


def test_the_walkthrough_of_the_readme_runs(anyones_up: Up, kubectl_present: None) -> None:
    """Every command of the walkthrough succeeds, the load gets answers, and the autoscaler has scaled up at the end."""
    up = anyones_up
    (walkthrough,) = (block for block in blocks("sh") if "kubectl apply" in block)
    pause = "sleep 25\n"  # on a busy machine the load goes on until it has been answered
    assert pause in walkthrough
    walkthrough = walkthrough.replace(pause, "until kubectl get events | grep -q 'above target'; do sleep 1; done\n")
    output = page_scripts.run(up, walkthrough)
    assert "\nOK!\n" in output
    assert "cpu resource utilization (percentage of request) above target" in output


def test_the_targets_of_the_readme_exist() -> None:
    """Each `make` command that the README names is one of the Makefile's."""
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"^make ([a-z0-9]+)$", "\n".join(blocks("sh")), re.MULTILINE))
    assert named == {"demo", "test"}
    assert named <= targets


def test_the_pages_of_the_readme_exist() -> None:
    """Links lead to files of the project."""
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
