"""Fixtures of the store's tests: a real store on a real file, in virtual time."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.storage.store import Store
from podscaler.testing import VirtualClock
from podscaler.testing.kinds import KINDS
from podscaler.testing.registry import OpenRegistry, open_registry


@pytest.fixture
def clock() -> VirtualClock:
    """Time that stands still at 2026-01-01T00:00:00Z."""
    return VirtualClock()


@pytest.fixture
async def opened(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[OpenRegistry]:
    """Registry, objects and store of the small test kinds."""
    async with open_registry(tmp_path / "data", KINDS, clock) as found:
        yield found


@pytest.fixture
def objects(opened: OpenRegistry) -> Objects:
    """What HTTP sees."""
    return opened.objects


@pytest.fixture
def registry(opened: OpenRegistry) -> Registry:
    """What controllers see."""
    return opened.registry


@pytest.fixture
def store(opened: OpenRegistry) -> Store:
    """What is below."""
    return opened.store
