"""The registry for tests of controllers."""

from pathlib import Path

import pytest

from podscaler.api.resource.resources import Resource
from podscaler.testing import VirtualClock
from podscaler.testing.kinds import GADGETS, KINDS
from podscaler.testing.registry import open_registry


@pytest.mark.parametrize(
    ("resources", "exists"), [(KINDS, True), ((GADGETS,), False)], ids=["namespaces", "no namespaces"]
)
async def test_the_default_namespace(tmp_path: Path, resources: tuple[Resource, ...], exists: bool) -> None:
    """It exists if the registry has namespaces."""
    async with open_registry(tmp_path, resources, VirtualClock()) as opened:
        assert (opened.registry.find("namespaces", "", "default") is not None) is exists
