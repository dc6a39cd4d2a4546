"""The project's own captures of a real API server, replayed against ours: nothing may differ, nothing be more.

`make test` replays one in three, `make test-all` the others.
"""

from pathlib import Path

import golden_replays
import pytest
from golden_gaps import RECORDED_GAPS
from golden_replays import Captures, Replays

import sampling

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.jsonl"))
FAMILIES = {path.stem: Captures(path, is_strict=True) for path in RECORDED}


@pytest.fixture(scope="module")
def replays(request: pytest.FixtureRequest) -> Replays:
    """Of the cases that were selected."""
    return golden_replays.replays(request, FAMILIES, "test_recorded")


@pytest.mark.parametrize("name", sampling.one_in(3, golden_replays.parameters(FAMILIES, RECORDED_GAPS)))
def test_recorded(name: str, replays: Replays) -> None:
    """The server answers as the recorded one did; a case listed as a gap must still differ."""
    assert replays.difference(name) == ""


def test_recorded_gaps_are_cases() -> None:
    """The list of gaps names only cases that exist."""
    cases = {f"{family}:{name}" for family, captures in FAMILIES.items() for name in captures.names}
    assert RECORDED_GAPS.keys() <= cases
