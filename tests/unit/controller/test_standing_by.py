"""Controllers that stand by: dry runs, and those that find another one at work."""

import asyncio
import logging
from typing import Any

import pytest

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controller import assembly
from podscaler.controller.coexistence import standby
from podscaler.controller.controller import Controller
from podscaler.controller.history import history_maps
from podscaler.kube.client.client import Client
from podscaler.kube.client.connect import ReadOnlyTransport
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing.autoscaling import AutoscalerWorld, NoRandomness, spec
from podscaler.testing.cluster import CONFIG_MAPS, HPAS, FakeCluster, refusal

OTHER = "kube-controller-manager"
WRITES = ("PUT", "POST", "PATCH", "DELETE")


class World(AutoscalerWorld):
    """A world whose client cannot write where the settings say so."""

    def make_controller(self) -> Controller:
        """As there."""
        transport = ReadOnlyTransport(self.cluster) if self.settings.dry_run else self.cluster
        client = Client(transport, self.clock)
        return assembly.new_controller(client, self.settings, self.clock, recording=self.recording, rng=NoRandomness())

    def now(self) -> str:
        """The server's clock."""
        return instants.text(self.clock.now_ns())

    def status(self, replicas: int, **more: Any) -> dict[str, Any]:
        """A status as another controller writes it."""
        return {"currentReplicas": replicas, "desiredReplicas": replicas, "currentMetrics": None} | more

    def renew_lease(self) -> None:
        """kube-controller-manager is alive."""
        spec = {"holderIdentity": "node", "leaseDurationSeconds": 15, "renewTime": self.now()}
        self.cluster.leases[OTHER] = {"metadata": {"name": OTHER}, "spec": spec}

    @property
    def writes(self) -> list[str]:
        """What was changed, by method and path."""
        return [f"{each.method} {each.path}" for each in self.cluster.requests if each.method in WRITES]


