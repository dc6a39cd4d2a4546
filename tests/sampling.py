"""Which of many cases of one kind `make test` takes: every n-th; `make test-all` takes the others.

Called by tests with hundreds of cases that take a second each, or start a process.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest


def one_in(share: int, parameters: Iterable[Any]) -> Iterator[Any]:
    """The parameters, each a `pytest.param`, with all but the first of each `share` marked `slow`."""
    for place, parameter in enumerate(parameters):
        if place % share:
            parameter = pytest.param(*parameter.values, id=parameter.id, marks=[*parameter.marks, pytest.mark.slow])
        yield parameter
