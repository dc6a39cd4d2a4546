"""The real kube-controller-manager v1.37 takes the place of our controllers, one by one and all together."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controller_manager import HORIZONTAL, WORKLOADS, controller_manager
from up_process import Object, Up, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.real]

AS_IN_A_CLUSTER = ("--leader-elect=true", "--use-service-account-credentials=true")
METRICS = ("--without-autoscaler", "--metric-resolution=2s")


def log_of(plane: Up) -> Path:
    """Where the controller manager of a plane writes its log."""
    return plane.data_dir.parent / "controllers.log"


@pytest.fixture(scope="module")
def autoscaled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Our plane with the real HorizontalPodAutoscaler controller in place of ours."""
    plane = Up(tmp_path_factory.mktemp("autoscaled") / "data", METRICS).start()
    try:
        with controller_manager(plane.kubeconfig, *HORIZONTAL, log=log_of(plane)):
            yield plane
    finally:
        assert plane.stop() == 0, plane.log.read_text()


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Our plane without controllers of workloads; the real ones work on it, each with the rights of its own account."""
    flags = (*METRICS, "--without-workload-controllers")
    plane = Up(tmp_path_factory.mktemp("worked") / "data", flags).start()
    try:
        with controller_manager(plane.kubeconfig, *WORKLOADS, log=log_of(plane), flags=AS_IN_A_CLUSTER):
            yield plane
    finally:
        assert plane.stop() == 0, plane.log.read_text()


@pytest.fixture
def namespace(worked: Up, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    worked.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def workload(kind: str, name: str, replicas: int, **spec: Any) -> Object:
    """A Deployment or its like, of pods that wait in a process of their own."""
    labels = {"app": name}
    container = {"name": "wait", "image": "registry.k8s.io/pause"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
    }
    is_old = kind == "ReplicationController"
    selector = labels if is_old else {"matchLabels": labels}
    return {
        "apiVersion": "v1" if is_old else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template, **spec},
    }


def core(namespace: str) -> str:
    """The path of the namespace's objects of the core group."""
    return f"/api/v1/namespaces/{namespace}"


def apps(namespace: str) -> str:
    """The path of the namespace's objects of the group apps."""
    return f"/apis/apps/v1/namespaces/{namespace}"


def pods(up: Up, namespace: str) -> dict[str, str]:
    """Name and uid of the namespace's pods that are ready."""
    found = up.get(f"{core(namespace)}/pods")["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found if is_ready(pod)}


def is_ready(pod: Object) -> bool:
    """Whether it is, and stays."""
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def all_gone(up: Up, path: str) -> None:
    """Wait until the list is empty."""
    eventually(lambda: up.get(path)["items"], until=lambda items: items == [])


def test_the_real_autoscaler_scales_a_workload(autoscaled: Up) -> None:
    """It reads our metrics, scales up and down through our scale subresource, and says so in status and events."""
    deployment = workload("Deployment", "served", 1)
    deployment["metadata"]["annotations"] = {"podscaler.dev/simulated-total-cpu": "400m"}
    deployment["spec"]["template"]["spec"] = {
        "runtimeClassName": "simulated",
        "containers": [{"name": "app", "image": "any", "resources": {"requests": {"cpu": "100m"}}}],
    }
    autoscaled.create(f"{apps('default')}/deployments", deployment)
    autoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    target = {"type": "Utilization", "averageUtilization": 100}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "served"},
        "maxReplicas": 10,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }
    autoscaled.create(autoscalers, {"metadata": {"name": "served"}, "spec": spec})

    def has_settled(obj: Object, replicas: int) -> bool:
        status = obj.get("status", {})
        return (status.get("currentReplicas"), status.get("desiredReplicas")) == (replicas, replicas)

    path = f"{autoscalers}/served"
    eventually(lambda: autoscaled.get(path), until=lambda obj: has_settled(obj, 4))
    quieter = {"metadata": {"annotations": {"podscaler.dev/simulated-total-cpu": "200m"}}}
    autoscaled.patch(f"{apps('default')}/deployments/served", quieter)
    eventually(lambda: autoscaled.get(path), until=lambda obj: has_settled(obj, 2))
    reasons = [reason for name, reason, _ in autoscaled.events() if name == "served"]
    assert reasons.count("SuccessfulRescale") == 2
    conditions = {each["type"]: each["status"] for each in autoscaled.get(path)["status"]["conditions"]}
    assert (conditions["AbleToScale"], conditions["ScalingActive"]) == ("True", "True")


