"""How tests are distributed over the workers of pytest-xdist with `--dist loadfile`: in units, one after the other.

Called by conftest.py. Tests of a file share servers, so that a file stays with one worker. Files whose tests share
nothing between families (`test_recorded[kinds:job-status]` is of the family `kinds`) are distributed by family.
End-to-end tests wait more than they compute: they alternate with others, so that the cores are busy meanwhile.
"""

import re
from collections import Counter
from itertools import zip_longest
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

BY_FAMILY = ("test_recorded_rest.py", "test_golden_rest.py")
WAITING = "tests/e2e/"
SHORT = "tests/unit/"
"""Begin last: the smaller the units at the end, the sooner after each other the workers end."""

_FAMILY = re.compile(r"\[([\w.-]+):")


def unit_of(nodeid: str) -> str:
    """The unit of a test: its file, or `FILE:FAMILY` where a file is distributed by family."""
    file, _, test = nodeid.partition("::")
    family = _FAMILY.search(test) if file.endswith(BY_FAMILY) else None
    return f"{file}:{family[1]}" if family else file


def in_order(tests: dict[str, int]) -> list[str]:
    """The units in the order in which they begin: long and large ones first, those that wait among the others.

    Args:
        tests: how many tests each unit has.
    """
    by_size = sorted(tests, key=lambda unit: (unit.startswith(SHORT), -tests[unit]))
    waiting = [unit for unit in by_size if unit.startswith(WAITING)]
    computing = [unit for unit in by_size if not unit.startswith(WAITING)]
    return [unit for pair in zip_longest(waiting, computing) for unit in pair if unit is not None]


def sort(items: list[pytest.Item]) -> None:
    """Put the tests into the order in which their units begin."""
    units = [unit_of(item.nodeid) for item in items]
    places = {unit: place for place, unit in enumerate(in_order(Counter(units)))}
    order = sorted(range(len(items)), key=lambda index: places[units[index]])
    items[:] = [items[index] for index in order]


class Scheduling(LoadScopeScheduling):
    """Gives the next unit, in the order of the tests, to the worker that is about to end its own."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def scheduling(config: pytest.Config, log: Any) -> Scheduling | None:
    """The scheduling for `--dist loadfile`; None, which leaves it to pytest-xdist, for another.

    Args:
        log: pytest-xdist's own.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # by the number of tests
    return Scheduling(config, log)
