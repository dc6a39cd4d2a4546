"""Deployment and ReplicaSet controllers on a real registry, with a played node, in virtual time."""

import asyncio
import copy
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from podscaler.api.kinds import catalog
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.apps.replicaset import ReplicaSets
from podscaler.controlplane.controllers.deployment.deployment import Deployments
from podscaler.controlplane.controllers.framework import templates
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.testing import VirtualClock
from podscaler.testing import workloads as build
from podscaler.testing.node import PlayedNode
from podscaler.testing.registry import open_registry

DEPLOYMENTS, REPLICA_SETS, PODS = "deployments.apps", "replicasets.apps", "pods"
STATUS_TURNS = 60


class Refusing:
    """The registry, which refuses to create what the test says, and counts."""

    def __init__(self, registry):
        self._registry = registry
        self.refusals, self.refused, self.writes = {}, 0, Counter()

    def __getattr__(self, name):
        return getattr(self._registry, name)

    async def create(self, resource, obj):
        if resource in self.refusals:
            self.refused += 1
            raise self.refusals[resource]
        return await self._registry.create(resource, obj)

    async def mutate(self, resource, namespace, name, change, *, subresource=""):
        self.writes[resource] += 1
        return await self._registry.mutate(resource, namespace, name, change, subresource=subresource)


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
        world = World(Refusing(opened.registry), clock)
        loops = [ControlLoop(make(world.registry, clock), world.registry, clock) for make in (Deployments, ReplicaSets)]
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


