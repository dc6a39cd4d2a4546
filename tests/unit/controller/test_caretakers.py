"""Whether anybody seems to look after HorizontalPodAutoscalers: the signs, their age, and what may not be read."""

import pytest

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.coexistence import managing_controllers
from podscaler.controller.informers import handover
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import TransportError
from podscaler.testing.autoscaling import spec
from podscaler.testing.clock import VirtualClock
from podscaler.testing.cluster import HPAS, FakeCluster, refusal
from podscaler.testing.transport import TransportFailure, json_answer

KCM = "kube-controller-manager"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
AFTER = "what is migrated is not scaled until a controller manages it"
NOBODY = (
    "no controller seems to manage horizontalpodautoscalers: none wrote a status in the last 5 minutes, and no "
    f"kube-controller-manager renews its Lease; {AFTER}"
)


class World:
    """A cluster with one autoscaler, looked at by somebody who migrates."""

    def __init__(self, **annotations: str) -> None:
        self.cluster = FakeCluster()
        self.clock = VirtualClock()
        self.cluster.put_autoscaler("web", spec(), annotations=annotations)

    def ago(self, seconds: int) -> str:
        """An instant, as field managers have it."""
        return instants.text(self.clock.now_ns() - seconds * NANOSECONDS)

    def report(self, manager: str, seconds: int) -> None:
        """A write of the status, so long ago."""
        self.cluster.report("web", {"currentReplicas": 2}, manager=manager, at=self.ago(seconds))

    def renew(self, seconds: int, holder: str = "node-1_a") -> None:
        """A kube-controller-manager that renewed its Lease of 15 s so long ago."""
        held = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": self.ago(seconds)}
        self.cluster.interfere("GET", LEASE, json_answer({"metadata": {"name": KCM}, "spec": held}))

    async def doubt(self) -> str:
        """What is said."""
        return await managing_controllers.find_doubt(Client(self.cluster, self.clock), self.clock)


@pytest.mark.parametrize(
    ("manager", "seconds", "expected"),
    [
        (KCM, 299, ""),
        (KCM, 300, NOBODY),
        ("podscaler", 10, ""),
        ("kubectl-edit", 10, NOBODY),
    ],
    ids=["lately", "long ago", "ours", "a person"],
)
async def test_a_status_that_was_written(manager: str, seconds: int, expected: str) -> None:
    """The last write of a controller tells for five minutes that it is at work."""
    world = World()
    world.report(manager, seconds)
    assert await world.doubt() == expected


@pytest.mark.parametrize(("manager", "expected"), [("podscaler-migrate", NOBODY), (KCM, "")])
async def test_a_status_that_was_migrated(manager: str, expected: str) -> None:
    """What a migration wrote is no sign of a controller; what another wrote there is."""
    world = World(**{handover.MIGRATED_FROM: "podautoscaler/web/1"})
    world.report(manager, 10)
    assert await world.doubt() == expected


@pytest.mark.parametrize(
    ("seconds", "holder", "expected"),
    [(44, "a", ""), (45, "a", NOBODY), (1, "", NOBODY)],
    ids=["renewed", "no longer renewed", "released"],
)
async def test_a_kube_controller_manager(seconds: int, holder: str, expected: str) -> None:
    """One that renews its Lease counts, with half a minute for clocks that differ."""
    world = World()
    world.renew(seconds, holder)
    assert await world.doubt() == expected


async def test_no_sign_at_all() -> None:
    """A cluster without writes and without the Lease leaves the doubt."""
    assert await World().doubt() == NOBODY


async def test_a_cluster_without_any() -> None:
    """Where there was nothing to write about, nothing was to be seen of a controller."""
    world = World()
    world.cluster.delete(HPAS, "web")
    assert await world.doubt() == (
        "whether a controller manages horizontalpodautoscalers is not known (there are none yet): if none does, "
        f"{AFTER}"
    )


async def test_what_may_not_be_read() -> None:
    """It is said that it is not known, and why; another sign that is there suffices."""
    world = World()
    refused = refusal(403, "Forbidden", "leases is forbidden")
    world.cluster.interfere("GET", LEASE, refused, refused)
    said = await world.doubt()
    assert said.startswith("whether a controller manages horizontalpodautoscalers is not known (")
    assert said.endswith(f"): if none does, {AFTER}")
    world.report(KCM, 10)
    assert await world.doubt() == ""


async def test_a_lease_without_sense() -> None:
    """It tells nothing, and the other sign is looked for."""
    world = World()
    broken = {"metadata": {"name": KCM}, "spec": {"holderIdentity": "a", "renewTime": "noon"}}
    world.cluster.interfere("GET", LEASE, json_answer(broken))
    world.report(KCM, 10)
    assert await world.doubt() == ""


async def test_a_server_that_is_gone() -> None:
    """That is an error, and no sign."""
    world = World()
    world.cluster.interfere("GET", LEASE, *[TransportFailure("connection refused")] * 20)
    world.cluster.interfere("GET", HPAS, *[TransportFailure("connection refused")] * 20)
    with pytest.raises(TransportError):
        await world.doubt()
