"""The rules of docs/adapter.md and of the samples are rules that work."""

import re
from pathlib import Path

import pytest
import yaml

from podscaler.adapter.cluster.rest_mapper import mapping_of
from podscaler.adapter.config import config_file
from podscaler.adapter.naming import rule_naming

ROOT = Path(__file__).parents[3]
PAGE = "".join((ROOT / "docs" / name).read_text() for name in ("adapter.md", "resource-metrics.md"))
SAMPLES = sorted((ROOT / "tests" / "conformance" / "adapter" / "samples").glob("*.yaml"))
SERVED = mapping_of(
    {
        "pods": ("v1", "Pod", True),
        "namespaces": ("v1", "Namespace", False),
        "nodes": ("v1", "Node", False),
        "deployments.apps": ("v1", "Deployment", True),
    }
)
BLOCKS = [block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "seriesQuery" in block]


def configurations() -> list[str]:
    """The rules of the page, as they are and in the values of the chart, and the samples."""
    blocks = [yaml.safe_load(block) for block in BLOCKS]
    found = [yaml.safe_dump(block["adapter"]["config"] if "adapter" in block else block) for block in blocks]
    return found + [path.read_text() for path in SAMPLES]


@pytest.mark.parametrize("text", configurations())
def test_rules_work(text: str) -> None:
    """No rule has an error."""
    config = config_file.parse(text, "f")
    assert config.rules or config.external_rules or config.resource_rules
    assert rule_naming.compile_rules((*config.rules, *config.external_rules), SERVED)[1] == []


def test_flags_are_those_of_the_page() -> None:
    """Each flag of the command, but the common ones, is on the page."""
    from podscaler.cli.commands.adapter import command

    flags = {name for param in command.params for name in param.opts if name.startswith("--")}
    assert {name for name in flags if f"`{name}`" not in PAGE and f"`{name}=" not in PAGE} <= {
        "--log-format",
        "--verbose",
    }
