"""Several of our controllers on either control plane: one leads and another goes on, or all share the work."""

import json
import signal
import subprocess
import time
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from several_controllers import NAME, Controllers
from stage import Scene
from up_process import Object, eventually

pytestmark = pytest.mark.e2e

HISTORIES = "/api/v1/namespaces/kube-system/configmaps?labelSelector=podscaler.dev/history%3Dv1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
SHARDS = 6
SHORT_LEASES = ("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s")
"""What a killed one held is at work again after so long."""
LONG_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 3600}}


def lease(scene: Scene, name: str = NAME) -> Any:
    """The spec of a Lease."""
    return scene.api.get(f"{LEASES}/{name}")["spec"]


def twice(scene: Scene) -> list[str]:
    """The rescales that were told of more than once: loads only rise here, so that each size comes once."""
    messages = [message for reason, message in scene.events() if reason == "SuccessfulRescale"]
    return sorted({each for each in messages if messages.count(each) > 1})


def shard_holders(scene: Scene) -> list[str]:
    """Who holds each shard; empty: nobody."""
    found = [scene.api.find(f"{LEASES}/{NAME}-shard-{shard}") for shard in range(SHARDS)]
    return [each["spec"]["holderIdentity"] if each else "" for each in found]


def leading(scene: Scene, controllers: Controllers) -> tuple["subprocess.Popen[bytes]", Any]:
    """Who leads, and the Lease of the same tenure."""

    def look() -> tuple["subprocess.Popen[bytes]", Any] | None:
        before, leader, after = lease(scene), controllers.leader(), lease(scene)
        is_one_tenure = before["leaseTransitions"] == after["leaseTransitions"]
        return (leader, before) if leader is not None and is_one_tenure else None

    found = eventually(look)
    assert found is not None
    return found


def remembered(scene: Scene) -> list[int]:
    """The recommendations of the autoscaler that whoever leads next will find."""
    histories = scene.api.get(HISTORIES)["items"]
    texts = [text for each in histories for key, text in each.get("data", {}).items() if key == f"{scene.name}.web"]
    return [each["replicas"] for text in texts for each in json.loads(text)["history"]["recommendations"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "lease_s"),
    [pytest.param(signal.SIGTERM, 180, id="told to end"), pytest.param(signal.SIGKILL, 12, id="killed")],
)
def test_another_leader_goes_on(scene: Scene, controllers: Controllers, number: signal.Signals, lease_s: int) -> None:
    """In the middle of a window another one leads: at once after a release, after the lease's duration otherwise.

    A lease that is released is longer than patience: only its release can make another one lead.
    """
    flags = (f"--leader-elect-lease-duration={lease_s}s", f"--leader-elect-renew-deadline={lease_s * 2 // 3}s")
    controllers.start(*flags)
    controllers.start(*flags)
    scene.deploy()
    scene.use(400)
    scene.autoscale(behavior=LONG_WINDOW)
    scene.await_replicas(4)
    scene.await_running(4)
    scene.use(100)
    scene.await_condition("AbleToScale", "True", "ScaleDownStabilized")
    eventually(lambda: 4 in remembered(scene))
    leader, before = leading(scene, controllers)
    controllers.end(leader, number)
    eventually(controllers.leader, until=lambda found: found not in (None, leader))
    after = lease(scene)
    scene.sync_times(3)
    assert (scene.replicas(), scene.condition("AbleToScale")) == (4, ("True", "ScaleDownStabilized"))
    scene.use(600)
    scene.await_replicas(6)
    assert after["leaseTransitions"] == before["leaseTransitions"] + 1
    if number is signal.SIGKILL:
        waited = datetime.fromisoformat(after["acquireTime"]) - datetime.fromisoformat(before["renewTime"])
        assert waited.total_seconds() >= lease_s
    assert twice(scene) == []


