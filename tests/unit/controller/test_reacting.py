"""--react-to-changes: autoscalers whose load has moved are looked at before their turn."""

from collections.abc import AsyncIterator

import pytest

from podscaler.kube.transport.transport import Response
from podscaler.testing.autoscaling import AutoscalerWorld
from podscaler.testing.cluster import RESOURCE_METRICS

LISTS = f"{RESOURCE_METRICS}shop/pods"


@pytest.fixture
async def world() -> AsyncIterator[AutoscalerWorld]:
    """A world that reacts, at rest since a period."""
    made = AutoscalerWorld(reacts=True, lists_deployments=True)
    made.add_web(cpu="500m", replicas=2)
    await made.start()
    await made.advance(20)
    yield made
    await made.close()


def _use(world: AutoscalerWorld, cpu: str) -> None:
    for name in ("web-0", "web-1"):
        world.cluster.usage["shop", name] = cpu


async def test_a_jump_is_answered_within_two_seconds(world: AutoscalerWorld) -> None:
    """A load that jumps is seen by the next look at usage, not by the next period."""
    _use(world, "900m")
    await world.advance(2)
    assert world.replicas() == 4


async def test_without_the_flag_it_waits() -> None:
    """Otherwise the next period sees it."""
    world = AutoscalerWorld()
    world.add_web(cpu="500m", replicas=2)
    await world.start()
    await world.advance(20)
    _use(world, "900m")
    await world.advance(2)
    early = world.replicas()
    await world.advance(15)
    await world.close()
    assert (early, world.replicas()) == (2, 4)


async def test_small_changes_wait(world: AutoscalerWorld) -> None:
    """Less than half of the tolerance brings no look."""
    syncs = world.metric("reconciliations_total", action="none", error="none")
    _use(world, "520m")
    await world.advance(8)
    assert world.metric("reconciliations_total", action="none", error="none") == syncs


async def test_a_slow_drift_is_noticed(world: AutoscalerWorld) -> None:
    """Small changes add up: what was seen last is what counts."""
    syncs = world.metric("reconciliations_total", action="none", error="none") or 0
    for milli in range(505, 540, 5):
        _use(world, f"{milli}m")
        await world.advance(1)
    assert (world.metric("reconciliations_total", action="none", error="none") or 0) > syncs


async def test_one_list_a_second(world: AutoscalerWorld) -> None:
    """It costs one list of the namespace a second, which the syncs use too."""
    world.cluster.requests.clear()
    await world.advance(8)
    assert 7 <= len(world.cluster.asked("GET", LISTS)) <= 9


async def test_a_broken_api_is_survived(world: AutoscalerWorld) -> None:
    """While usage cannot be listed nothing is noticed; afterwards changes are."""
    world.cluster.interfere("GET", LISTS, *[Response(500, {}, b"oops")] * 6)
    await world.advance(10)
    _use(world, "900m")
    await world.advance(3)
    assert world.replicas() == 4
