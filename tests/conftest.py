"""Settings of all tests: hypothesis takes the same examples each time, as long as it needs; nothing outlives a run."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

import survivors

settings.register_profile("deterministic", deadline=None, derandomize=True)
settings.load_profile("deterministic")


@pytest.fixture(scope="session", autouse=True)
def nothing_survives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests have started and not ended is ended after the last one, even where pytest is killed."""
    with survivors.ended(tmp_path_factory.getbasetemp()):
        yield
