"""What autoscalers point at, with the same result on both control planes: kinds of targets, and what is wrong there."""

import pytest
from stage import HPAS, Scene, autoscaler, workload
from up_process import Object, eventually

import sampling

pytestmark = pytest.mark.e2e

KINDS = [
    pytest.param("apps/v1", "StatefulSet", "statefulsets", id="StatefulSet"),
    pytest.param("v1", "ReplicationController", "replicationcontrollers", id="ReplicationController"),
    pytest.param("apps/v1", "ReplicaSet", "replicasets", id="ReplicaSet"),
]
NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def reference(version: str, kind: str, name: str = "web") -> Object:
    """A scaleTargetRef."""
    return {"apiVersion": version, "kind": kind, "name": name}


@pytest.mark.parametrize(("version", "kind", "resource"), sampling.one_in(3, KINDS))
def test_a_workload_scales_up_and_down(scene: Scene, version: str, kind: str, resource: str) -> None:
    """Its pods follow."""
    scene.deploy(resource=resource)
    scene.use(300)
    scene.autoscale(target=reference(version, kind), behavior=NO_WINDOW)
    scene.await_replicas(3, resource=resource)
    scene.await_running(3)
    scene.use(200)
    scene.await_replicas(2, resource=resource)
    scene.await_running(2)


def define_gears(scene: Scene) -> str:
    """A custom kind with a scale subresource; the path of its objects in the scene."""
    group = f"{scene.name[-20:].strip('-')}.example.org"
    replicas = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    schema = {"type": "object", "properties": {"spec": replicas, "status": status}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"status": {}, "scale": scale}
    spec = {"group": group, "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"}, "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    scene.api.create(definitions, {"metadata": {"name": f"gears.{group}"}, "spec": spec})
    eventually(lambda: scene.api.request("GET", f"/apis/{group}/v1/gears").status, until=lambda code: code == 200)
    return f"/apis/{group}/v1/namespaces/{scene.name}/gears"


def work_on_gears(scene: Scene, path: str) -> int:
    """What a controller of the kind would do: pass the count to a ReplicaSet, and say it in status."""
    wanted: int = scene.api.get(f"{path}/drive")["spec"]["replicas"]
    scene.api.patch(scene.path("replicasets", "web"), {"spec": {"replicas": wanted}})
    scene.api.patch(f"{path}/drive/status", {"status": {"replicas": wanted, "selector": "app=web"}})
    return wanted


def test_a_custom_resource_scales_up_and_down(scene: Scene) -> None:
    """By its scale subresource, which says how its pods are found."""
    path = define_gears(scene)
    version = path.removeprefix("/apis/").partition("/namespaces")[0]
    scene.deploy(resource="replicasets")
    scene.use(300)
    scene.api.create(
        path, {"apiVersion": version, "kind": "Gear", "metadata": {"name": "drive"}, "spec": {"replicas": 1}}
    )
    work_on_gears(scene, path)
    scene.autoscale(target=reference(version, "Gear", "drive"), behavior=NO_WINDOW)
    eventually(lambda: work_on_gears(scene, path), until=lambda found: found == 3, every_s=0.3)
    scene.await_running(3)
    scene.use(200)
    eventually(lambda: work_on_gears(scene, path), until=lambda found: found == 2, every_s=0.3)


def test_a_target_that_comes_late_is_found(scene: Scene) -> None:
    """Until it is there status says that its scale cannot be got, with the API server's words; then it is scaled."""
    scene.use(300)
    scene.autoscale()
    scene.await_condition("AbleToScale", "False", "FailedGetScale")
    said = [each["message"] for each in scene.hpa()["status"]["conditions"] if each["type"] == "AbleToScale"]
    what = 'the HPA controller was unable to get the target\'s current scale: deployments.apps "web" not found'
    assert said == [what]
    eventually(lambda: ("FailedGetScale", 'deployments.apps "web" not found') in scene.events())
    scene.deploy()
    scene.await_replicas(3)


def test_a_kind_that_nobody_serves_is_told(scene: Scene) -> None:
    """The message is that of a REST mapper that has no such kind."""
    scene.autoscale(target=reference("example.org/v1", "Nothing"))
    scene.await_condition("AbleToScale", "False", "FailedGetScale")
    said = [each["message"] for each in scene.hpa()["status"]["conditions"] if each["type"] == "AbleToScale"]
    assert said == [
        "the HPA controller was unable to get the target's current scale: "
        'no matches for kind "Nothing" in group "example.org"'
    ]


@pytest.mark.slow
def test_two_autoscalers_of_one_target_stand_still(scene: Scene) -> None:
    """Both say that their pods are selected twice, and neither scales; when one goes, the other works."""
    scene.deploy()
    scene.use(300)
    target = reference("apps/v1", "Deployment")
    for name in ("one", "two"):
        scene.api.create(scene.path(HPAS), autoscaler(name=name, target=target, minReplicas=1))
    scene.await_condition("ScalingActive", "False", "AmbiguousSelector", name="two")
    scene.await_condition("ScalingActive", "False", "AmbiguousSelector", name="one")
    scene.api.delete(scene.path(HPAS, "two"))
    scene.await_condition("ScalingActive", "True", "ValidMetricFound", name="one")
    scene.await_replicas(3)


@pytest.mark.slow
def test_pods_that_do_not_run_yet_count_as_idle_on_the_way_up(scene: Scene) -> None:
    """Three pods, of which one is pending: twice the target makes four, not six."""
    scene.deploy(replicas=2)
    spec = workload("web", 3)["spec"]["template"]["spec"]
    del spec["nodeName"]  # nobody binds it, so it stays pending
    scene.api.create(scene.path("pods"), {"metadata": {"name": "idle", "labels": {"app": "web"}}, "spec": spec})
    scene.use(400)
    scene.autoscale()
    scene.await_replicas(4)
