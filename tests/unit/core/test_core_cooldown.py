"""Cooldowns after a rescale, as the releases between v1.6 and v1.11 had them, beside today's windows and policies."""

import msgspec
import pytest

from podscaler.api.machinery import instants
from podscaler.core import algorithm
from podscaler.core.limits import cooldown
from podscaler.core.limits.cooldown import Delays
from podscaler.core.model.history import History, Recommendation
from podscaler.core.model.observation import Observation
from podscaler.core.model.settings import Settings
from podscaler.core.model.trace import Cooldown
from podscaler.testing.decisions import (
    NOW,
    SECOND,
    condition_rows,
    conditions,
    decided,
    external_metric,
    observed,
    scaler,
    values,
)

SPEC = scaler(external_metric(average="1"), most=20)
LONG_AGO = History((Recommendation(1, NOW - 3600 * SECOND),))
BOTH = Settings(upscale_delay_ns=180 * SECOND, downscale_delay_ns=300 * SECOND)


def _scaled(seconds_ago: float | None, wanted: int, replicas: int = 5) -> Observation:
    """An observation of a target that was scaled some time ago, and should have `wanted` replicas."""
    observation = observed(values(wanted * 1000), replicas=replicas)
    last = None if seconds_ago is None else instants.text(NOW - round(seconds_ago * SECOND))
    status = msgspec.structs.replace(observation.status, last_scale_time=last)
    return msgspec.structs.replace(observation, status=status)


@pytest.mark.parametrize(
    ("seconds_ago", "up_until_s", "down_until_s"),
    [(0, 180, 300), (180, 0, 120), (181, None, 119), (300, None, 0), (301, None, None)],
    ids=["just now", "the end of up", "after it", "the end of down", "after it all"],
)
def test_running(seconds_ago: int, up_until_s: int | None, down_until_s: int | None) -> None:
    """A direction is free after its delay, not yet at its end."""
    last = instants.text(NOW - seconds_ago * SECOND)
    found = cooldown.of(algorithm.delays(BOTH), last, NOW)
    ends = [None if end_s is None else NOW + end_s * SECOND for end_s in (up_until_s, down_until_s)]
    assert found == Cooldown(180 * SECOND, 300 * SECOND, NOW - seconds_ago * SECOND, *ends)


def test_never_scaled() -> None:
    """Without a rescale nothing waits."""
    found = cooldown.of(algorithm.delays(BOTH), None, NOW)
    assert (found, found and found.is_running) == (Cooldown(180 * SECOND, 300 * SECOND), False)


def test_off_unless_given() -> None:
    """Today's algorithm has no cooldowns, and one flag is one direction."""
    found = [algorithm.delays(each) for each in (Settings(), Settings(upscale_delay_ns=SECOND))]
    assert found == [cooldown.NO_DELAYS, Delays(SECOND, 0)]
    assert decided(SPEC, _scaled(0, 9)).replicas == 9


@pytest.mark.parametrize(
    ("seconds_ago", "wanted", "replicas", "reason"),
    [
        (100, 9, None, "BackoffBoth"),
        (100, 5, None, "BackoffBoth"),
        (181, 9, 9, "SucceededRescale"),
        (181, 2, None, "BackoffDownscale"),
        (301, 2, 2, "SucceededRescale"),
    ],
)
def test_what_is_held_back(seconds_ago: int, wanted: int, replicas: int | None, reason: str) -> None:
    """Changes wait for the end of their direction's delay; AbleToScale says so all the while."""
    decision = decided(SPEC, _scaled(seconds_ago, wanted), LONG_AGO, settings=BOTH)
    rows = {kind: (status, why) for kind, status, why in condition_rows(decision)}
    assert (decision.replicas, rows["AbleToScale"]) == (replicas, ("True" if replicas else "False", reason))


def test_only_scaling_up_waits() -> None:
    """One flag alone: its own reason, and the other direction is free."""
    settings = Settings(upscale_delay_ns=180 * SECOND)
    up, down = (decided(SPEC, _scaled(60, wanted), LONG_AGO, settings=settings) for wanted in (9, 2))
    assert (up.replicas, condition_rows(up)[0][2], down.replicas) == (None, "BackoffUpscale", 2)


def test_windows_come_first() -> None:
    """What a window holds back needs no cooldown; when the cooldown ends the window may still hold."""
    past = History((Recommendation(5, NOW - 100 * SECOND),))
    during, after = (decided(SPEC, _scaled(seconds, 2), past, settings=BOTH) for seconds in (100, 301))
    assert (during.replicas, during.trace.cooldown and during.trace.cooldown.held) == (None, None)
    assert (after.replicas, condition_rows(after)[0][2]) == (None, "ScaleDownStabilized")


def test_what_waits_is_recommended_all_the_same() -> None:
    """A held scale-up is remembered as a recommendation, and in the trace."""
    decision = decided(SPEC, _scaled(10, 9), settings=BOTH)
    assert decision.history.recommendations[-1] == Recommendation(9, NOW)
    assert (decision.trace.cooldown, decision.trace.desired, decision.trace.reason) == (
        Cooldown(180 * SECOND, 300 * SECOND, NOW - 10 * SECOND, NOW + 170 * SECOND, NOW + 290 * SECOND, held=9),
        5,
        "",
    )


@pytest.mark.parametrize(("replicas", "expected"), [(21, 20), (0, 4)], ids=["above the maximum", "asleep"])
def test_what_does_not_wait(replicas: int, expected: int) -> None:
    """Bounds apply at once, and a target without replicas is woken at once."""
    spec = scaler(external_metric(average="1"), least=0, most=20)
    observation = _scaled(0, 4, replicas)
    woken = msgspec.structs.replace(observation.status, conditions=conditions(ScaledToZero="True"))
    decision = decided(spec, msgspec.structs.replace(observation, status=woken), settings=BOTH)
    assert decision.replicas == expected


def test_the_condition_lasts_as_long_as_the_cooldown() -> None:
    """Its transition time is that of the first sync that said so, so that nothing is written while nothing changes."""
    first = decided(SPEC, _scaled(10, 9), settings=BOTH)
    again = msgspec.structs.replace(_scaled(10, 9), status=first.status)
    second = decided(SPEC, again, now=NOW + 15 * SECOND, settings=BOTH)
    assert second.status == first.status
