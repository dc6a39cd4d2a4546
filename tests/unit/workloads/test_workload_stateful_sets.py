"""StatefulSets on a real registry, with a played node, in virtual time."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from workload_world import WorkloadWorld, opened

from podscaler.api.kinds.pods import pod_defaults
from podscaler.controlplane.controllers.apps.statefulset import StatefulSets
from podscaler.controlplane.controllers.framework import templates
from podscaler.testing import workloads as build

SETS, REVISIONS = "statefulsets.apps", "controllerrevisions.apps"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[WorkloadWorld]:
    """StatefulSets are kept."""
    async with opened(tmp_path, StatefulSets) as found:
        yield found


async def create(world: WorkloadWorld, **arguments: Any) -> None:
    """A StatefulSet `db`, with its pods running."""
    await world.registry.create(SETS, build.stateful_set(**arguments))
    await world.pass_time(4)


async def timeline(world: WorkloadWorld, seconds: int) -> list[list[str]]:
    """The names of pods, each time that they change, looked at twice a second."""
    seen: list[list[str]] = []
    for _ in range(2 * seconds):
        names = sorted(pod["metadata"]["name"] for pod in world.registry.list("pods"))
        if not seen or seen[-1] != names:
            seen.append(names)
        await world.pass_time(0.5)
    return seen


async def test_pods_start_in_order(world: WorkloadWorld) -> None:
    """Each waits until the one before is ready."""
    world.node.startup_s = 2.0
    await world.registry.create(SETS, build.stateful_set(replicas=3))
    assert await timeline(world, 10) == [[], ["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"]]
    assert world.events("SuccessfulCreate") == [f"create Pod db-{n} in StatefulSet db successful" for n in range(3)]


async def test_a_pod_that_never_gets_ready_holds_up_all_that_follow(world: WorkloadWorld) -> None:
    """Without readiness there is one pod."""
    world.node.startup_s = None
    await create(world, replicas=3)
    assert list(world.pods()) == ["db-0"]


async def test_pods_stop_in_reverse_order(world: WorkloadWorld) -> None:
    """The highest goes first, the next when it is gone."""
    await create(world, replicas=3)
    world.node.stop_s = 2.0
    await world.change(SETS, "db", replicas=0)
    assert await timeline(world, 12) == [["db-0", "db-1", "db-2"], ["db-0", "db-1"], ["db-0"], []]


async def test_parallel_pods_do_not_wait(world: WorkloadWorld) -> None:
    """They all start, and all stop, at once."""
    world.node.startup_s = 5.0
    await world.registry.create(SETS, build.stateful_set(replicas=3, podManagementPolicy="Parallel"))
    assert await timeline(world, 2) == [[], ["db-0", "db-1", "db-2"]]
    world.node.stop_s = 2.0
    await world.change(SETS, "db", replicas=1)
    await world.pass_time(1)
    assert list(world.pods()) == ["db-0"]


async def test_the_whole_status(world: WorkloadWorld) -> None:
    """Counts and revisions of a set at rest."""
    await create(world, replicas=2)
    (revision,) = [one["metadata"]["name"] for one in world.registry.list(REVISIONS)]
    assert world.get(SETS, "db")["status"] == {
        "observedGeneration": 1,
        "replicas": 2,
        "readyReplicas": 2,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "currentRevision": revision,
        "updateRevision": revision,
        "availableReplicas": 2,
    }


async def test_at_rest_nothing_is_written(world: WorkloadWorld) -> None:
    """Neither the set nor its history nor its pods change by themselves."""
    await create(world, replicas=2)
    before = [world.registry.list(kind) for kind in (SETS, REVISIONS, "pods", "events")]
    await world.pass_time(60)
    assert [world.registry.list(kind) for kind in (SETS, REVISIONS, "pods", "events")] == before


async def test_a_pod_knows_who_it_is(world: WorkloadWorld) -> None:
    """Labels, hostname and subdomain."""
    await create(world, replicas=1, ordinals={"start": 5})
    pod = world.pods()["db-5"]
    (revision,) = [one["metadata"]["name"] for one in world.registry.list(REVISIONS)]
    assert pod["metadata"]["labels"] == {
        "app": "db",
        "apps.kubernetes.io/pod-index": "5",
        "statefulset.kubernetes.io/pod-name": "db-5",
        "controller-revision-hash": revision,
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-5", "db")


async def test_a_rolling_update_goes_from_the_highest_down_one_by_one(world: WorkloadWorld) -> None:
    """The next pod is replaced when the one before is available again."""
    await create(world, replicas=3)
    world.node.startup_s = 2.0
    await world.set_image(SETS, "db", "example.com/app:2")
    seen: list[str] = []
    for _ in range(40):
        tags = world.images()
        text = "".join(tags.get(f"db-{number}", "-") for number in range(3))
        if not seen or seen[-1] != text:
            seen.append(text)
        await world.pass_time(0.5)
    assert [text for text in seen if "-" not in text] == ["111", "112", "122", "222"]
    status = world.get(SETS, "db")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (3, 3)


async def test_a_partition_keeps_the_lower_pods_back(world: WorkloadWorld) -> None:
    """Even a pod that is made anew gets the template that its place has."""
    await create(world, replicas=3, partition=2)
    await world.set_image(SETS, "db", "example.com/app:2")
    await world.pass_time(3)
    assert world.images() == {"db-0": "1", "db-1": "1", "db-2": "2"}
    status = world.get(SETS, "db")["status"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    await world.registry.delete("pods", "default", "db-0")
    await world.pass_time(3)
    assert world.images() == {"db-0": "1", "db-1": "1", "db-2": "2"}


async def test_an_autoscaler_may_scale_in_the_middle_of_a_rollout(world: WorkloadWorld) -> None:
    """New pods are of the newest template; fewer pods go from the highest down; the rollout goes on with the rest."""
    await create(world, replicas=3)
    world.node.startup_s = 2.0
    await world.set_image(SETS, "db", "example.com/app:2")
    await world.pass_time(3)
    await world.change(SETS, "db", replicas=5)
    await world.pass_time(4)
    tags = world.images()
    assert (tags["db-0"], tags["db-3"], tags["db-4"]) == ("1", "2", "2")
    await world.change(SETS, "db", replicas=2)
    await world.pass_time(15)
    assert world.images() == {"db-0": "2", "db-1": "2"}
    status = world.get(SETS, "db")["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (2, 2, 2)
    assert status["currentRevision"] == status["updateRevision"]


async def test_on_delete_waits_for_the_user(world: WorkloadWorld) -> None:
    """Only pods that somebody deletes get the new template."""
    await create(world, replicas=2, updateStrategy={"type": "OnDelete"})
    await world.set_image(SETS, "db", "example.com/app:2")
    await world.pass_time(3)
    assert world.images() == {"db-0": "1", "db-1": "1"}
    await world.registry.delete("pods", "default", "db-0")
    await world.pass_time(3)
    assert world.images() == {"db-0": "2", "db-1": "1"}


async def test_max_unavailable_allows_several_at_once(world: WorkloadWorld) -> None:
    """Two of four are replaced together."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 2}}
    await create(world, replicas=4, podManagementPolicy="Parallel", updateStrategy=rolling)
    world.node.startup_s = 5.0
    await world.set_image(SETS, "db", "example.com/app:2")
    await world.pass_time(1)
    assert world.images() == {"db-0": "1", "db-1": "1", "db-2": "2", "db-3": "2"}


