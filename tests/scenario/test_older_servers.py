"""API servers from Kubernetes 1.28 on, played: what they do not know they drop, and they stream no lists."""

import dataclasses
from typing import Any

import msgspec

from podscaler.controller import assembly
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing.autoscaling import AutoscalerWorld, NoRandomness
from podscaler.testing.cluster import FakeCluster

STATUS = {"observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas", "currentMetrics", "conditions"}
CONDITION = {"type", "status", "lastTransitionTime", "reason", "message"}
"""The fields of a status in autoscaling/v2 of Kubernetes 1.28."""


class OldServer(FakeCluster):
    """A cluster whose API server keeps what 1.28 knows."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown: set[str] = set()

    def _write_status(self, request: Request) -> Response:
        sent = msgspec.json.decode(request.body or b"{}")
        status: dict[str, Any] = sent["status"]
        conditions = status.get("conditions") or []
        self.unknown |= status.keys() - STATUS
        self.unknown |= {name for each in conditions for name in each.keys() - CONDITION}
        kept = {name: value for name, value in status.items() if name in STATUS}
        kept["conditions"] = [{name: each[name] for name in each.keys() & CONDITION} for each in conditions]
        body = msgspec.json.encode(sent | {"status": kept})
        return super()._write_status(dataclasses.replace(request, body=body))


class World(AutoscalerWorld):
    """A controller on an old server."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.cluster = self.old = OldServer()
        self.controller = assembly.new_controller(
            Client(self.cluster, self.clock, streams_lists=False), self.settings, self.clock, rng=NoRandomness()
        )


async def test_nothing_is_written_that_it_lacks() -> None:
    """A status holds only what Kubernetes 1.28 knows, and one that was dropped from is not written again and again."""
    world = World()
    world.add_web(cpu="1000m", replicas=2)
    await world.start()
    await world.advance(20)
    for number in range(4):
        world.cluster.put_pod(f"web-{number}", "web", "500m")
    await world.advance(40)
    before = len(world.cluster.asked("PUT", "/status"))
    await world.advance(60)
    await world.close()
    assert (world.replicas(), world.old.unknown) == (4, set())
    assert len(world.cluster.asked("PUT", "/status")) == before
