"""Every type of metric scales up and down, with the same result on both control planes."""

from collections.abc import Callable

import pytest
from stage import HPAS, Scene
from up_process import Object, eventually

import sampling

pytestmark = pytest.mark.e2e

NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}
Load = Callable[[Scene, int], None]


def resource(**target: object) -> Object:
    """CPU of whole pods."""
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def container(**target: object) -> Object:
    """CPU of the sidecar."""
    return {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "sidecar", "target": target}}


def of_pods(**target: object) -> Object:
    """A metric that each pod has."""
    return {"type": "Pods", "pods": {"metric": {"name": "load"}, "target": target}}


def of_object(**target: object) -> Object:
    """A metric of a Service."""
    described = {"apiVersion": "v1", "kind": "Service", "name": "shop"}
    return {"type": "Object", "object": {"describedObject": described, "metric": {"name": "load"}, "target": target}}


def external(**target: object) -> Object:
    """A metric of something elsewhere."""
    return {"type": "External", "external": {"metric": {"name": "load"}, "target": target}}


def by_use(scene: Scene, milli: int) -> None:
    """The load as CPU of the first container."""
    scene.use(milli)


def by_sidecar(scene: Scene, milli: int) -> None:
    """The load as CPU of the sidecar."""
    scene.use(milli, container="sidecar")


def by_value(scene: Scene, milli: int) -> None:
    """The load as a metric's value."""
    scene.value("load", milli)


def by_shared_value(scene: Scene, milli: int) -> None:
    """The load as a metric whose value falls when there are more pods."""
    scene.value("load", milli, shared_by="web")


CASES = [
    pytest.param(resource(type="Utilization", averageUtilization=50), by_use, id="resource-utilization"),
    pytest.param(resource(type="AverageValue", averageValue="100m"), by_use, id="resource-average"),
    pytest.param(container(type="Utilization", averageUtilization=100), by_sidecar, id="container-utilization"),
    pytest.param(container(type="AverageValue", averageValue="100m"), by_sidecar, id="container-average"),
    pytest.param(of_pods(type="AverageValue", averageValue="100m"), by_value, id="pods-average"),
    pytest.param(of_object(type="Value", value="100m"), by_shared_value, id="object-value"),
    pytest.param(of_object(type="AverageValue", averageValue="100m"), by_value, id="object-average"),
    pytest.param(external(type="Value", value="100m"), by_shared_value, id="external-value"),
    pytest.param(external(type="AverageValue", averageValue="100m"), by_value, id="external-average"),
]


@pytest.mark.parametrize(("metric", "load"), sampling.one_in(4, CASES))
def test_a_metric_scales_up_and_down(scene: Scene, metric: Object, load: Load) -> None:
    """Four times the target makes four replicas, twice the target brings them down to two."""
    scene.deploy()
    load(scene, 400)
    scene.autoscale(metric, behavior=NO_WINDOW)
    scene.await_replicas(4)
    scene.await_running(4)
    load(scene, 200)
    scene.await_replicas(2)
    eventually(lambda: conditions(scene), until=lambda found: found == ACTIVE)
    eventually(scene.counts, until=lambda found: found == (2, 2))
    assert [each["type"] for each in scene.status()["currentMetrics"]] == [metric["type"]]
    eventually(lambda: sizes(scene), until=lambda found: found >= {"New size: 2", "New size: 4"})


def sizes(scene: Scene) -> set[str]:
    """Those that events have told of."""
    return {message.partition(";")[0] for reason, message in scene.events() if reason == "SuccessfulRescale"}


ACTIVE = {
    "AbleToScale": ("True", "ReadyForNewScale"),
    "ScalingActive": ("True", "ValidMetricFound"),
    "ScalingLimited": ("False", "DesiredWithinRange"),
    "ScaledToZero": ("False", "NotScaledToZero"),
}


def conditions(scene: Scene) -> dict[str, tuple[str, str]]:
    """Status and reason of each."""
    return {each["type"]: (each["status"], each["reason"]) for each in scene.status().get("conditions", [])}


def test_the_highest_of_several_metrics_wins(scene: Scene) -> None:
    """With CPU asking for two pods and a queue for three there are three; when the queue is empty, two."""
    scene.deploy()
    scene.use(200)
    scene.value("load", 300)
    scene.autoscale(
        resource(type="Utilization", averageUtilization=50), external(type="AverageValue", averageValue="100m")
    )
    scene.await_replicas(3)
    scene.value("load", 0)
    scene.await_replicas(2)


@pytest.mark.slow
def test_a_missing_metric_is_no_reason_to_scale_down(scene: Scene) -> None:
    """Where one of two metrics is not there, the other may only raise the count; the events say what is missing."""
    scene.deploy(replicas=3)
    scene.use(100)
    scene.autoscale(
        resource(type="Utilization", averageUtilization=50), external(type="AverageValue", averageValue="100m")
    )
    eventually(lambda: [each for each, _ in scene.events()], until=lambda found: "FailedGetExternalMetric" in found)
    scene.sync_times(2)
    assert scene.replicas() == 3
    scene.use(500)
    scene.await_replicas(5)


def test_zero_and_back(scene: Scene) -> None:
    """An empty queue leaves no pods, which a condition says; work in it brings them back."""
    scene.deploy(replicas=2)
    scene.value("load", 0)
    scene.autoscale(external(type="AverageValue", averageValue="100m"), minReplicas=0)
    scene.await_replicas(0)
    scene.await_running(0)
    scene.await_condition("ScaledToZero", "True", "ScaledToZero")
    scene.value("load", 300)
    scene.await_replicas(3)
    eventually(lambda: scene.condition("ScaledToZero")[0], until=lambda found: found == "False")


@pytest.mark.slow
def test_zero_replicas_switch_autoscaling_off(scene: Scene) -> None:
    """A target that somebody scaled to zero stays there while minReplicas is one, and goes on from one."""
    scene.deploy()
    scene.use(300)
    scene.autoscale()
    scene.await_replicas(3)
    scene.api.patch(scene.path("deployments", "web") + "/scale", {"spec": {"replicas": 0}})
    scene.await_condition("ScalingActive", "False", "ScalingDisabled")
    scene.api.patch(scene.path("deployments", "web") + "/scale", {"spec": {"replicas": 1}})
    scene.await_replicas(3)


@pytest.mark.slow
def test_an_edit_counts_at_once(scene: Scene) -> None:
    """A higher minReplicas and a lower maxReplicas are obeyed, and status says that they limit."""
    scene.deploy()
    scene.use(400)
    scene.autoscale()
    scene.await_replicas(4)
    scene.api.patch(scene.path(HPAS, "web"), {"spec": {"minReplicas": 6}})
    scene.await_replicas(6)
    scene.await_condition("ScalingLimited", "True", "TooFewReplicas")
    scene.api.patch(scene.path(HPAS, "web"), {"spec": {"minReplicas": 1, "maxReplicas": 3}})
    scene.await_replicas(3)
    scene.await_condition("ScalingLimited", "True", "TooManyReplicas")
