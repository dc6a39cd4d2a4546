"""Ours beside the built-in controller on either control plane: it stands by, or compares."""

import pytest
from several_controllers import Controllers
from stage import HPAS, Scene
from the_other import BUILT_IN, the_other
from up_process import eventually

pytestmark = pytest.mark.e2e


def writers(scene: Scene, resource: str, since: str, subresource: str) -> list[str]:
    """Who wrote that part of the objects after that version, once for each write that a second tells from another."""
    writes: dict[tuple[str, str], str] = {}
    for version in scene.api.versions(scene.path(resource), since):
        for entry in version["metadata"].get("managedFields", []):
            if entry.get("subresource") == subresource:
                writes[entry["manager"], entry.get("time", "")] = entry["manager"]
    return list(writes.values())


def now(scene: Scene, resource: str) -> str:
    """The resourceVersion of what there is now."""
    version: str = scene.api.get(scene.path(resource))["metadata"]["resourceVersion"]
    return version


@pytest.mark.slow
def test_another_controller_with_a_longer_period(scene: Scene, controllers: Controllers) -> None:
    """Between the writes of one that syncs every 8 s ours, which syncs every 2 s, writes neither status nor scale."""
    scene.deploy()
    scene.use(100)
    autoscalers, targets = now(scene, HPAS), now(scene, "deployments")
    scene.autoscale()
    with the_other(scene, period_s=8):
        eventually(lambda: writers(scene, HPAS, autoscalers, "status"))
        controllers.start("--other-controller=refuse", "--horizontal-pod-autoscaler-sync-period=2s", readiness=BUILT_IN)
        scene.use(300)
        eventually(lambda: writers(scene, HPAS, autoscalers, "status"), until=lambda found: len(found) >= 3)
        scene.await_replicas(3)
    assert set(writers(scene, HPAS, autoscalers, "status")) == {BUILT_IN}
    assert set(writers(scene, "deployments", targets, "scale")) == {BUILT_IN}


def test_a_difference_upwards_in_the_first_minutes(scene: Scene, controllers: Controllers) -> None:
    """A scale-up that our tolerance forbids is reported long before the five minutes of the window for scaling down."""
    at_once = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 10, "periodSeconds": 1}]}
    scene.deploy()
    scene.use(100)
    scene.autoscale(behavior={"scaleUp": at_once, "scaleDown": {"stabilizationWindowSeconds": 300}})
    with the_other(scene, period_s=4):
        scene.await_condition("ScalingActive", "True", "ValidMetricFound")
        log = controllers.start("--compare", "--horizontal-pod-autoscaler-downscale-stabilization=5m")
        eventually(lambda: controllers.metric('podscaler_comparisons_total{verdict="same"}') > 1)
        scene.use(105)
        differences = 'podscaler_comparison_differences_total{field="desiredReplicas"}'
        eventually(lambda: controllers.metric(differences) > 0)
    said = f"{scene.name}/web differs: the status says desiredReplicas 2, here 1; "
    assert said in log.read_text()
