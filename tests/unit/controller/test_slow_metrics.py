"""An API that is slow or dead delays those that use it, and nobody else."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from podscaler.kube.transport.transport import Request, Response
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.cluster import FakeCluster
from podscaler.testing.transport import json_answer


def _queue(number: int) -> dict[str, Any]:
    """An external metric that no other autoscaler asks for."""
    external = {"metric": {"name": f"depth{number}"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    return {"metrics": [{"type": "External", "external": external}]}


class SlowCluster(FakeCluster):
    """A cluster whose external metrics API never answers."""

    def __init__(self) -> None:
        super().__init__(lists_deployments=True)
        self.waiting = 0

    async def request(self, request: Request) -> Response:
        """As FakeCluster."""
        if "external.metrics.k8s.io" in request.path:
            self.waiting += 1
            await asyncio.Event().wait()
        return await super().request(request)


class LateCluster(FakeCluster):
    """A cluster whose external metrics API takes four seconds.

    Args:
        world: whose clock counts.
    """

    def __init__(self, world: AutoscalerWorld) -> None:
        super().__init__(lists_deployments=True)
        self._clock = world.clock
        self._began_s = self._clock.monotonic_s()
        self.asked_at_s: list[float] = []

    async def request(self, request: Request) -> Response:
        """As FakeCluster."""
        if "external.metrics.k8s.io" in request.path:
            self.asked_at_s.append(self._clock.monotonic_s() - self._began_s)
            await self._clock.sleep(4)
        return await super().request(request)


@pytest.fixture
async def world() -> AsyncIterator[AutoscalerWorld]:
    """200 autoscalers on the dead API, and one on CPU, with a single worker."""
    made = AutoscalerWorld(concurrent_syncs=1)
    made.cluster = SlowCluster()
    made.controller = made.make_controller()
    for number in range(200):
        made.cluster.put_deployment(f"slow{number}", 1)
        name = f"slow{number}"
        made.cluster.put_autoscaler(name, spec(name) | _queue(number), uid=name)
    made.add_web(cpu="900m")
    yield made
    await made.close()


async def test_others_go_on(world: AutoscalerWorld) -> None:
    """The autoscaler on CPU is synced in its turn, period after period, while 200 wait."""
    await world.start()
    for _ in range(4):
        await world.clock.advance(15, turns=400)
    assert (world.replicas(), world.metric("reconciliations_total", action="none", error="none")) == (2, 3)


@pytest.mark.parametrize(
    ("edit", "expected"),
    [({"maximum": 1}, 1), ({"maximum": 3}, 3), ({}, 2)],
    ids=["no more than it has", "more than before", "nothing that matters"],
)
async def test_an_autoscaler_that_is_edited_while_metrics_are_awaited(edit: dict[str, Any], expected: int) -> None:
    """What was decided by its old spec is not carried out: it is synced again at once."""
    made = AutoscalerWorld()
    made.cluster = LateCluster(made)
    made.controller = made.make_controller()
    made.cluster.put_deployment("web", 1)
    made.cluster.put_autoscaler("web", spec(maximum=2) | _queue(1))
    value = {
        "kind": "ExternalMetricValueList",
        "items": [{"metricName": "depth1", "timestamp": "2026-01-01T00:00:00Z", "value": "30"}],
    }
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/depth1"
    made.cluster.interfere("GET", path, *[json_answer(value)] * 9)
    await made.start()
    await made.advance(2)
    if edit:
        made.cluster.put_autoscaler("web", spec(**edit) | _queue(1))
    else:
        made.cluster.label_autoscaler("web", team="a")
    await made.advance(2)
    by_the_old = made.replicas()
    await made.advance(4.5)
    written = len(made.cluster.asked("PUT", "/scale"))
    assert (by_the_old, made.replicas(), written) == (2 if not edit else 1, expected, int(expected > 1))
    await made.close()


async def test_the_dead_api_is_not_flooded(world: AutoscalerWorld) -> None:
    """No more than 72 requests wait for it, and few at first."""
    await world.start()
    await world.clock.advance(0.2, turns=400)
    assert isinstance(world.cluster, SlowCluster)
    assert world.cluster.waiting <= 12
    for _ in range(15):
        await world.clock.advance(1, turns=400)
    assert world.cluster.waiting == 72


async def test_slow_answers_do_not_stretch_the_period() -> None:
    """An autoscaler whose metrics take four seconds is looked at every fifteen."""
    made = AutoscalerWorld()
    made.cluster = LateCluster(made)
    made.controller = made.make_controller()
    made.cluster.put_deployment("web", 1)
    made.cluster.put_autoscaler("web", spec() | _queue(1), uid="u")
    await made.start()
    for _ in range(240):
        await made.clock.advance(0.25)
    assert made.cluster.asked_at_s == [0, 15, 30, 45, 60]
    await made.close()