@pytest.mark.parametrize("history", ["kube-system", None])
async def test_a_dry_run_writes_nothing(history: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """A scale that would change is logged once and shown as a gauge; no request but GETs is sent for 2 minutes."""
    world = World(dry_run=True, history_namespace=history)
    world.add_web(cpu="1000m", replicas=2)
    with caplog.at_level(logging.INFO):
        await world.start()
        await world.advance(120)
    await world.close()
    said = [record.message for record in caplog.records if "would be" in record.message]
    assert (world.writes, world.replicas(), world.metric("desired_replicas", namespace="shop", hpa_name="web")) == (
        [],
        2,
        4,
    )
    assert [line.partition(":")[0] for line in said] == ["horizontalpodautoscaler shop/web"]
    assert "would be rescaled from 2 to 4: cpu resource utilization" in said[0]


async def test_a_dry_run_refuses_by_construction() -> None:
    """Whatever a client on a read-only transport tries fails without being sent; reviews of permissions pass."""
    world = World(dry_run=True)
    client = Client(ReadOnlyTransport(world.cluster), world.clock)
    for write in (
        client.put("/x", b"{}", subject="x"),
        client.post("/x", b"{}", subject="x"),
        client.patch("/x", b"{}", subject="x"),
        client.delete("/x", subject="x"),
    ):
        with pytest.raises(StatusError, match="nothing is written by a dry run"):
            await write
    assert world.cluster.requests == []


async def test_another_at_work_is_waited_for() -> None:
    """While another writes statuses nothing is written, and /readyz says why; after 45 s of silence it goes on."""
    world = World(other_controller=standby.REFUSE)
    world.add_web(cpu="1000m", replicas=2)
    world.cluster.report("web", world.status(2), manager=OTHER, at=world.now())
    await world.start()
    await world.advance(40)
    before = (world.writes, world.replicas(), world.controller.unready())
    await world.advance(25)
    assert before == (
        [],
        2,
        [
            f"another controller writes the status of horizontalpodautoscalers: {OTHER}; nothing is written about "
            "those until it has been silent for 45 s and 3 of its sync periods (switch it off, or use "
            "--other-controller=ignore)"
        ],
    )
    assert (world.replicas(), world.controller.unready()) == (4, [])
    await world.close()


async def test_another_that_begins_later() -> None:
    """One that writes while we work makes us stop at once, whatever its clock says."""
    world = World(other_controller=standby.REFUSE)
    world.add_web(cpu="500m", replicas=2)
    await world.start()
    await world.advance(20)
    world.cluster.report("web", world.status(2), manager=OTHER, at="2020-01-01T00:00:00Z")
    world.cluster.put_pod("web-0", "web", "1000m")
    world.cluster.put_pod("web-1", "web", "1000m")
    await world.advance(30)
    assert (world.replicas(), len(world.controller.unready())) == (2, 1)
    await world.close()


class SlowHistories(FakeCluster):
    """A cluster in which a write of a ConfigMap takes until `arrives` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.arrives = asyncio.Event()

    async def request(self, request: Request) -> Response:
        """As FakeCluster."""
        if request.method in WRITES and request.path.startswith(CONFIG_MAPS):
            await self.arrives.wait()
        return await super().request(request)


class SlowWorld(World):
    """A world whose histories are kept by slow writes."""

    cluster: SlowHistories

    def make_controller(self) -> Controller:
        """As there."""
        self.cluster = SlowHistories()
        return super().make_controller()


@pytest.mark.parametrize(("begins", "replicas"), [(True, 2), (False, 4)], ids=["another begins", "nobody does"])
async def test_another_that_begins_while_a_rescale_is_stored(begins: bool, replicas: int) -> None:
    """A rescale is stored before it is written; where another controller has begun by then it is not written."""
    world = SlowWorld(other_controller=standby.REFUSE, history_namespace="kube-system")
    world.add_web(cpu="1000m", replicas=2)
    await world.start()
    if begins:
        world.cluster.report("web", world.status(2), manager=OTHER, at=world.now())
        await world.advance(0)
    before = world.replicas()
    world.cluster.arrives.set()
    await world.advance(0)
    stored = [name for name in world.cluster.config_maps if name != history_maps.NAME]
    assert (before, len(stored), world.replicas()) == (2, 1, replicas)
    await world.close()


@pytest.mark.parametrize(
    ("manager", "policy", "at"),
    [
        pytest.param("podscaler", standby.REFUSE, None, id="ourselves"),
        pytest.param("kubectl-edit", standby.REFUSE, None, id="a person"),
        pytest.param(OTHER, standby.WARN, None, id="another, and we only warn"),
        pytest.param(OTHER, standby.IGNORE, None, id="another, and we do not look"),
        pytest.param(OTHER, standby.REFUSE, "2020-01-01T00:00:00Z", id="another, long ago"),
    ],
)
async def test_who_does_not_stop_us(manager: str, policy: str, at: str | None) -> None:
    """Writes of ours, of people, of long ago, and of others where a flag says so."""
    world = World(other_controller=policy)
    world.add_web(cpu="1000m", replicas=2)
    world.cluster.report("web", world.status(2), manager=manager, at=at or world.now())
    await world.start()
    await world.advance(1)
    assert (world.replicas(), world.controller.unready()) == (4, [])
    await world.close()


async def test_one_write_of_a_stranger_stops_nothing() -> None:
    """A program that writes a status once is no controller; the second time within five minutes it is one."""
    world = World(other_controller=standby.REFUSE)
    world.add_web(cpu="500m", replicas=2)
    await world.start()
    await world.advance(20)
    world.cluster.report("web", world.status(2), manager="repair-tool", at=world.now())
    world.cluster.put_pod("web-0", "web", "1000m")
    world.cluster.put_pod("web-1", "web", "1000m")
    await world.advance(15)
    once = world.replicas()
    world.cluster.report("web", world.status(4), manager="repair-tool", at=world.now())
    for number in range(4):
        world.cluster.put_pod(f"web-{number}", "web", "1000m")
    await world.advance(15)
    assert (once, world.replicas()) == (4, 4)
    await world.close()


async def test_another_stops_us_for_its_autoscaler_alone() -> None:
    """What another controller does not write about is scaled meanwhile, and the process is ready."""
    world = World(other_controller=standby.REFUSE)
    world.add_web(cpu="1000m", replicas=2)
    world.cluster.report("web", world.status(2), manager=OTHER, at=world.now())
    world.cluster.put_deployment("api", 2)
    for number in range(2):
        world.cluster.put_pod(f"api-{number}", "api", "1000m")
    world.cluster.put_autoscaler("api", spec("api"))
    await world.start()
    await world.advance(30)
    found = [world.cluster.scales["shop", name]["spec"]["replicas"] for name in ("web", "api")]
    assert (found, world.controller.unready()) == ([2, 4], [])
    await world.close()


async def test_a_slower_controller_is_not_taken_for_silent() -> None:
    """With a period of 2 s nothing is written beside another whose period is 30 s."""
    world = World(other_controller=standby.REFUSE, sync_period_ns=2 * NANOSECONDS)
    world.add_web(cpu="1000m", replicas=2)
    world.cluster.report("web", world.status(2), manager=OTHER, at=world.now())
    await world.start()
    for _ in range(10):
        await world.advance(30)
        world.cluster.report("web", world.status(2), manager=OTHER, at=world.now())
    await world.advance(80)
    written = world.writes
    await world.advance(30)
    assert (written, world.replicas()) == ([], 4)
    await world.close()


async def test_metrics_that_stand_still_are_no_silence() -> None:
    """Another that has nothing to write for ten minutes is still at work when the load changes."""
    world = World(other_controller=standby.REFUSE)
    world.add_web(cpu="500m", replicas=2)
    world.renew_lease()
    await world.start()
    await world.advance(16)
    steady = world.cluster.collections[HPAS].objects["shop", "web"]["status"]
    world.cluster.report("web", steady, manager=OTHER, at=world.now())
    for _ in range(60):
        world.renew_lease()
        await world.advance(10)
    world.cluster.put_pod("web-0", "web", "1000m")
    world.cluster.put_pod("web-1", "web", "1000m")
    for _ in range(6):
        world.renew_lease()
        await world.advance(10)
    assert world.replicas() == 2
    await world.close()


async def test_a_lease_that_may_not_be_read_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Silence counts as any other's then, and the log says why."""
    world = World(other_controller=standby.REFUSE)
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
    world.cluster.interfere("GET", path, *[refusal(403, "Forbidden", "leases is forbidden")] * 4)
    world.add_web(cpu="1000m", replicas=2)
    world.cluster.report("web", world.status(2), manager=OTHER, at=world.now())
    with caplog.at_level(logging.INFO, logger="podscaler.controller.informers.other_controllers"):
        await world.start()
        await world.advance(25)
    await world.close()
    assert caplog.text.count("whether kube-controller-manager is alive is not known: leases is forbidden") == 1


async def test_a_warning_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """With `warn` the other is named once, and once more when it has gone."""
    world = World(other_controller=standby.WARN)
    world.add_web(cpu="500m", replicas=2)
    world.cluster.report("web", world.status(2), manager=OTHER, at=world.now())
    with caplog.at_level(logging.INFO, logger="podscaler.controller.coexistence.standby"):
        await world.start()
        await world.advance(100)
    await world.close()
    assert [
        record.message for record in caplog.records if record.name == "podscaler.controller.coexistence.standby"
    ] == [
        f"another controller writes the status of horizontalpodautoscalers too: {OTHER}",
        "no other controller writes the status of horizontalpodautoscalers any more: going on",
    ]


async def test_standing_by_keeps_the_windows() -> None:
    """What was recommended while standing by holds a scale-down back after taking over, and no replicas jump."""
    world = World(other_controller=standby.REFUSE)
    world.add_web(cpu="500m", replicas=4)
    await world.start()
    world.cluster.report("web", world.status(4), manager=OTHER, at=world.now())
    for second in range(0, 100, 10):
        if second == 60:
            for number in range(4):
                world.cluster.put_pod(f"web-{number}", "web", "100m")
        world.cluster.report("web", world.status(4), manager=OTHER, at=world.now())
        await world.advance(10)
    await world.advance(100)
    held = world.replicas()
    await world.advance(250)
    assert (held, world.replicas()) == (4, 1)
    await world.close()


async def test_a_rescale_by_the_other_counts() -> None:
    """Changes that another makes while we stand by are in the budgets of policies when we take over."""
    policy = {"type": "Pods", "value": 1, "periodSeconds": 300}
    behavior = {"scaleUp": {"policies": [policy], "selectPolicy": "Max"}}
    world = World(other_controller=standby.REFUSE)
    world.add_web(cpu="2000m", replicas=2, behavior=behavior)
    world.cluster.report("web", world.status(2), manager=OTHER, at=world.now())
    await world.start()
    await world.advance(20)
    world.cluster.scales["shop", "web"]["spec"]["replicas"] = 3
    world.cluster.report("web", world.status(3), manager=OTHER, at=world.now())
    await world.advance(120)
    taken_over = world.replicas()
    await world.advance(240)
    assert (taken_over, world.replicas()) == (3, 4)
    await world.close()


async def test_no_sync_costs_a_request_for_it() -> None:
    """Looking for others costs no request: as many as without."""
    counts = []
    for policy in (standby.REFUSE, standby.IGNORE):
        world = World(other_controller=policy, sync_period_ns=15 * NANOSECONDS)
        world.add_web(cpu="500m", replicas=2)
        await world.start()
        await world.advance(60)
        await world.close()
        counts.append(sorted((each.method, each.path) for each in world.cluster.requests))
    assert counts[0] == counts[1]
    assert HPAS in [path for _, path in counts[0]]
