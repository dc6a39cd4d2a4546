"""The files of examples/, as they stand there."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from up_process import Up, eventually

from podscaler.api.kinds import catalog

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
WANTED = {"behavior": 8, "memory": 4, "requests": 6, "worker": 4, "two-containers": 3}
"""Autoscalers and the pods that their files promise."""


def objects(example: Path) -> list[dict[str, Any]]:
    """The objects of a file."""
    return [each for each in yaml.safe_load_all(example.read_text()) if each]


def path(manifest: dict[str, Any]) -> str:
    """Where objects of a manifest's kind are created."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    (resource,) = (one for one in catalog.RESOURCES if (one.group, one.kind) == (group, manifest["kind"]))
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/default/{resource.plural}"


def test_the_examples_scale_as_they_say(up: Up) -> None:
    """The API server accepts each without a warning, and its autoscaler wants as many pods as its file promises."""
    for manifest in (each for example in EXAMPLES for each in objects(example)):
        up.create(f"{path(manifest)}?fieldValidation=Strict", manifest)

    def wanted() -> dict[str, int]:
        found = up.get("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers")["items"]
        return {one["metadata"]["name"]: one["status"].get("desiredReplicas", 0) for one in found}

    assert eventually(wanted, until=lambda found: found == WANTED) == WANTED


def test_the_readme_describes_each_example() -> None:
    """Every file has a line of its own in the README, and every line a file."""
    described = re.findall(r"\]\((examples/[^)]+)\)", (ROOT / "README.md").read_text())
    assert sorted(described) == [str(example.relative_to(ROOT)) for example in EXAMPLES]