def test_a_leader_is_killed_right_after_a_scale_down(scene: Scene, controllers: Controllers) -> None:
    """Its successor knows of it: what was recommended before scales nothing up."""
    for _ in range(2):
        controllers.start("--horizontal-pod-autoscaler-downscale-stabilization=5s", *SHORT_LEASES)
    scene.deploy()
    scene.use(600)
    scene.autoscale()
    scene.await_replicas(6)
    scene.await_running(6)
    scene.use(300)
    scene.await_replicas(3)
    leader, _ = leading(scene, controllers)
    controllers.end(leader, signal.SIGKILL)
    eventually(controllers.leader, until=lambda found: found not in (None, leader))
    scene.sync_times(3)
    rescales = [message for reason, message in scene.events() if reason == "SuccessfulRescale"]
    assert (scene.replicas(), sum("New size: 6" in each for each in rescales)) == (3, 1)


def test_a_member_is_killed(scene: Scene, controllers: Controllers) -> None:
    """Three share the shards evenly; what a killed one held is at work again soon, and nothing is done twice."""
    scenes = [scene, *(scene.stage.namespace(f"{scene.name[:40]}-{number}") for number in range(5))]
    for each in scenes:
        each.deploy()
        each.use(100)
        each.autoscale(behavior=LONG_WINDOW)
    for _ in range(3):
        controllers.start(f"--shards={SHARDS}", *SHORT_LEASES)
    eventually(controllers.held, until=lambda found: found == [2, 2, 2])
    victim = controllers.first()
    eventually(lambda: len(set(shard_holders(scene))), until=lambda found: found == 3)
    controllers.end(victim, signal.SIGKILL)
    for each in scenes:
        each.use(300)
    for each in scenes:
        each.await_replicas(3)
    eventually(controllers.held, until=lambda found: found == [3, 3])
    repeated = [twice(each) for each in scenes]
    for each in scenes[1:]:
        scene.api.delete(f"/api/v1/namespaces/{each.name}")
    assert repeated == [[]] * len(scenes)


@pytest.mark.slow
def test_a_member_joins_after_a_crash(scene: Scene, controllers: Controllers) -> None:
    """While the Lease of a killed one stands another joins: what that held moves twice at most, the rest once."""
    flags = (f"--shards={SHARDS}", "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=5s")
    scene.deploy()
    scene.use(100)
    scene.autoscale()
    for _ in range(3):
        controllers.start(*flags)
    eventually(controllers.held, until=lambda found: found == [2, 2, 2])
    before = eventually(lambda: shard_holders(scene), until=lambda found: len(set(found) - {""}) == 3)
    since = scene.api.get(LEASES)["metadata"]["resourceVersion"]
    controllers.end(controllers.first(), signal.SIGKILL)
    time.sleep(3)  # without it the newcomer would count the dead as gone at the same time as the others
    controllers.start(*flags)
    eventually(controllers.held, until=lambda found: found == [2, 2, 2])
    for _ in range(12):
        await_renewal(scene, 0)
    scene.use(300)
    scene.await_replicas(3)
    killed = set(before) - set(shard_holders(scene))
    versions = scene.api.versions(LEASES, since)
    moves = [times_taken(versions, shard, holder) for shard, holder in enumerate(before)]
    allowed = [2 if holder in killed else 1 for holder in before]
    assert (len(killed), [min(pair) for pair in zip(moves, allowed, strict=True)]) == (1, moves)


def await_renewal(scene: Scene, shard: int) -> None:
    """Returns when the holder of a shard has renewed its Lease."""
    known = lease(scene, f"{NAME}-shard-{shard}")
    eventually(lambda: lease(scene, f"{NAME}-shard-{shard}"), until=lambda found: found != known)


def times_taken(versions: list[Object], shard: int, holder: str) -> int:
    """How often somebody took a shard, him who had given it up included, in those versions of Leases."""
    specs = [each["spec"] for each in versions if each["metadata"]["name"] == f"{NAME}-shard-{shard}"]
    holders = [holder, *(each["holderIdentity"] for each in specs)]
    return sum(bool(after) and before != after for before, after in pairwise(holders))
