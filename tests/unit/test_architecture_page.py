"""The pictures of ARCHITECTURE.md are the layers that import-linter checks."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = {
    "podscaler": "layers: an arrow may only point down",
    "adapter": "layers of adapter",
    "controlplane": "layers of controlplane",
    "api": "layers of api",
    "controller": "layers of controller",
}


def drawn(heading: str) -> list[str]:
    """The layers of the picture below a heading, from the top, without the remarks behind them."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = page.split(f"\n### {heading}\n", 1)[1].split("\n#", 1)[0]
    return [re.split(r" {2,}", line.strip())[0] for line in section.splitlines() if line.startswith("    ")]


def checked(contract: str) -> list[str]:
    """The layers of a contract, from the top, without the name of the root package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {each["name"]: each for each in settings["tool"]["importlinter"]["contracts"]}
    return [layer.replace("podscaler.", "") for layer in contracts[contract]["layers"]]


@pytest.mark.parametrize("heading", CONTRACTS)
def test_picture_is_the_contract(heading: str) -> None:
    """Names, order and separators (`|`: independent of each other) are those of the contract in pyproject.toml."""
    assert drawn(heading) == checked(CONTRACTS[heading])
