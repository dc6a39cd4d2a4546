"""The world of the tests of metric values."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from metric_world import MetricWorld, metric_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[MetricWorld]:
    """A world without ConfigMaps and pods."""
    async with metric_world(tmp_path) as opened:
        yield opened
