"""Rates and bounds: the limit that applies, and what ScalingLimited says about it.

Source: docs/spec/decision.md 8 (Normalisation without behavior), 9.3 (Rates and bounds).
"""

import pytest

from podscaler.core.limits import bounds
from podscaler.core.limits.policies import PolicyFacts
from podscaler.core.model.emulation import V1_37
from podscaler.core.model.history import EMPTY
from podscaler.core.model.trace import Direction, Limits
from podscaler.testing.decisions import NOW, rules, scaler


@pytest.mark.parametrize(
    ("least", "most", "current", "wanted", "result", "reason"),
    [
        (1, 20, 1, 10, 4, "ScaleUpLimit"),
        (1, 100, 10, 50, 20, "ScaleUpLimit"),
        (1, 20, 10, 50, 20, "TooManyReplicas"),
        (1, 21, 10, 50, 20, "ScaleUpLimit"),
        (1, 10, 3, 6, 6, "DesiredWithinRange"),
        (1, 10, 3, 7, 6, "ScaleUpLimit"),
        (2, 10, 3, 1, 2, "TooFewReplicas"),
        (2, 10, 3, 2, 2, "DesiredWithinRange"),
        (0, 10, 3, 0, 0, "DesiredWithinRange"),
        (1, 10, 0, 0, 1, "TooFewReplicas"),
        (1, 10, 10, 10, 10, "DesiredWithinRange"),
        (1, 2**31 - 1, 2**30, 2**31 - 1, -(2**31), "ScaleUpLimit"),
    ],
)
def test_without_behavior(least: int, most: int, current: int, wanted: int, result: int, reason: str) -> None:
    """Twice the current count (but at least 4) is the most at once, then come maximum and minimum."""
    limits = bounds.without_behavior(scaler(least=least, most=most), wanted, current)
    assert (limits.result, limits.reason) == (result, reason)


@pytest.mark.parametrize(
    ("least", "most", "current", "wanted", "expected"),
    [
        (1, 10, 3, 5, (5, "DesiredWithinRange", Direction.UP)),
        (1, 10, 3, 6, (5, "ScaleUpLimit", Direction.UP)),
        (1, 5, 3, 6, (5, "TooManyReplicas", Direction.UP)),
        (1, 4, 3, 6, (4, "TooManyReplicas", Direction.UP)),
        (1, 10, 5, 4, (4, "DesiredWithinRange", Direction.DOWN)),
        (1, 10, 5, 3, (4, "ScaleDownLimit", Direction.DOWN)),
        (4, 10, 5, 3, (4, "TooFewReplicas", Direction.DOWN)),
        (5, 10, 5, 3, (5, "TooFewReplicas", Direction.DOWN)),
        (1, 10, 5, 5, (5, "DesiredWithinRange", Direction.UNCHANGED)),
        (7, 10, 5, 5, (5, "DesiredWithinRange", Direction.UNCHANGED)),
    ],
)
def test_with_behavior(least: int, most: int, current: int, wanted: int, expected: tuple[int, str, Direction]) -> None:
    """2 pods up and 1 pod down at once, then the bound of that direction; no change is compared with nothing."""
    spec = scaler(
        least=least,
        most=most,
        behavior={"scaleUp": rules(("Pods", 2, 60)), "scaleDown": rules(("Pods", 1, 60))},
    )
    assert spec.behavior is not None
    limits = bounds.with_behavior(spec, PolicyFacts(spec.behavior, EMPTY, NOW, V1_37), wanted, current)
    assert (limits.result, limits.reason, limits.direction) == expected


def test_the_bound_that_applied_is_traced() -> None:
    """The trace names the rate, and the bound only where it cut something off."""
    spec = scaler(most=20)
    assert bounds.without_behavior(spec, 10, 1) == Limits(10, Direction.UP, "", (), 4, 4, "ScaleUpLimit", 4)
    assert bounds.without_behavior(spec, 3, 1) == Limits(3, Direction.UP, "", (), 4, None, "DesiredWithinRange", 3)
