"""The durations of an election, and those with which none can be held."""

import re

import pytest

from podscaler.base.errors import UsageError
from podscaler.controller.leaderelection.election import Timing


def test_the_defaults_are_upstreams() -> None:
    """15 s, 10 s, 2 s."""
    assert Timing() == Timing(15, 10, 2)


@pytest.mark.parametrize(
    ("timing", "sentence"),
    [
        ((10, 10, 2), "--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline"),
        ((10.9, 10.5, 2), "--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline"),
        ((15, 10, 9), "--leader-elect-renew-deadline must be greater than 1.2 times --leader-elect-retry-period"),
        ((0.5, 0.2, 0.1), "--leader-elect-lease-duration must be at least 1s"),
        ((15, 10, 0), "--leader-elect-retry-period greater than zero"),
    ],
)
def test_impossible_durations(timing: tuple[float, float, float], sentence: str) -> None:
    """Two could act at once, or nobody: one sentence that names the flags."""
    with pytest.raises(UsageError, match=re.escape(sentence)):
        Timing(*timing)


def test_the_shortest() -> None:
    """Just within the bounds."""
    assert Timing(2, 1.9, 1.5).attempt_s == 0.95
