"""Several of our controllers on either control plane: one leads and another goes on, or all share the work."""

import json
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from stage import Scene, Stage, end
from up_process import eventually

from own_ports import own_place
from patience import WITHIN_S

pytestmark = pytest.mark.e2e

HISTORIES = "/api/v1/namespaces/kube-system/configmaps?labelSelector=podscaler.dev/history%3Dv1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
NAME = "podscaler-controller"
SHARDS = 6
SHORT_LEASES = ("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s")
"""What a killed one held is at work again after so long."""
LONG_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 3600}}


class Controllers:
    """Ours on a stage whose own controller is away meanwhile."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._places: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *flags: str) -> None:
        """One more."""
        place = "{}:{}".format(*own_place())
        self._places[place] = self._stage.spawn(f"--metrics-bind-address={place}", *flags)
        eventually(lambda: self._answer(place, "/readyz") == "ok")

    def leader(self) -> "subprocess.Popen[bytes] | None":
        """The one whose metrics say that it leads; None while none does."""
        wanted = f'leader_election_master_status{{name="{NAME}"}} 1.0'
        return next((each for place, each in self._places.items() if wanted in self._answer(place, "/metrics")), None)

    def held(self) -> list[int]:
        """How many shards each that is alive holds, by its own metrics, in order."""
        answers = [self._answer(place, "/metrics") for place, each in self._places.items() if each.poll() is None]
        return sorted(_sample(answer, "podscaler_shards_held") for answer in answers)

    def end(self, process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
        """End one."""
        process.send_signal(number)
        assert process.wait(WITHIN_S) == (0 if number is signal.SIGTERM else -number)

    def first(self) -> "subprocess.Popen[bytes]":
        """The one that was started first."""
        return next(iter(self._places.values()))

    def close(self) -> None:
        """End those that are still there."""
        for process in self._places.values():
            if process.poll() is None:
                end(process)

    def _answer(self, place: str, path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://{place}{path}", timeout=WITHIN_S) as response:
                text: str = response.read().decode()
                return text
        except OSError:
            return ""


def _sample(text: str, name: str) -> int:
    values = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")]
    return int(float(values[0])) if values else -1


@pytest.fixture
def controllers(stage: Stage, ours: None) -> Iterator[Controllers]:
    """Controllers of the test's own."""
    assert stage.controller is not None
    end(stage.controller)
    found = Controllers(stage)
    yield found
    found.close()
    stage.controller = stage.spawn()


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