async def test_going_back_renumbers_the_old_revision(world: WorkloadWorld) -> None:
    """The template of revision 1 is revision 3 afterwards; there are still two."""
    await create(world, replicas=1)
    for tag in ("2", "1"):
        await world.set_image(SETS, "db", f"example.com/app:{tag}")
        await world.pass_time(3)
    assert world.images() == {"db-0": "1"}
    assert sorted(one["revision"] for one in world.registry.list(REVISIONS)) == [2, 3]


async def test_the_history_is_limited(world: WorkloadWorld) -> None:
    """Beyond the newest, one old revision is kept here."""
    await create(world, replicas=1, revisionHistoryLimit=1)
    for tag in ("2", "3", "4"):
        await world.set_image(SETS, "db", f"example.com/app:{tag}")
        await world.pass_time(3)
    assert sorted(one["revision"] for one in world.registry.list(REVISIONS)) == [3, 4]


async def test_a_history_that_was_orphaned_is_taken_over(world: WorkloadWorld) -> None:
    """A set that is made again continues with its old revision, and with its old pods."""
    await create(world, replicas=1)
    await world.registry.delete(SETS, "default", "db", propagation="Orphan")
    for resource, name in (("pods", "db-0"), (REVISIONS, world.registry.list(REVISIONS)[0]["metadata"]["name"])):
        await world.registry.mutate(resource, "default", name, lambda obj: obj["metadata"].pop("ownerReferences"))
    await world.registry.mutate(SETS, "default", "db", lambda obj: obj["metadata"].pop("finalizers", None))
    first = world.pods()["db-0"]["metadata"]["uid"]
    await create(world, replicas=1)
    assert world.pods()["db-0"]["metadata"]["uid"] == first
    (revision,) = world.registry.list(REVISIONS)
    assert revision["metadata"]["ownerReferences"][0]["uid"] == world.get(SETS, "db")["metadata"]["uid"]


