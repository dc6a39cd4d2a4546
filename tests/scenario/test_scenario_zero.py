"""Scaling to zero and back, and pausing a target at zero by hand.

Source of the rules: docs/spec/decision.md 2 (Reconcile in order, steps 7 to 10), 11.6 (Scale to zero), 14 (Test
vectors).
"""

from typing import Any

from scenario_builders import autoscaler, cpu, external, world
from scenario_examples import (
    ABOVE_MAXIMUM,
    BELOW_MINIMUM,
    CPU,
    DESIGN_V1,
    DOCUMENTATION,
    DOWN,
    RULES,
    Timeline,
    examples,
)

from podscaler.core.model.settings import Gates, Settings
from podscaler.testing.decisions import Json, rules
from podscaler.testing.scenario import Scenario
from podscaler.testing.scenario_meters import Amount, failing, shared, values

QUEUE = "external metric queue(nil) above target"
FAST: Json = {"scaleUp": rules(window=0), "scaleDown": rules(window=0)}


def queue(amount: Amount, *, least: int = 0, behavior: Json | None = FAST, **rest: Any) -> Scenario:
    """A target that begins with 2 pods and gets one for each entry of a queue."""
    return world(autoscaler(external("queue", average="1"), least=least, behavior=behavior), 2, values(amount), **rest)


@examples(
    f"{DESIGN_V1}: next steps, replicas starting from 0",
    "",
    ("an empty queue: 0; work in it: 3 again", [(30, 0, DOWN), (90, 3, QUEUE)]),
)
def test_to_zero_and_back(timeline: Timeline) -> None:
    """With minReplicas 0 and an external metric a target goes to zero and wakes by itself."""
    found = queue({0: 2000, 30: 0, 90: 3000})
    assert found.run(120) == timeline
    assert found.condition_changes("ScaledToZero") == [(30, "True", "ScaledToZero"), (90, "False", "NotScaledToZero")]


@examples(
    f"{RULES} 9.3: leaving zero needs a policy in pods",
    "",
    ("100 % of zero are zero: stays at 0 though 3 are wanted", [(30, 0, DOWN)]),
)
def test_percentages_do_not_leave_zero(timeline: Timeline) -> None:
    """With only a percentage for the way up a target at zero stays there, and the limit is shown."""
    found = queue({0: 2000, 30: 0, 90: 3000}, behavior=FAST | {"scaleUp": rules(("Percent", 100, 15), window=0)})
    assert found.run(300) == timeline
    assert found.condition_changes("ScalingLimited")[-1] == (90, "True", "ScaleUpLimit")


@examples(
    f"{RULES} 11.6, 14: minReplicas raised while the target is at zero",
    "behavior",
    ("without behavior: 1, and the event gives no reason", None, [(315, 0, DOWN), (345, 1, "")]),
    ("with behavior: 1, because of the minimum", FAST, [(15, 0, DOWN), (345, 1, BELOW_MINIMUM)]),
)
def test_minimum_raised_at_zero(behavior: Json | None, timeline: Timeline) -> None:
    """A minimum above zero wakes a target that the autoscaler had put to sleep."""
    found = queue({0: 2000, 15: 0}, behavior=behavior)
    found.run(330)
    found.change(autoscaler(external("queue", average="1"), least=1, behavior=behavior))
    assert found.run(345) == timeline
    assert found.last.events[-1].message == f"New size: 1; reason: {timeline[-1][2]}"


@examples(
    f"{RULES} 11.6: minReplicas raised at zero while the metric fails",
    "",
    ("all metrics fail: stays at 0", [(15, 0, DOWN)]),
)
def test_minimum_raised_while_the_metric_fails(timeline: Timeline) -> None:
    """Without any metric a target at zero is not woken even by its minimum."""
    found = queue({0: 2000, 15: 0})
    found.run(30)
    found.change(autoscaler(external("queue", average="1"), least=1, behavior=FAST), failing("gone"))
    assert found.run(90) == timeline


