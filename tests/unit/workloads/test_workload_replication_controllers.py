"""ReplicationControllers on a real registry, with a played node, in virtual time."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from workload_world import WorkloadWorld, opened

from podscaler.controlplane.controllers.apps.replicaset import REPLICATION_CONTROLLER, ReplicaSets
from podscaler.testing import workloads as build

CONTROLLERS = "replicationcontrollers"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[WorkloadWorld]:
    """ReplicaSets and ReplicationControllers are kept."""
    kept = ReplicaSets, lambda registry, clock: ReplicaSets(registry, clock, REPLICATION_CONTROLLER)
    async with opened(tmp_path, *kept) as found:
        yield found


async def test_a_replication_controller_gets_its_pods(world: WorkloadWorld) -> None:
    """Its pods carry the labels of its selector; the status has no field that core/v1 does not know."""
    await world.registry.create(CONTROLLERS, build.replication_controller(replicas=3))
    await world.pass_time(1)
    assert world.get(CONTROLLERS, "old")["status"] == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
    }
    owners = [pod["metadata"]["ownerReferences"][0] for pod in world.pods().values()]
    assert [(o["apiVersion"], o["kind"], o["name"]) for o in owners] == [("v1", "ReplicationController", "old")] * 3
    assert sorted(world.events("SuccessfulCreate")) == sorted(f"Created pod: {name}" for name in world.pods())


async def test_a_replication_controller_follows_its_size(world: WorkloadWorld) -> None:
    """Fewer replicas take the pods of the lowest deletion cost."""
    await world.registry.create(CONTROLLERS, build.replication_controller(replicas=3))
    await world.pass_time(1)
    keep = sorted(world.pods())[1]
    note = {"controller.kubernetes.io/pod-deletion-cost": "7"}
    await world.registry.mutate("pods", "default", keep, lambda pod: pod["metadata"].update(annotations=note))
    await world.change(CONTROLLERS, "old", replicas=1)
    await world.pass_time(1)
    assert list(world.pods()) == [keep]


async def test_replica_sets_and_replication_controllers_leave_each_others_pods_alone(world: WorkloadWorld) -> None:
    """Two with the same selector and name own different pods."""
    await world.registry.create(CONTROLLERS, build.replication_controller("web", replicas=1, labels={"app": "web"}))
    await world.registry.create("replicasets.apps", build.replica_set("web", 2, labels={"app": "web"}))
    await world.pass_time(1)
    kinds = sorted(pod["metadata"]["ownerReferences"][0]["kind"] for pod in world.pods().values())
    assert kinds == ["ReplicaSet", "ReplicaSet", "ReplicationController"]


async def test_an_orphan_that_fits_is_adopted(world: WorkloadWorld) -> None:
    """A pod without owner that has the labels counts."""
    await world.registry.create("pods", build.pod("stray", labels={"app": "old"}))
    await world.registry.create(CONTROLLERS, build.replication_controller(replicas=1))
    await world.pass_time(1)
    assert list(world.pods()) == ["stray"]
