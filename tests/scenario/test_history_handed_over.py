"""Controllers that follow one another by lease, on a cluster in memory: what one remembered, the next goes on with."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from podscaler.cli.options.election import ElectedController
from podscaler.controller import assembly
from podscaler.controller.leaderelection import timeouts
from podscaler.controller.leaderelection.election import Election
from podscaler.kube.client.client import Client
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.leases import LeaseServer, LeaseTransport, OwnClock

PERIOD_S = 15
WINDOW_S = 300


class Candidate:
    """A controller as the command runs it: fenced, with a line of its own to the leases."""

    def __init__(self, world: "ElectedWorld", name: str, shards: int) -> None:
        self.line: LeaseTransport = world.leases.line()
        clock = OwnClock(world.clock, self.line)
        client, leases = Client(world.cluster, clock), Client(self.line, clock)
        self.controller = assembly.new_controller(client, world.settings, clock, rng=random.Random(name))
        election = Election(identity=name, shards=shards)
        self.elected = ElectedController(self.controller, client, lease_client=leases, election=election, clock=clock)
        self.task = asyncio.ensure_future(self.elected.run())

    def sample(self, name: str) -> float | None:
        """One of its metrics."""
        return self.controller.telemetry.registry.get_sample_value(name)


class ElectedWorld(AutoscalerWorld):
    """A cluster with candidates instead of one controller."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(history_namespace="kube-system", **settings)
        self.leases = LeaseServer()
        self.candidates: dict[str, Candidate] = {}

    async def begin(self, name: str, *, shards: int = 0) -> Candidate:
        """One more candidate."""
        candidate = self.candidates[name] = Candidate(self, name, shards)
        await self.advance(1)
        return candidate

    def use(self, cpu: str) -> None:
        """Let every pod of `web` use so much."""
        for number in range(self.replicas()):
            self.cluster.put_pod(f"web-{number}", "web", cpu)

    async def seconds_until(self, replicas: int, limit_s: int = 900) -> int:
        """How many seconds pass until that many are wanted."""
        for second in range(limit_s):
            if self.replicas() == replicas:
                return second
            await self.advance(1)
        raise AssertionError(f"still {self.replicas()} after {limit_s} s")

    async def close(self) -> None:
        """End all."""
        for candidate in self.candidates.values():
            candidate.line.moves.set()
            await timeouts.end(candidate.task)


@pytest.fixture
async def world() -> AsyncIterator[ElectedWorld]:
    """Five busy pods and their autoscaler; nobody is at work yet."""
    made = ElectedWorld()
    made.add_web(cpu="500m", replicas=5)
    yield made
    await made.close()


@pytest.mark.parametrize("shards", [0, 3])
async def test_a_window_goes_on_with_the_next(world: ElectedWorld, shards: int) -> None:
    """A hand-over in the middle of a stabilization window neither cuts it short nor begins it anew."""
    first = await world.begin("a", shards=shards)
    await world.begin("b", shards=shards)
    await world.advance(100)
    world.use("100m")
    await world.advance(150)
    first.elected.stop()
    await world.advance(3)
    assert first.task.done()
    held_s = 153 + await world.seconds_until(1)
    assert WINDOW_S - PERIOD_S <= held_s <= WINDOW_S + 2 * PERIOD_S


async def test_a_window_goes_there_and_back(world: ElectedWorld) -> None:
    """What another did meanwhile is known when the work comes back to a process that had it before."""
    first = await world.begin("a")
    await world.begin("b")
    await world.advance(60)
    first.line.is_cut = True
    await world.advance(60)
    first.line.is_cut = False
    world.use("100m")
    await world.advance(60)
    world.candidates["b"].elected.stop()
    await world.advance(3)
    held_s = 63 + await world.seconds_until(1)
    assert WINDOW_S - PERIOD_S <= held_s <= WINDOW_S + 2 * PERIOD_S
    assert world.leases.holder("podscaler-controller") == "a"


async def test_only_the_leader_asks_and_writes(world: ElectedWorld) -> None:
    """One that stands by follows, and asks for no scale, no metrics and no history; its gauge is zero."""
    await world.begin("a")
    second = await world.begin("b")
    world.cluster.requests.clear()
    await world.advance(46)
    assert len(world.cluster.asked("GET", "metrics.k8s.io")) == 3
    controlled = "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers"
    assert (world.candidates["a"].sample(controlled), second.sample(controlled)) == (1, 0)


async def test_a_syncs_write_is_refused_after_a_pause(world: ElectedWorld) -> None:
    """A process that stood still for longer than the lease writes nothing when it moves again."""
    first = await world.begin("a")
    await world.begin("b")
    await world.advance(30)
    first.line.moves.clear()
    await world.advance(40)
    world.use("1")
    written = len(world.cluster.asked("PUT"))
    first.line.moves.set()
    await world.advance(0)
    assert len(world.cluster.asked("PUT")) == written
    await world.advance(16)
    assert world.replicas() == 10


async def test_shards_split_namespaces(world: ElectedWorld) -> None:
    """Autoscalers of many namespaces are looked at once a period each, whoever does it, before and after a kill."""
    for number in range(12):
        namespace = f"n{number}"
        world.cluster.put_deployment("web", 1, namespace=namespace)
        world.cluster.put_pod("web-0", "web", "500m", namespace=namespace)
        world.cluster.put_autoscaler("web", spec(), namespace=namespace, uid=namespace)
    for name in "ab":
        await world.begin(name, shards=4)
    await world.advance(30)
    held = [world.candidates[name].sample("podscaler_shards_held") for name in "ab"]
    world.cluster.requests.clear()
    await world.advance(15)
    looks = {
        number: len(world.cluster.asked("GET", f"namespaces/n{number}/deployments/web/scale")) for number in range(12)
    }
    assert (held, looks) == ([2, 2], dict.fromkeys(range(12), 1))
    await timeouts.end(world.candidates.pop("a").task)
    world.cluster.requests.clear()
    await world.advance(31)
    assert all(world.cluster.asked("GET", f"namespaces/n{number}/deployments/web/scale") for number in range(12))
