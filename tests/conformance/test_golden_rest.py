"""The golden REST captures of a real API server, replayed over HTTP against ours."""

from pathlib import Path

import golden_replays
import pytest
from golden_gaps import GAPS
from golden_replays import Captures, Replays

GOLDEN = Path(__file__).parent / "golden"
NAMES = ("create-hpa", "update-hpa", "scale", "lists-watch", "discovery", "errors")
FAMILIES = {name: Captures(GOLDEN / f"{name}.jsonl") for name in NAMES}


@pytest.fixture(scope="module")
def replays(request: pytest.FixtureRequest) -> Replays:
    """Of the cases that were selected."""
    return golden_replays.replays(request, FAMILIES, "test_golden")


@pytest.mark.parametrize("name", list(golden_replays.parameters(FAMILIES, GAPS)))
def test_golden(name: str, replays: Replays) -> None:
    """The server answers as the captured one did; a case listed as a gap must still differ."""
    assert replays.difference(name) == ""


def test_gaps_are_cases() -> None:
    """The list of gaps names only cases that exist."""
    cases = {f"{family}:{name}" for family, captures in FAMILIES.items() for name in captures.names}
    assert GAPS.keys() <= cases
