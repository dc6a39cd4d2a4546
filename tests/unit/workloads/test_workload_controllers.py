"""Deployment and ReplicaSet controllers on a real registry, with a played node, in virtual time."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from podscaler.api import catalog
from podscaler.controlplane.workloads.deployment import Deployments
from podscaler.controlplane.workloads.loop import ControlLoop
from podscaler.controlplane.workloads.replicaset import ReplicaSets
from podscaler.testing import VirtualClock
from podscaler.testing import workloads as build
from podscaler.testing.node import PlayedNode
from podscaler.testing.registry import open_registry

DEPLOYMENTS, REPLICA_SETS, PODS = "deployments.apps", "replicasets.apps", "pods"
STATUS_TURNS = 60


class World:
    """Registry, node and controllers; `pass_time` runs them."""

    def __init__(self, registry, clock):
        self.registry, self.clock = registry, clock
        self.node = PlayedNode(registry, clock)

    async def pass_time(self, span_s=0.0):
        for _ in range(6):
            await self.clock.advance(span_s / 6 + 0.001, turns=STATUS_TURNS)

    async def change(self, resource, name, function):
        return await self.registry.mutate(resource, "default", name, function)

    async def scale(self, replicas, name="web"):
        await self.change(DEPLOYMENTS, name, lambda obj: obj["spec"].update(replicas=replicas))

    async def roll(self, image, name="web"):
        def change(obj):
            obj["spec"]["template"]["spec"]["containers"][0]["image"] = image

        await self.change(DEPLOYMENTS, name, change)

    def pods(self):
        return [pod for pod in self.registry.list(PODS) if "deletionTimestamp" not in pod["metadata"]]

    def sizes(self):
        """Image and (wanted, available) of each ReplicaSet that should have pods or has some."""
        found = {}
        for one in self.registry.list(REPLICA_SETS):
            image = one["spec"]["template"]["spec"]["containers"][0]["image"]
            numbers = one["spec"]["replicas"], one["status"].get("availableReplicas", 0)
            if any(numbers):
                found[image] = numbers
        return found

    def events(self, reason):
        found = [event for event in self.registry.list("events") if event["reason"] == reason]
        return [event["message"] for event in sorted(found, key=lambda one: int(one["metadata"]["resourceVersion"]))]

    def conditions(self, resource=DEPLOYMENTS, name="web"):
        status = self.registry.get(resource, "default", name)["status"]
        return {one["type"]: (one["status"], one["reason"]) for one in status.get("conditions", [])}


@asynccontextmanager
async def running(*coroutines):
    tasks = [asyncio.create_task(one) for one in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def world(tmp_path):
    clock = VirtualClock()
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened:
        world = World(opened.registry, clock)
        loops = [
            ControlLoop(make(opened.registry, clock), opened.registry, clock) for make in (Deployments, ReplicaSets)
        ]
        async with running(world.node.run(), *(loop.run() for loop in loops)):
            yield world


async def test_a_deployment_gets_its_pods(world):
    """From a manifest to ready pods, with the whole status and the event."""
    await world.registry.create(DEPLOYMENTS, build.deployment(replicas=3))
    await world.pass_time(1)
    deployment = world.registry.get(DEPLOYMENTS, "default", "web")
    status = {name: value for name, value in deployment["status"].items() if name != "conditions"}
    assert status == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert world.conditions() == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    replica_set = world.registry.list(REPLICA_SETS)[0]["metadata"]["name"]
    assert world.events("ScalingReplicaSet") == [f"Scaled up replica set {replica_set} from 0 to 3"]
    assert deployment["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
    assert len(world.events("SuccessfulCreate")) == 3
