"""Stabilization windows: which recommendations count, which slot is reused, what the condition says.

Source: docs/spec/decision.md 8 (Normalisation without behavior), 9.1 (Scale-down window), 9.2 (Stabilisation); KEP-853.
Recommendations are written as (replicas, seconds ago).
"""

import pytest

from podscaler.core.limits import stabilization
from podscaler.core.limits.stabilization import Stabilized
from podscaler.core.model.history import Recommendation
from podscaler.core.model.settings import Settings
from podscaler.testing.decisions import NOW, SECOND, rules, scaler

Ago = list[tuple[int, float]]
FLAG = Settings(downscale_stabilization_ns=300 * SECOND)


def recommendations(ago: Ago) -> tuple[Recommendation, ...]:
    """Recommendations from (replicas, seconds ago)."""
    return tuple(Recommendation(replicas, NOW - round(seconds * SECOND)) for replicas, seconds in ago)


def remembered(stabilized: Stabilized) -> Ago:
    """What is remembered, as (replicas, seconds ago)."""
    return [(each.replicas, (NOW - each.at) / SECOND) for each in stabilized.recommendations]


def verdict(stabilized: Stabilized) -> tuple[int, str, int | None]:
    """The result, the reason, and the index of the recommendation that held."""
    return stabilized.step.result, stabilized.condition[0], stabilized.step.held_by


@pytest.mark.parametrize(
    ("past", "proposal", "expected"),
    [
        ([(5, 10)], 3, (5, "ScaleDownStabilized", 0)),
        ([(5, 10)], 5, (5, "ReadyForNewScale", None)),
        ([(5, 10)], 7, (7, "ReadyForNewScale", None)),
        ([(5, 20), (9, 15), (9, 10)], 3, (9, "ScaleDownStabilized", 1)),
        ([(5, 300)], 3, (5, "ScaleDownStabilized", 0)),
        ([(5, 300.000000001)], 3, (3, "ReadyForNewScale", None)),
        ([], 3, (3, "ReadyForNewScale", None)),
    ],
    ids=["held", "equal", "higher", "first of the highest", "at the cutoff", "before the cutoff", "nothing known"],
)
def test_by_flag(past: Ago, proposal: int, expected: tuple[int, str, int | None]) -> None:
    """Without behavior the highest recommendation of the flag's window counts, the cutoff included."""
    assert verdict(stabilization.by_flag(recommendations(past), proposal, NOW, FLAG)) == expected


@pytest.mark.parametrize(
    ("past", "after"),
    [
        ([(5, 10)], [(5, 10), (3, 0)]),
        ([(5, 400), (4, 10)], [(3, 0), (4, 10)]),
        ([(5, 400), (4, 350), (6, 10)], [(5, 400), (3, 0), (6, 10)]),
        ([(5, 300)], [(5, 300), (3, 0)]),
    ],
    ids=["appended", "one slot free", "the last free slot", "the cutoff is not free"],
)
def test_slots_of_the_flag(past: Ago, after: Ago) -> None:
    """The proposal as it was takes the last slot that the window has left behind, one at most."""
    assert remembered(stabilization.by_flag(recommendations(past), 3, NOW, FLAG)) == after


