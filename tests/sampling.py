"""Which of many cases of one kind `make test` takes: every n-th; `make test-all` takes the others.

Called by tests with hundreds of cases that take long, or start a process each.
"""

from collections.abc import Sequence
from typing import Any

import pytest


def one_in(share: int, parameters: Sequence[Any]) -> list[Any]:
    """The parameters, each a `pytest.param`, with all but the first of each `share` marked `slow`."""
    return [one if place % share == 0 else slow(one) for place, one in enumerate(parameters)]


def slow(parameter: Any) -> Any:
    """A `pytest.param` with that mark."""
    return pytest.param(*parameter.values, id=parameter.id, marks=[*parameter.marks, pytest.mark.slow])
