"""spec.behavior at work, with the same result on both control planes: policies, selection, windows, tolerance."""

import pytest
from stage import HPAS, Scene
from up_process import Object

import sampling

pytestmark = pytest.mark.e2e

HOUR_S = 1800
"""The longest period that a policy may have: its budget is not renewed within a test."""


def rules(*policies: tuple[str, int], **more: object) -> Object:
    """Scaling rules of policies (type, value) that last longer than a test."""
    listed = [{"type": type_, "value": value, "periodSeconds": HOUR_S} for type_, value in policies]
    return ({"policies": listed} if listed else {}) | more


UP = [
    pytest.param(rules(("Pods", 2)), 3, 5, id="pods"),
    pytest.param(rules(("Percent", 100)), 3, 6, id="percent"),
    pytest.param(rules(("Pods", 1), ("Percent", 100)), 3, 6, id="the greater by default"),
    pytest.param(rules(("Pods", 1), ("Percent", 100), selectPolicy="Min"), 3, 4, id="the lesser"),
]
LONG_WINDOW = {"stabilizationWindowSeconds": 3600}
SHORT_WINDOW = {"stabilizationWindowSeconds": 2}
QUEUE = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "100m"}},
}
"""A tenth for each pod that is asked for: how many of them run, or are ending, makes no difference."""
DOWN = [
    pytest.param(rules(("Pods", 2)), 6, 4, id="pods"),
    pytest.param(rules(("Percent", 50)), 6, 3, id="percent"),
    pytest.param(rules(("Pods", 1), ("Percent", 50)), 6, 3, id="the greater by default"),
    pytest.param(rules(("Pods", 1), ("Percent", 50), selectPolicy="Min"), 6, 5, id="the lesser"),
]


@pytest.mark.parametrize(("limits", "before", "after"), sampling.one_in(4, UP))
def test_policies_limit_the_way_up(scene: Scene, limits: Object, before: int, after: int) -> None:
    """The budget is used once, then status says that it limits."""
    scene.deploy(replicas=before)
    scene.use(1000)
    scene.autoscale(behavior={"scaleUp": limits})
    scene.await_replicas(after)
    scene.await_condition("ScalingLimited", "True", "ScaleUpLimit")
    scene.sync_times(2)
    assert scene.replicas() == after


@pytest.mark.parametrize(("limits", "before", "after"), sampling.one_in(4, DOWN))
def test_policies_limit_the_way_down(scene: Scene, limits: Object, before: int, after: int) -> None:
    """The budget is used once, then status says that it limits."""
    scene.deploy(replicas=before)
    scene.use(100)
    scene.autoscale(behavior={"scaleDown": limits | {"stabilizationWindowSeconds": 0}})
    scene.await_replicas(after)
    scene.await_condition("ScalingLimited", "True", "ScaleDownLimit")
    scene.sync_times(2)
    assert scene.replicas() == after


@pytest.mark.parametrize(
    ("direction", "milli", "others"),
    sampling.one_in(2, [pytest.param("scaleUp", 600, 100, id="up"), pytest.param("scaleDown", 100, 600, id="down")]),
)
def test_a_disabled_direction_stays_shut(scene: Scene, direction: str, milli: int, others: int) -> None:
    """The count does not go there, and still goes the other way."""
    scene.deploy(replicas=3)
    scene.use(milli)
    scene.autoscale(behavior={direction: {"selectPolicy": "Disabled"}})
    scene.await_condition("ScalingLimited", "True", f"S{direction[1:]}Limit")
    scene.sync_times(2)
    assert scene.replicas() == 3
    scene.use(others)
    scene.await_replicas(others // 100)


def test_a_window_holds_back_the_way_down(scene: Scene) -> None:
    """The highest recommendation within the window counts; when that is too old for the window the count falls."""
    scene.deploy(replicas=4)
    scene.use(400)
    scene.autoscale(behavior={"scaleDown": LONG_WINDOW})
    scene.await_condition("ScalingActive", "True", "ValidMetricFound")
    scene.use(100)
    scene.await_condition("AbleToScale", "True", "ScaleDownStabilized")
    scene.sync_times(2)
    assert scene.replicas() == 4
    scene.api.patch(scene.path(HPAS, "web"), {"spec": {"behavior": {"scaleDown": SHORT_WINDOW}}})
    scene.await_replicas(1)


@pytest.mark.slow
def test_a_window_holds_back_the_way_up(scene: Scene) -> None:
    """The lowest recommendation within the window counts, until it is too old for it."""
    scene.deploy()
    scene.use(100)
    scene.autoscale(behavior={"scaleUp": LONG_WINDOW})
    scene.await_condition("ScalingActive", "True", "ValidMetricFound")
    scene.use(400)
    scene.await_condition("AbleToScale", "True", "ScaleUpStabilized")
    scene.sync_times(2)
    assert scene.replicas() == 1
    scene.api.patch(scene.path(HPAS, "web"), {"spec": {"behavior": {"scaleUp": SHORT_WINDOW}}})
    scene.await_replicas(4)


@pytest.mark.slow
def test_two_windows_ignore_what_does_not_last(scene: Scene) -> None:
    """With a window in each direction, a spike and a dip that are shorter than the windows change nothing."""
    scene.deploy(replicas=3)
    scene.use(300)
    scene.autoscale(behavior={"scaleUp": LONG_WINDOW, "scaleDown": LONG_WINDOW})
    scene.await_condition("ScalingActive", "True", "ValidMetricFound")
    scene.use(900)
    scene.await_condition("AbleToScale", "True", "ScaleUpStabilized")
    scene.use(100)
    scene.await_condition("AbleToScale", "True", "ScaleDownStabilized")
    assert scene.replicas() == 3


@pytest.mark.slow
def test_tolerance_of_each_direction(scene: Scene) -> None:
    """Of a half upwards: four tenths too much change nothing, six tenths do; downwards a tenth is enough."""
    scene.deploy(replicas=5)
    scene.value("queue", 700)
    scene.autoscale(QUEUE, behavior={"scaleUp": {"tolerance": "500m"}, "scaleDown": {"stabilizationWindowSeconds": 0}})
    scene.await_condition("ScalingLimited", "False", "DesiredWithinRange")
    scene.sync_times(2)
    assert scene.replicas() == 5
    scene.value("queue", 800)
    scene.await_settled(8)  # what is within the tolerance leaves the count at status.replicas, which follows
    scene.value("queue", 600)
    scene.await_replicas(6)
    scene.sync_times(2)
    assert scene.replicas() == 6


@pytest.mark.slow
def test_what_is_within_the_tolerance_changes_nothing(scene: Scene) -> None:
    """A tenth too much or too little is on target."""
    scene.deploy(replicas=5)
    scene.use(545)
    scene.autoscale()
    scene.await_condition("ScalingActive", "True", "ValidMetricFound")
    scene.use(455)
    scene.sync_times(2)
    assert scene.replicas() == 5
    assert scene.condition("AbleToScale") == ("True", "ReadyForNewScale")


def test_an_edited_behavior_counts_from_the_next_sync(scene: Scene) -> None:
    """A direction that was disabled opens when the field goes."""
    scene.deploy()
    scene.use(300)
    scene.autoscale(behavior={"scaleUp": {"selectPolicy": "Disabled"}})
    scene.await_condition("ScalingLimited", "True", "ScaleUpLimit")
    scene.api.patch(scene.path(HPAS, "web"), {"spec": {"behavior": None}})
    scene.await_replicas(3)