@examples(
    f"{RULES} 11.6: scaled up by hand from a zero that the autoscaler had made",
    "",
    ("0 by the autoscaler, 4 by hand: 2 by the metric, and only then not at zero", [(15, 0, DOWN), (45, 2, DOWN)]),
)
def test_scaled_up_by_hand(timeline: Timeline) -> None:
    """ScaledToZero stays true until the autoscaler itself rescales."""
    found = queue({0: 2000, 15: 0, 30: 4000, 45: 2000})
    found.run(15)
    found.scale_by_hand(4)
    assert found.run(60) == timeline
    assert found.condition_changes("ScaledToZero") == [(15, "True", "ScaledToZero"), (45, "False", "NotScaledToZero")]


@examples(
    f"{DOCUMENTATION}: implicit maintenance mode",
    "least",
    ("0 replicas by hand: paused until 3 by hand, then as before", 1, [(75, 6, CPU)]),
    ("the same with minReplicas 0", 0, [(75, 6, CPU)]),
)
def test_maintenance_mode(least: int, timeline: Timeline) -> None:
    """A target that somebody else sets to zero is left alone until somebody sets it to something else."""
    metrics = (cpu(50), external("queue", average="1")) if least == 0 else (cpu(50),)
    found = world(autoscaler(*metrics, least=least), 3, shared({0: 1500, 15: 3000}), values(0))
    found.run(0)
    found.scale_by_hand(0)
    found.run(60)
    found.scale_by_hand(3)
    assert found.run(90) == timeline
    assert found.condition_changes("ScalingActive") == [
        (0, "True", "ValidMetricFound"),
        (15, "False", "ScalingDisabled"),
        (75, "True", "ValidMetricFound"),
    ]


@examples(
    f"{DOCUMENTATION}: implicit maintenance mode, leaving it by the minimum",
    "",
    ("0 replicas by hand, then minReplicas from 1 to 2: still paused", []),
    differs="Changing the autoscaler's minimum reactivates it as well. What holds: only another number of replicas.",
)
def test_maintenance_mode_and_the_minimum(timeline: Timeline) -> None:
    """Another minimum does not wake a target that was set to zero by hand."""
    found = world(autoscaler(cpu(50)), 3, shared(1500))
    found.run(0)
    found.scale_by_hand(0)
    found.run(15)
    found.change(autoscaler(cpu(50), least=2))
    assert found.run(90) == timeline


@examples(
    f"{RULES} 1.2, 11.6: the gate HPAScaleToZero off",
    "",
    ("down to 0, and paused there", [(30, 0, DOWN)]),
)
def test_without_the_gate(timeline: Timeline) -> None:
    """Without the gate zero always means paused, and the condition is gone."""
    found = queue({0: 2000, 30: 0, 90: 3000}, settings=Settings(gates=Gates(scale_to_zero=False)))
    assert found.run(120) == timeline
    assert (found.condition_changes("ScaledToZero"), found.condition_changes("ScalingActive")[-1]) == (
        [],
        (45, "False", "ScalingDisabled"),
    )


@examples(
    f"{DOCUMENTATION}: migrating to horizontal autoscaling, replicas in the manifest",
    "by_hand",
    (
        "set to 1 of at least 2 by an apply: to the minimum, then by the metrics",
        1,
        [(15, 2, BELOW_MINIMUM), (30, 4, CPU)],
    ),
    ("set to 20 of at most 10: to the maximum, then by the metrics", 20, [(15, 10, ABOVE_MAXIMUM), (30, 4, DOWN)]),
    ("set to 8 between them: back to 4, which is all that was recommended", 8, [(15, 4, DOWN)]),
)
def test_replicas_set_by_others(by_hand: int, timeline: Timeline) -> None:
    """Outside its bounds a target goes straight to the bound; no window holds replicas set by hand."""
    found = world(autoscaler(cpu(50), least=2), 4, shared(2000))
    found.run(0)
    found.scale_by_hand(by_hand)
    assert found.run(330) == timeline
