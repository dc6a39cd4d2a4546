"""The driver of scenario tests: targets, meters, and what is carried from sync to sync."""

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.core.model.observation import Failure, Measurement, PodSamples, Scale, Values
from podscaler.testing import scenario_meters as meters
from podscaler.testing.decisions import external_metric, resource, scaler
from podscaler.testing.scenario import START, ConditionChange, Rescale, Scenario
from podscaler.testing.scenario_meters import Meter, ScenarioMoment
from podscaler.testing.scenario_target import ScenarioTarget


def at(second: float) -> int:
    """The instant of a second."""
    return START + round(second * NANOSECONDS)


def looked(meter: Meter, target: ScenarioTarget, second: float = 0) -> Measurement:
    """What a meter answers at a second."""
    return meter(ScenarioMoment(second, at(second), target))


def usage(answer: Measurement) -> dict[str, int]:
    """Samples in thousandths by pod."""
    assert isinstance(answer, PodSamples)
    return {name: sample.value_milli for name, sample in answer.samples.items()}


def test_new_pods_get_ready_later() -> None:
    """The first pods are long ready, new ones after their delay, and the scale counts all of them."""
    target = ScenarioTarget(1, start=START, ready_after_s=10)
    target.resize(3, at(5))
    assert [len(target.serving(at(second))) for second in (5, 14.9, 15)] == [1, 1, 3]
    assert (target.scale(), [pod.ready for pod in target.facts(at(5))]) == (
        Scale(3, 3, "app=web"),
        ["True", "False", "False"],
    )


def test_the_least_useful_pods_go_first() -> None:
    """A smaller target loses pods that are not ready, then the youngest; names are never used again."""
    target = ScenarioTarget(2, start=START)
    target.resize(3, at(1))
    target.pods[0].ready_at = None
    target.resize(2, at(2))
    target.resize(3, at(3))
    assert [pod.name for pod in target.pods] == ["web-1", "web-2", "web-3"]


def test_shared_load() -> None:
    """A load is spread over pods in service without losing a thousandth; the others are idle, the unknown missing."""
    target = ScenarioTarget(4, start=START)
    target.pods[2].ready_at = None
    target.pods[3].phase = "Failed"
    assert usage(looked(meters.shared(101), target)) == {"web-0": 51, "web-1": 50, "web-2": 0}


@pytest.mark.parametrize(("second", "amount"), [(0, 1), (9.9, 1), (10, 2), (29, 2), (30, 3)])
def test_steps(second: float, amount: int) -> None:
    """An amount that changes is that of the last step; with a lag, of an earlier one."""
    steps: dict[float, int] = {0: 1, 10: 2, 30: 3}
    target = ScenarioTarget(1, start=START)
    assert meters.amount_at(steps, second) == amount
    assert usage(looked(meters.shared(steps, lag_s=5), target, second + 5)) == {"web-0": amount}


def test_other_meters() -> None:
    """Pods alike or one by one, values, failures, and one meter after another."""
    target = ScenarioTarget(2, start=START)
    assert usage(looked(meters.alike(7), target)) == {"web-0": 7, "web-1": 7}
    assert usage(looked(meters.each(5), target)) == {"web-0": 5}
    turns = meters.in_turn({0: meters.failing("gone"), 15: meters.values(1, {0: 2, 15: 3})})
    assert [looked(turns, target, second) for second in (0, 15)] == [Failure("gone"), Values((1, 3))]


def test_nobody_reports() -> None:
    """Without a pod that reports the answer is empty."""
    target = ScenarioTarget(1, start=START)
    target.pods[0].reports = False
    assert looked(meters.alike(1), target) == PodSamples({}, is_empty=True)


def test_syncs_in_virtual_time() -> None:
    """The timeline has every change; a later run continues where the last one ended."""
    world = Scenario(
        scaler(resource(average="500m")), ScenarioTarget(1, start=START), meters.shared({0: 500, 20: 1500})
    )
    first = world.run(29)
    assert (first, world.run(30), world.run(60)) == ([], *[[Rescale(30, 3, "cpu resource above target")]] * 2)
    assert ([sync.at_s for sync in world.syncs], world.at_s, world.last.replicas) == ([0, 15, 30, 45, 60], 60, None)
    assert [event.reason for event in world.events] == ["SuccessfulRescale"]


def test_hands_and_edits() -> None:
    """Somebody else may resize the target or edit the autoscaler between syncs."""
    metric = external_metric(average="1")
    world = Scenario(scaler(metric), ScenarioTarget(3, start=START), meters.values(3000))
    world.run(0)
    world.scale_by_hand(0)
    world.run(15)
    world.change(scaler(metric, least=2), meters.failing("gone"))
    world.scale_by_hand(3)
    world.run(30)
    assert world.condition_changes("ScalingActive") == [
        ConditionChange(0, "True", "ValidMetricFound"),
        ConditionChange(15, "False", "ScalingDisabled"),
        ConditionChange(30, "False", "FailedGetExternalMetric"),
    ]
    assert (world.status.observed_generation, world.timeline) == (2, [])
