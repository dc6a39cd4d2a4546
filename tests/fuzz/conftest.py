"""The server that the tests of a file send their requests to."""

from collections.abc import Iterator

import pytest
from fuzz_server import Target, fuzzed


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server with an object of each kind."""
    with fuzzed(tmp_path_factory.mktemp("fuzz")) as target:
        yield target