@pytest.mark.parametrize(
    ("past", "proposal", "current", "windows_s", "expected"),
    [
        ([(9, 10)], 3, 5, (60, 0), (5, "ScaleDownStabilized", None)),
        ([(4, 10)], 3, 5, (60, 0), (4, "ScaleDownStabilized", 0)),
        ([(4, 60)], 3, 5, (60, 0), (3, "ReadyForNewScale", None)),
        ([(4, 59)], 3, 5, (60, 0), (4, "ScaleDownStabilized", 0)),
        ([(4, 10)], 3, 5, (0, 0), (3, "ReadyForNewScale", None)),
        ([(6, 10)], 9, 5, (0, 60), (6, "ScaleUpStabilized", 0)),
        ([(6, 60)], 9, 5, (0, 60), (9, "ReadyForNewScale", None)),
        ([(3, 10)], 9, 5, (0, 60), (5, "ScaleUpStabilized", None)),
        ([(9, 10), (3, 5)], 5, 5, (60, 60), (5, "ReadyForNewScale", None)),
        ([(9, 10), (7, 5)], 8, 5, (60, 60), (7, "ScaleUpStabilized", 1)),
    ],
    ids=[
        "down, stays",
        "down, part of the way",
        "down, at the cutoff",
        "down, just inside",
        "down, no window",
        "up, part of the way",
        "up, at the cutoff",
        "up, stays",
        "on both sides",
        "both windows up",
    ],
)
def test_by_behavior(
    past: Ago, proposal: int, current: int, windows_s: tuple[int, int], expected: tuple[int, str, int | None]
) -> None:
    """The current count moves only as far as all recommendations of the windows agree, the cutoffs excluded."""
    windows_ns = (windows_s[0] * SECOND, windows_s[1] * SECOND)
    stabilized = stabilization.by_behavior(recommendations(past), proposal, current, now_ns=NOW, windows_ns=windows_ns)
    assert verdict(stabilized) == expected


@pytest.mark.parametrize(
    ("past", "after"),
    [
        ([(5, 100), (6, 61), (7, 10)], [(5, 100), (3, 0), (7, 10)]),
        ([(5, 60)], [(5, 60), (3, 0)]),
        ([(5, 31)], [(5, 31), (3, 0)]),
    ],
    ids=["the last free slot", "the cutoff is not free", "one window still reaches it"],
)
def test_slots_of_behavior(past: Ago, after: Ago) -> None:
    """A slot is free once both windows have left it behind."""
    windows_ns = (60 * SECOND, 30 * SECOND)
    stabilized = stabilization.by_behavior(recommendations(past), 3, 5, now_ns=NOW, windows_ns=windows_ns)
    assert remembered(stabilized) == after


@pytest.mark.parametrize(
    ("down", "up", "flag_ns", "expected"),
    [
        (None, None, 300 * SECOND, (300, 0)),
        (0, 60, 300 * SECOND, (0, 60)),
        (None, 0, 90 * SECOND + SECOND // 2, (90, 0)),
        (None, 0, (2**32 + 5) * SECOND // 1, (5, 0)),
    ],
)
def test_windows(down: int | None, up: int | None, flag_ns: int, expected: tuple[int, int]) -> None:
    """An unset scale-down window is the flag's, in whole seconds as an int32; an unset scale-up window is 0."""
    behavior = scaler(behavior={"scaleDown": rules(window=down), "scaleUp": rules(window=up)}).behavior
    assert behavior is not None
    found = stabilization.windows_ns(behavior, Settings(downscale_stabilization_ns=flag_ns))
    assert found == (expected[0] * SECOND, expected[1] * SECOND)


def applied(history: list[int], proposal: int, current: int, *, up_s: int = 0, down_s: int = 0) -> int:
    """The result for a history of one recommendation a minute, the last one a minute ago."""
    past = recommendations([(replicas, 60 * (len(history) - index)) for index, replicas in enumerate(history)])
    windows_ns = (down_s * SECOND, up_s * SECOND)
    return stabilization.by_behavior(past, proposal, current, now_ns=NOW, windows_ns=windows_ns).step.result


def test_kep_853_down_window() -> None:
    """KEP-853: ten minutes of [10,9,8,9,9,8,9,8,9] and 8 keep 10; then the 10 leaves, 7 arrives, 9 is applied."""
    first = applied([10, 9, 8, 9, 9, 8, 9, 8, 9], 8, 10, down_s=600)
    then = applied([9, 8, 9, 9, 8, 9, 8, 9, 8], 7, 10, down_s=600)
    assert (first, then) == (10, 9)


def test_kep_853_up_window() -> None:
    """KEP-853: five minutes of [2,3,19,10,3] and 4 keep 2; then the 2 leaves, 7 arrives, 3 is applied."""
    first = applied([2, 3, 19, 10, 3], 4, 2, up_s=301)
    then = applied([3, 19, 10, 3, 4], 7, 2, up_s=301)
    assert (first, then) == (2, 3)