async def test_a_revision_whose_name_is_taken_gets_another(world: WorkloadWorld) -> None:
    """Two templates with one hash: the collision is counted, and salts the hash."""
    template = build.stateful_set()["spec"]["template"]
    filled = {"spec": {"template": template}}
    pod_defaults.set_template_defaults(filled["spec"])
    name = f"db-{templates.template_hash(filled['spec']['template'])}"
    metadata = {"name": name, "namespace": "default"}
    await world.registry.create(REVISIONS, {"metadata": metadata, "data": {"other": "template"}, "revision": 1})
    await create(world, replicas=1)
    status = world.get(SETS, "db")["status"]
    assert (status["collisionCount"], status["readyReplicas"], status["currentRevision"] == name) == (1, 1, False)


async def test_a_failed_pod_is_made_anew_under_its_name(world: WorkloadWorld) -> None:
    """Its name cannot be taken twice, so the failed one is deleted."""
    await create(world, replicas=1)
    first = world.pods()["db-0"]["metadata"]["uid"]
    await world.registry.mutate(
        "pods", "default", "db-0", lambda pod: pod["status"].update(phase="Failed"), subresource="status"
    )
    await world.pass_time(2)
    assert world.pods()["db-0"]["metadata"]["uid"] != first
    assert world.events("RecreatingFailedPod") == ["StatefulSet default/db is recreating failed Pod db-0"]


async def test_min_ready_seconds_hold_up_the_next_pod(world: WorkloadWorld) -> None:
    """A pod counts when it has been ready for ten seconds."""
    await world.registry.create(SETS, build.stateful_set(replicas=2, minReadySeconds=10))
    await world.pass_time(8)
    assert list(world.pods()) == ["db-0"]
    status = world.get(SETS, "db")["status"]
    assert (status["readyReplicas"], status["availableReplicas"]) == (1, 0)
    await world.pass_time(4)
    assert list(world.pods()) == ["db-0", "db-1"]


async def test_claims_become_directories(world: WorkloadWorld) -> None:
    """There is no storage to claim: an event says what happens instead."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": wanted}
    stateful_set = build.stateful_set(replicas=1, volumeClaimTemplates=[claim])
    container = stateful_set["spec"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    await world.registry.create(SETS, stateful_set)
    await world.pass_time(2)
    assert world.pods()["db-0"]["spec"]["volumes"] == [{"name": "data", "emptyDir": {}}]
    (message,) = world.events("VolumeClaimsNotSupported")
    assert message.startswith("There are no persistent volumes here: data of volumeClaimTemplates")


async def test_only_pods_with_a_fitting_name_are_adopted(world: WorkloadWorld) -> None:
    """An orphan named db-0 becomes the first pod; one with another name stays an orphan."""
    for name in ("db-0", "db-x", "db-01"):
        await world.registry.create("pods", build.pod(name, labels={"app": "db"}))
    await create(world, replicas=1)
    owners = {name: "ownerReferences" in pod["metadata"] for name, pod in world.pods().items()}
    assert owners == {"db-0": True, "db-01": False, "db-x": False}
    assert world.pods()["db-0"]["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"


async def test_a_name_that_somebody_else_has_is_told(world: WorkloadWorld) -> None:
    """The pod cannot be created; an event says why."""
    await world.registry.create("pods", build.pod("db-0", labels={"app": "other"}))
    await create(world, replicas=1)
    assert world.events("FailedCreate")[:1] == [
        'create Pod db-0 in StatefulSet db failed error: pods "db-0" already exists'
    ]
