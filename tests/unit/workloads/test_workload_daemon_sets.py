"""DaemonSets on a real registry, with a played node, in virtual time."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from workload_world import WorkloadWorld, opened

from podscaler.controlplane.controllers.apps.daemonset import DaemonSets
from podscaler.testing import workloads as build

SETS, REVISIONS, NODES = "daemonsets.apps", "controllerrevisions.apps", "nodes"
NODE = "played"
"""The name of the node that `PlayedNode` puts pods on."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[WorkloadWorld]:
    """DaemonSets are kept; there is one node, which is ready."""
    async with opened(tmp_path, DaemonSets) as found:
        await found.registry.create(NODES, {"metadata": {"name": NODE, "labels": {"disk": "ssd"}}})
        await taint(found)
        yield found


async def taint(world: WorkloadWorld, *taints: dict[str, Any]) -> None:
    """Replace the node's taints."""
    await world.registry.mutate(NODES, "", NODE, lambda node: node["spec"].update(taints=list(taints)))


async def create(world: WorkloadWorld, **spec: Any) -> None:
    """A DaemonSet `agent`, with its pod running."""
    await world.registry.create(SETS, build.daemon_set(**spec))
    await world.pass_time(1)


def tags(world: WorkloadWorld) -> list[str]:
    """The tags of the images of its pods."""
    return sorted(world.images().values())


async def test_a_node_gets_one_pod(world: WorkloadWorld) -> None:
    """On the node, with the labels of its revision; the whole status."""
    await create(world)
    (pod,) = world.pods().values()
    (revision,) = world.registry.list(REVISIONS)
    assert pod["spec"]["nodeName"] == NODE
    assert pod["metadata"]["labels"] == {
        "app": "agent",
        "controller-revision-hash": revision["metadata"]["labels"]["controller-revision-hash"],
        "pod-template-generation": "1",
    }
    assert world.events("SuccessfulCreate") == [f"Created pod: {pod['metadata']['name']}"]
    assert world.get(SETS, "agent")["status"] == {
        "currentNumberScheduled": 1,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 1,
        "numberReady": 1,
        "observedGeneration": 1,
        "updatedNumberScheduled": 1,
        "numberAvailable": 1,
    }


async def test_at_rest_nothing_changes(world: WorkloadWorld) -> None:
    """Neither the set nor its history nor its pod, whatever else the node writes."""
    await create(world)
    before = [world.registry.list(kind) for kind in (SETS, REVISIONS, "pods", "events")]
    await world.registry.mutate(NODES, "", NODE, lambda node: node["metadata"].update(annotations={"seen": "now"}))
    await world.pass_time(60)
    assert [world.registry.list(kind) for kind in (SETS, REVISIONS, "pods", "events")] == before


async def test_a_deleted_pod_comes_back_when_it_is_gone(world: WorkloadWorld) -> None:
    """There are never two on a node."""
    await create(world)
    world.node.stop_s = 5.0
    (name,) = world.pods()
    await world.registry.delete("pods", "default", name)
    await world.pass_time(2)
    assert list(world.pods()) == []
    await world.pass_time(5)
    assert [len(world.pods()), name in world.pods()] == [1, False]


async def test_a_new_template_replaces_the_pod(world: WorkloadWorld) -> None:
    """The old one goes first; the generation of the template is counted."""
    await create(world)
    await world.set_image(SETS, "agent", "example.com/app:2")
    await world.pass_time(2)
    assert tags(world) == ["2"]
    daemon_set = world.get(SETS, "agent")
    assert daemon_set["metadata"]["annotations"] == {"deprecated.daemonset.template.generation": "2"}
    assert daemon_set["status"]["updatedNumberScheduled"] == 1
    assert sorted(one["revision"] for one in world.registry.list(REVISIONS)) == [1, 2]


async def test_with_surge_the_new_pod_is_available_before_the_old_one_goes(world: WorkloadWorld) -> None:
    """Both run for as long as the new one starts."""
    surge = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    await create(world, updateStrategy=surge)
    world.node.startup_s = 3.0
    await world.set_image(SETS, "agent", "example.com/app:2")
    seen = []
    for _ in range(12):
        await world.pass_time(0.5)
        seen.append(tuple(tags(world)))
    assert list(dict.fromkeys(seen)) == [("1", "2"), ("2",)]


async def test_on_delete_waits_for_the_user_to_delete(world: WorkloadWorld) -> None:
    """The pod keeps its template until it is deleted."""
    await create(world, updateStrategy={"type": "OnDelete"})
    await world.set_image(SETS, "agent", "example.com/app:2")
    await world.pass_time(2)
    assert tags(world) == ["1"]
    await world.registry.delete("pods", "default", next(iter(world.pods())))
    await world.pass_time(2)
    assert tags(world) == ["2"]


async def test_only_nodes_that_are_selected_get_a_pod(world: WorkloadWorld) -> None:
    """A label that the node loses takes the pod away."""
    await create(world, template=build.pod_template({"app": "agent"}, nodeSelector={"disk": "ssd"}))
    assert len(world.pods()) == 1
    await world.registry.mutate(NODES, "", NODE, lambda node: node["metadata"].update(labels={"disk": "hdd"}))
    await world.pass_time(2)
    assert len(world.pods()) == 0
    assert world.get(SETS, "agent")["status"]["desiredNumberScheduled"] == 0


@pytest.mark.parametrize(
    ("key", "effect", "pods"),
    [
        pytest.param("dedicated", "NoSchedule", 0, id="of its own kind"),
        pytest.param("dedicated", "PreferNoSchedule", 1, id="a wish"),
        pytest.param("node.kubernetes.io/unschedulable", "NoSchedule", 1, id="cordoned"),
        pytest.param("node.kubernetes.io/not-ready", "NoExecute", 1, id="in trouble"),
    ],
)
async def test_taints_keep_pods_off(world: WorkloadWorld, key: str, effect: str, pods: int) -> None:
    """Daemon pods tolerate the node's troubles, and nothing else that they do not say."""
    await taint(world, {"key": key, "effect": effect})
    await create(world)
    assert len(world.pods()) == pods


async def test_a_taint_that_only_keeps_new_pods_off_leaves_the_old_one(world: WorkloadWorld) -> None:
    """NoSchedule does not evict; the pod counts as misscheduled."""
    await create(world)
    await taint(world, {"key": "dedicated", "effect": "NoSchedule"})
    await world.pass_time(2)
    assert len(world.pods()) == 1
    assert world.get(SETS, "agent")["status"]["numberMisscheduled"] == 1


async def test_a_failed_pod_is_replaced_after_a_while(world: WorkloadWorld) -> None:
    """A second for the first failure, then twice as long."""
    await create(world)
    (name,) = world.pods()

    def fail(pod: dict[str, Any]) -> None:
        pod["status"].update(phase="Failed")

    await world.registry.mutate("pods", "default", name, fail, subresource="status")
    await world.pass_time(0.5)
    assert list(world.pods()) == [name]
    await world.pass_time(1)
    assert [len(world.pods()), name in world.pods()] == [1, False]
    text = f"Found failed daemon pod default/{name} on node {NODE}, will try to kill it"
    assert world.events("FailedDaemonPod") == [text]


async def test_a_second_node_gets_a_pod_too(world: WorkloadWorld) -> None:
    """It is bound to that node from the start."""
    await create(world)
    await world.registry.create(NODES, {"metadata": {"name": "other"}})
    await world.registry.mutate(NODES, "", "other", lambda node: node["spec"].update(taints=[]))
    await world.pass_time(1)
    assert sorted(pod["spec"]["nodeName"] for pod in world.pods().values()) == ["other", NODE]
