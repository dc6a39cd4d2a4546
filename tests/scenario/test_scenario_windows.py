"""Stabilization windows: the highest (or lowest) recommendation of the recent past counts."""

from typing import Any

from scenario_builders import autoscaler, cpu, external, world
from scenario_examples import BLOG, CPU, DOCUMENTATION, DOCUMENTATION_V1_18, DOWN, KEP_853, Timeline, examples

from podscaler.testing.decisions import Json, resource, rules
from podscaler.testing.scenario import ConditionChange
from podscaler.testing.scenario_meters import Amount, shared, values

QUEUE = "external metric queue(nil) above target"


@examples(
    f"{DOCUMENTATION}: example, change the downscale stabilization window",
    "behavior",
    ("window of 60 s", {"scaleDown": {"stabilizationWindowSeconds": 60}}, [(75, 2, DOWN)]),
    ("window of 300 s", {"scaleDown": {"stabilizationWindowSeconds": 300}}, [(315, 2, DOWN)]),
    ("window of 0 s", {"scaleDown": {"stabilizationWindowSeconds": 0}}, [(30, 2, DOWN)]),
    ("the flag's window with behavior", {}, [(315, 2, DOWN)]),
    ("the flag's window without behavior: one sync later", None, [(330, 2, DOWN)]),
)
def test_window(behavior: Any, timeline: Timeline) -> None:
    """A fall of the load at 30 s is followed when the last higher recommendation (15 s) is out of the window."""
    scaler = autoscaler(cpu(50), behavior=behavior)
    assert world(scaler, 8, shared({0: 4000, 30: 1000})).run(600) == timeline


@examples(
    f"{DOCUMENTATION}: stabilization window, the rolling maximum",
    "load",
    (
        "a load that swings every minute never scales down",
        {second: 4000 if second % 120 == 0 else 1000 for second in range(0, 1800, 60)},
        [],
    ),
    (
        "a load that falls by steps: each step down 5 minutes later",
        {0: 4000, 60: 3000, 120: 2000, 180: 1000},
        [(345, 6, DOWN), (405, 4, DOWN), (465, 2, DOWN)],
    ),
)
def test_rolling_maximum(load: Amount, timeline: Timeline) -> None:
    """Of the last 5 minutes the highest recommendation is used, so that pods are not removed only to come back."""
    found = world(autoscaler(cpu(50), behavior={}), 8, shared(load))
    assert found.run(1500) == timeline


@examples(
    f"{DOCUMENTATION_V1_18}: cooldowns, the downscale stabilization flag; {BLOG}: under the hood",
    "",
    ("three scale-downs 15 s apart", [(315, 8, DOWN), (330, 6, DOWN), (345, 4, DOWN)]),
    differs="After a scale operation the autoscaler waits 5 minutes before the next scale-down. What holds: a"
    " scale-down goes to the highest recommendation of the last 5 minutes, as often as that falls.",
)
def test_window_is_no_cooldown(timeline: Timeline) -> None:
    """Scale-downs follow one another as fast as the recommendations fell 5 minutes before."""
    found = world(autoscaler(resource("cpu", average="100m")), 10, shared({0: 1000, 15: 800, 30: 600, 45: 400}))
    assert found.run(600) == timeline


@examples(
    f"{DOCUMENTATION}: stabilization window, a scale-down that is held back is shown",
    "",
    ("8 held for 5 minutes, then 2", [(330, 2, DOWN)]),
)
def test_held_back(timeline: Timeline) -> None:
    """While a window holds the target, AbleToScale says so."""
    found = world(autoscaler(cpu(50)), 8, shared({0: 4000, 30: 1000}))
    assert found.run(600) == timeline
    assert found.condition_changes("AbleToScale") == [
        ConditionChange(0, "True", "ReadyForNewScale"),
        ConditionChange(30, "True", "ScaleDownStabilized"),
        ConditionChange(330, "True", "SucceededRescale"),
        ConditionChange(345, "True", "ReadyForNewScale"),
    ]


EXACT: Json = {"tolerance": "0"}
"""No tolerance, so that each value of the queue is the recommendation."""


def minutes(*recommendations: int, every_s: float = 60) -> dict[float, int]:
    """A queue that asks for these counts, one after another."""
    return {index * every_s: count * 1000 for index, count in enumerate(recommendations)}


@examples(
    f"{KEP_853}: stabilization, the down window of 600 s with a sync every minute",
    "",
    ("[10,9,8,9,9,8,9,8,9] and 8 keep 10; without the 10, and with a 7, it is 9", [(600, 9, DOWN)]),
)
def test_kep_853_down_window(timeline: Timeline) -> None:
    """The highest of the last ten recommendations counts, so that 10 stays until it is 10 minutes old."""
    down = rules(("Percent", 100, 15), window=600, tolerance="0")
    scaler = autoscaler(external("queue", average="1"), behavior={"scaleUp": EXACT, "scaleDown": down})
    queue = values(minutes(10, 9, 8, 9, 9, 8, 9, 8, 9, 8, 7))
    found = world(scaler, 10, queue, sync_period_s=60)
    assert found.run(600) == timeline
    assert found.condition_changes("AbleToScale")[-2:] == [
        (60, "True", "ScaleDownStabilized"),
        (600, "True", "SucceededRescale"),
    ]


@examples(
    f"{KEP_853}: stabilization, the up window of 300 s with a sync every minute",
    "every_s",
    ("59 s apart: [2,3,19,10,3] and 4 keep 2; without the 2, and with a 7, it is 3", 59, [(354, 3, QUEUE)]),
    ("60 s apart: the 2 is exactly 300 s old when the 4 comes, and no longer counts", 60, [(300, 3, QUEUE)]),
    differs="The recommendation that is exactly as old as the window still counts. What holds: it does not.",
)
def test_kep_853_up_window(every_s: float, timeline: Timeline) -> None:
    """The lowest recommendation of the window counts, so that a passing peak adds no pods."""
    up = rules(("Percent", 100, 15), window=300, tolerance="0")
    scaler = autoscaler(external("queue", average="1"), behavior={"scaleUp": up, "scaleDown": EXACT})
    queue = values(minutes(2, 3, 19, 10, 3, 4, 7, every_s=every_s))
    assert world(scaler, 2, queue, sync_period_s=every_s).run(6 * every_s) == timeline


@examples(
    f"{KEP_853}: story of a target that must not follow false alarms",
    "load",
    ("a peak of 4 minutes is ignored with an up window of 5", {0: 1000, 60: 4000, 300: 1000}, []),
    ("a load that stays is followed 5 minutes later", {0: 1000, 60: 4000}, [(345, 8, CPU)]),
)
def test_false_alarms(load: Amount, timeline: Timeline) -> None:
    """With an up window a target grows only to what was asked for throughout it."""
    scaler = autoscaler(cpu(50), behavior={"scaleUp": rules(("Percent", 900, 15), window=300)})
    assert world(scaler, 2, shared(load)).run(900) == timeline