def test_a_deployment_rolls_out(worked: Up, namespace: str) -> None:
    """Its pods are created, bound and replaced; a change of replicas is followed."""
    path = f"{apps(namespace)}/deployments/web"
    worked.create(f"{apps(namespace)}/deployments", workload("Deployment", "web", 3))
    first = eventually(lambda: pods(worked, namespace), until=lambda found: len(found) == 3)
    worked.patch(path, {"spec": {"template": {"metadata": {"annotations": {"revision": "2"}}}}})
    second = eventually(
        lambda: pods(worked, namespace), until=lambda found: len(found) == 3 and not first.keys() & found.keys()
    )
    worked.patch(f"{path}/scale", {"spec": {"replicas": 1}})
    last = eventually(lambda: pods(worked, namespace), until=lambda found: len(found) == 1)
    assert last.items() <= second.items()
    wanted = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "observedGeneration": 3}
    eventually(lambda: worked.get(path)["status"], until=lambda status: wanted.items() <= status.items())
    revision = worked.get(path)["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
    assert revision == "2"


def test_a_stateful_set_keeps_names(worked: Up, namespace: str) -> None:
    """Pods have ordinals; the highest goes first; one that is deleted comes back under its name."""
    path = f"{apps(namespace)}/statefulsets"
    worked.create(path, workload("StatefulSet", "db", 3, serviceName="db"))
    first = eventually(lambda: pods(worked, namespace), until=lambda found: len(found) == 3)
    assert sorted(first) == ["db-0", "db-1", "db-2"]
    worked.patch(f"{path}/db/scale", {"spec": {"replicas": 2}})
    eventually(lambda: sorted(pods(worked, namespace)), until=lambda names: names == ["db-0", "db-1"])
    worked.delete(f"{core(namespace)}/pods/db-0")
    again = eventually(
        lambda: pods(worked, namespace), until=lambda found: found.get("db-0", first["db-0"]) != first["db-0"]
    )
    assert again["db-1"] == first["db-1"]


def test_a_replication_controller_counts_its_pods(worked: Up, namespace: str) -> None:
    """It replaces what is missing; orphaned pods stay."""
    path = f"{core(namespace)}/replicationcontrollers"
    worked.create(path, workload("ReplicationController", "old", 2))
    first = eventually(lambda: pods(worked, namespace), until=lambda found: len(found) == 2)
    worked.delete(f"{core(namespace)}/pods/{min(first)}")
    second = eventually(
        lambda: pods(worked, namespace), until=lambda found: len(found) == 2 and min(first) not in found
    )
    worked.delete(f"{path}/old", {"propagationPolicy": "Orphan"})
    all_gone(worked, path)
    assert pods(worked, namespace) == second
    owners = [pod["metadata"].get("ownerReferences") for pod in worked.get(f"{core(namespace)}/pods")["items"]]
    assert owners == [None, None]


def test_a_daemon_set_has_a_pod_on_the_node(worked: Up, namespace: str) -> None:
    """Its pod comes, is replaced when the template changes, and goes with it."""
    path = f"{apps(namespace)}/daemonsets"
    daemon = workload("DaemonSet", "agent", 0)
    del daemon["spec"]["replicas"]
    worked.create(path, daemon)
    first = eventually(lambda: pods(worked, namespace), until=lambda found: len(found) == 1)
    worked.patch(f"{path}/agent", {"spec": {"template": {"metadata": {"annotations": {"revision": "2"}}}}})
    eventually(lambda: pods(worked, namespace), until=lambda found: len(found) == 1 and not first.keys() & found.keys())
    worked.delete(f"{path}/agent")
    all_gone(worked, f"{core(namespace)}/pods")


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_dependents_are_collected(worked: Up, namespace: str, policy: str) -> None:
    """With the Deployment go its ReplicaSet and its pods; in the foreground, before it."""
    owned = [f"{apps(namespace)}/replicasets", f"{core(namespace)}/pods"]
    worked.create(f"{apps(namespace)}/deployments", workload("Deployment", "web", 2))
    eventually(lambda: pods(worked, namespace), until=lambda found: len(found) == 2)
    worked.delete(f"{apps(namespace)}/deployments/web", {"propagationPolicy": policy})
    if policy == "Foreground":
        all_gone(worked, f"{apps(namespace)}/deployments")
        assert [worked.get(path)["items"] for path in owned] == [[], []]
    for path in owned:
        all_gone(worked, path)


def test_a_namespace_goes_with_all_that_is_in_it(worked: Up, namespace: str) -> None:
    """Objects of every kind are removed before the namespace, whose name is free again then."""
    worked.create(f"{apps(namespace)}/deployments", workload("Deployment", "web", 2))
    worked.create(f"{core(namespace)}/configmaps", {"metadata": {"name": "kept"}, "data": {"a": "b"}})
    eventually(lambda: pods(worked, namespace), until=lambda found: len(found) == 2)
    worked.delete(f"/api/v1/namespaces/{namespace}")
    eventually(lambda: worked.find(f"/api/v1/namespaces/{namespace}"), until=lambda found: found is None)
    worked.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    assert worked.get(f"{core(namespace)}/pods")["items"] == []
    assert worked.find(f"{core(namespace)}/configmaps/kept") is None


def test_dependents_of_custom_objects_are_collected(worked: Up, namespace: str) -> None:
    """The garbage collector finds a new kind by discovery, follows it, and removes what belonged to its objects."""
    group = f"{namespace[-20:].strip('-')}.example.org"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "owners", "singular": "owner", "kind": "Owner"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    definition = {"metadata": {"name": f"owners.{group}"}, "spec": spec}
    worked.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    path = f"/apis/{group}/v1/namespaces/{namespace}/owners"
    eventually(lambda: worked.find(path), until=lambda found: found is not None)
    body = {"apiVersion": f"{group}/v1", "kind": "Owner", "metadata": {"name": "one"}}
    owner = worked.create(path, body)["metadata"]
    reference = {"apiVersion": f"{group}/v1", "kind": "Owner", "name": "one", "uid": owner["uid"]}
    owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
    worked.create(f"{core(namespace)}/configmaps", owned)
    worked.delete(f"{path}/one")
    found = f"{core(namespace)}/configmaps/owned"
    eventually(lambda: worked.find(found), until=lambda obj: obj is None)
    worked.create(path, body)
    worked.delete(f"/api/v1/namespaces/{namespace}")
    eventually(lambda: worked.find(f"/api/v1/namespaces/{namespace}"), until=lambda obj: obj is None)
    assert worked.get(path)["items"] == []


def test_the_leader_holds_a_lease(worked: Up) -> None:
    """The controllers that work are those of the holder, who renews the Lease."""
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
    lease = eventually(lambda: worked.find(path))["spec"]
    assert lease["holderIdentity"]
    renewed = eventually(lambda: worked.get(path)["spec"], until=lambda spec: spec["renewTime"] != lease["renewTime"])
    assert renewed["acquireTime"] == lease["acquireTime"]


def test_nothing_that_is_listed_breaks_an_informer(worked: Up) -> None:
    """Every kind of discovery can be listed and watched: the garbage collector follows them all without complaint."""
    complaints = [
        line for line in log_of(worked).read_text().splitlines() if "Failed to watch" in line or "falling back" in line
    ]
    assert complaints == []