async def test_a_new_image_is_rolled_out_within_the_bounds(world):
    """maxSurge 1, maxUnavailable 0: never more than 4 pods, never fewer than 3 available."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await world.registry.create(DEPLOYMENTS, build.deployment(replicas=3, strategy=strategy))
    await world.pass_time(1)
    world.node.startup_s = 2.0
    await world.roll("example.com/app:2")
    seen = []
    for _ in range(40):
        await world.pass_time(0.5)
        ready = sum(
            pod["status"]["conditions"][0]["status"] == "True" for pod in world.pods() if "conditions" in pod["status"]
        )
        seen.append((len(world.pods()), ready))
    assert max(total for total, _ in seen) == 4
    assert min(ready for _, ready in seen) == 3
    assert world.sizes() == {"example.com/app:2": (3, 3)}
    assert world.conditions()["Progressing"] == ("True", "NewReplicaSetAvailable")
    annotations = world.registry.get(DEPLOYMENTS, "default", "web")["metadata"]["annotations"]
    assert annotations["deployment.kubernetes.io/revision"] == "2"


async def test_an_autoscaler_in_the_middle_of_a_rollout(world):
    """Scaled from 4 to 8 while the new template cannot become ready: shared, bounded, and at last rolled out."""
    await world.registry.create(DEPLOYMENTS, build.deployment(replicas=4))
    await world.pass_time(1)
    world.node.startup_s = None
    await world.roll("example.com/app:2")
    await world.pass_time(1)
    assert world.sizes() == {"example.com/app": (3, 3), "example.com/app:2": (2, 0)}
    await world.scale(8)
    world.node.startup_s = 0.0
    await world.pass_time(2)
    assert world.sizes()["example.com/app:2"][0] <= 8
    for pod in world.pods():
        await ready(world, pod)
    await world.pass_time(5)
    assert world.sizes() == {"example.com/app:2": (8, 8)}


async def ready(world, pod):
    """What the node would say of a pod that has become ready."""

    def change(newest):
        newest["status"]["conditions"] = [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        ]

    await world.registry.mutate(PODS, "default", pod["metadata"]["name"], change, subresource="status")


async def test_undo_takes_the_old_replica_set_up_again(world):
    """The same template is the same ReplicaSet, with a new revision: nothing is created."""
    await world.registry.create(DEPLOYMENTS, build.deployment(replicas=2))
    await world.pass_time(1)
    await world.roll("example.com/app:2")
    await world.pass_time(2)
    await world.roll("example.com/app")
    await world.pass_time(2)
    assert world.sizes() == {"example.com/app": (2, 2)}
    revisions = {
        one["spec"]["template"]["spec"]["containers"][0]["image"]: one["metadata"]["annotations"][
            "deployment.kubernetes.io/revision"
        ]
        for one in world.registry.list(REPLICA_SETS)
    }
    assert revisions == {"example.com/app": "3", "example.com/app:2": "2"}


async def test_recreate_never_runs_two_templates(world):
    """The new pods start when the last old one has stopped."""
    await world.registry.create(DEPLOYMENTS, build.deployment(replicas=2, strategy={"type": "Recreate"}))
    await world.pass_time(1)
    world.node.stop_s = 3.0
    await world.roll("example.com/app:2")
    await world.pass_time(1)
    assert (world.pods(), len(world.registry.list(PODS))) == ([], 2)
    await world.pass_time(4)
    assert world.sizes() == {"example.com/app:2": (2, 2)}


async def test_pause_and_resume(world):
    """A paused Deployment is scaled but not rolled."""
    await world.registry.create(DEPLOYMENTS, build.deployment(replicas=2))
    await world.pass_time(1)
    await world.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].update(paused=True))
    await world.roll("example.com/app:2")
    await world.scale(3)
    await world.pass_time(2)
    assert world.sizes() == {"example.com/app": (3, 3)}
    assert world.conditions()["Progressing"] == ("Unknown", "DeploymentPaused")
    await world.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].update(paused=False))
    await world.pass_time(2)
    assert world.sizes() == {"example.com/app:2": (3, 3)}
    assert world.conditions()["Progressing"] == ("True", "NewReplicaSetAvailable")


async def test_a_rollout_that_is_stuck_is_told_at_its_deadline(world):
    """progressDeadlineSeconds pass without any event."""
    world.node.startup_s = None
    await world.registry.create(DEPLOYMENTS, build.deployment(replicas=1, progressDeadlineSeconds=30))
    await world.pass_time(29)
    assert world.conditions()["Progressing"] == ("True", "ReplicaSetUpdated")
    await world.pass_time(4)
    assert world.conditions()["Progressing"] == ("False", "ProgressDeadlineExceeded")


async def test_a_name_that_is_taken_is_a_collision(world):
    """A ReplicaSet of somebody else has the name that the hash gives: another hash is taken."""
    deployment = build.deployment()
    other = build.replica_set(planned_name(deployment), 0, labels={"app": "other"})
    await world.registry.create(REPLICA_SETS, other)
    await world.registry.create(DEPLOYMENTS, deployment)
    await world.pass_time(2)
    assert world.registry.get(DEPLOYMENTS, "default", "web")["status"]["collisionCount"] == 1
    assert world.sizes() == {"example.com/app": (1, 1)}


def planned_name(deployment):
    """The name of the first ReplicaSet, for the template as the API server stores it."""
    stored = copy.deepcopy(deployment)
    catalog.get(DEPLOYMENTS).versions[0].default(stored)
    return f"web-{templates.template_hash(stored['spec']['template'])}"


async def test_a_replica_set_that_cannot_be_made_is_told(world):
    """The API server refuses it: event and condition say what it said."""
    world.registry.refusals["replicasets.apps"] = StatusError("quota exceeded", code=403, reason="Forbidden")
    await world.registry.create(DEPLOYMENTS, build.deployment())
    await world.pass_time(1)
    assert world.conditions()["Progressing"] == ("False", "ReplicaSetCreateError")
    world.registry.refusals.clear()
    await world.pass_time(2)
    assert world.conditions()["Progressing"] == ("True", "NewReplicaSetAvailable")


async def test_lost_pods_are_replaced(world):
    """Deleted, failed and succeeded ones: there are always as many active pods as wanted."""
    await world.registry.create(DEPLOYMENTS, build.deployment(replicas=3))
    await world.pass_time(1)
    first, second, _ = world.pods()
    await world.registry.delete(PODS, "default", first["metadata"]["name"])
    await fail(world, second)
    await world.pass_time(1)
    assert world.sizes() == {"example.com/app": (3, 3)}
    phases = sorted(pod["status"]["phase"] for pod in world.registry.list(PODS))
    assert phases == ["Failed", "Running", "Running", "Running"]


async def fail(world, pod):
    await world.registry.mutate(
        PODS, "default", pod["metadata"]["name"], lambda one: one["status"].update(phase="Failed"), subresource="status"
    )


async def test_the_right_pods_go(world):
    """Scaled in: the cheapest one by pod-deletion-cost."""
    await world.registry.create(DEPLOYMENTS, build.deployment(replicas=3))
    await world.pass_time(1)
    cheap = world.pods()[1]["metadata"]["name"]
    note = {"controller.kubernetes.io/pod-deletion-cost": "-1"}
    await world.change(PODS, cheap, lambda pod: pod["metadata"].update(annotations=note))
    await world.scale(2)
    await world.pass_time(1)
    assert cheap not in [pod["metadata"]["name"] for pod in world.pods()]
    assert world.events("SuccessfulDelete") == [f"Deleted pod: {cheap}"]


async def test_an_orphan_is_adopted_and_a_relabelled_pod_released(world):
    """The selector decides who belongs."""
    orphan = build.pod("stray", labels={"app": "web"})
    del orphan["status"], orphan["metadata"]["uid"]
    await world.registry.create(PODS, orphan)
    await world.registry.create(REPLICA_SETS, build.replica_set("web-1", 2))
    await world.pass_time(1)
    assert owners(world, "stray") == ["web-1"]
    assert len(world.pods()) == 2
    await world.change(PODS, "stray", lambda pod: pod["metadata"].update(labels={"app": "other"}))
    await world.pass_time(1)
    assert owners(world, "stray") == []
    assert len(world.pods()) == 3


def owners(world, pod):
    found = world.registry.get(PODS, "default", pod)["metadata"].get("ownerReferences", [])
    return [owner["name"] for owner in found]


async def test_min_ready_seconds_delay_availability(world):
    """A ready pod counts as available after minReadySeconds, without any event in between."""
    await world.registry.create(DEPLOYMENTS, build.deployment(replicas=1, minReadySeconds=10))
    await world.pass_time(5)
    assert world.sizes() == {"example.com/app": (1, 0)}
    await world.pass_time(7)
    assert world.sizes() == {"example.com/app": (1, 1)}


async def test_pods_that_are_refused_are_told_and_tried_again(world):
    """Event, condition, and back-off; a namespace full of quota does not see five hundred attempts."""
    world.registry.refusals[PODS] = StatusError("pods is forbidden: exceeded quota", code=403, reason="Forbidden")
    await world.registry.create(REPLICA_SETS, build.replica_set("web-1", 100))
    await world.pass_time(0.5)
    assert world.conditions(REPLICA_SETS, "web-1") == {"ReplicaFailure": ("True", "FailedCreate")}
    assert set(world.events("FailedCreate")) == {"Error creating: pods is forbidden: exceeded quota"}
    assert world.registry.refused < 12
    world.registry.refusals.clear()
    await world.pass_time(10)
    assert world.conditions(REPLICA_SETS, "web-1") == {}
    assert len(world.pods()) == 100


async def test_many_pods_cost_few_syncs(world):
    """600 pods in two bursts: all there, no overshoot, and the status written a few times, not 600 times."""
    await world.registry.create(REPLICA_SETS, build.replica_set("web-1", 600))
    for _ in range(20):
        await world.pass_time(1)
        assert len(world.pods()) <= 600
    replica_set = world.registry.get(REPLICA_SETS, "default", "web-1")
    assert replica_set["status"]["availableReplicas"] == 600
    assert world.registry.writes[REPLICA_SETS] < 60
