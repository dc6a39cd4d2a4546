"""Which of many cases of one kind `make test` takes: every n-th; `make test-all` takes the others.

Called by tests with many cases that take long, or start a process each.
"""

from collections.abc import Iterable
from typing import Any

import pytest

_PARAMETER = type(pytest.param())


def one_in(share: int, parameters: Iterable[Any]) -> list[Any]:
    """The parameters, values or each a `pytest.param`, with all but the first of each `share` marked `slow`."""
    return [_slow(one) if place % share else one for place, one in enumerate(parameters)]


def _slow(parameter: Any) -> Any:
    if not isinstance(parameter, _PARAMETER):
        return pytest.param(parameter, marks=pytest.mark.slow)
    return pytest.param(*parameter.values, id=parameter.id, marks=[*parameter.marks, pytest.mark.slow])
