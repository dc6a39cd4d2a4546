"""The controller on the embedded API server in real time: what virtual time cannot show."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from api_server_world import SPEC, ApiServerWorld, Object, eventually, named


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ApiServerWorld]:
    """A server and a controller on it."""
    made = ApiServerWorld(tmp_path)
    await made.start_server()
    await made.start_controller()
    yield made
    await made.close()


async def test_created_scaled_and_told(world: ApiServerWorld) -> None:
    """From the autoscaler's creation to the written scale, the status and the event, all over the API."""
    world.metrics.cpu = "900m"
    await world.create_web()
    text = "New size: 2; reason: cpu resource utilization (percentage of request) above target"
    await eventually(lambda: world.replicas() == 2 and ("SuccessfulRescale", text) in world.events())
    await eventually(lambda: "currentMetrics" in world.hpa().get("status", {}))  # it is written last
    status = world.hpa()["status"]
    assert (status["desiredReplicas"], status["currentMetrics"][0]["resource"]["current"]) == (
        2,
        {"averageUtilization": 90, "averageValue": "900m"},
    )


async def syncs(world: ApiServerWorld, count: int) -> None:
    """Return when metrics were asked for that many times from now on: all syncs but the last are over then."""
    wanted = world.metrics.asked + count
    await eventually(lambda: world.metrics.asked >= wanted)


async def test_quiet_means_no_writes(world: ApiServerWorld) -> None:
    """An autoscaler on target is not written again: its resourceVersion stands still over many syncs."""
    await world.create_web()
    await eventually(lambda: world.condition("ScalingActive") == "ValidMetricFound")
    await syncs(world, 3)
    version = world.hpa()["metadata"]["resourceVersion"]
    await syncs(world, 5)
    assert world.hpa()["metadata"]["resourceVersion"] == version


async def test_a_missing_target_heals(world: ApiServerWorld) -> None:
    """A target that does not exist is a condition with the server's words; once it exists, work begins."""
    hpa = named("web", spec=SPEC) | {"apiVersion": "autoscaling/v2"}
    await world.opened.registry.create("horizontalpodautoscalers.autoscaling", hpa)
    await eventually(lambda: ("FailedGetScale", 'deployments.apps "web" not found') in world.events())
    await world.opened.registry.delete("horizontalpodautoscalers.autoscaling", "default", "web")
    world.metrics.cpu = "900m"
    await world.create_web()
    await eventually(lambda: world.replicas() == 2)


async def test_an_edit_acts_at_once(world: ApiServerWorld) -> None:
    """A raised minimum is followed within a period."""
    await world.create_web()
    await eventually(lambda: world.condition("ScalingActive") == "ValidMetricFound")

    def raise_minimum(obj: Object) -> None:
        obj["spec"]["minReplicas"] = 4

    await world.opened.registry.mutate("horizontalpodautoscalers.autoscaling", "default", "web", raise_minimum)
    await eventually(lambda: world.replicas() == 4 and world.hpa()["status"].get("observedGeneration") == 2)


async def test_a_server_that_restarts(world: ApiServerWorld) -> None:
    """The server goes and comes back on the same address: the watches go on, and edits are followed."""
    await world.create_web()
    await eventually(lambda: world.condition("ScalingActive") == "ValidMetricFound")
    await world.stop_server()
    await asyncio.sleep(0.5)
    await world.start_server()
    world.metrics.cpu = "900m"
    await eventually(lambda: world.replicas() == 2)


async def test_watches_after_the_history_is_gone(world: ApiServerWorld) -> None:
    """Changes while the watches were cut, and a history that is compacted: 410, a new list, nothing missed."""
    await world.create_web()
    await eventually(lambda: world.condition("ScalingActive") == "ValidMetricFound")
    await world.server.stop()
    await world.add_pod("web-1")

    def raise_minimum(obj: Object) -> None:
        obj["spec"]["minReplicas"] = 3

    await world.opened.registry.mutate("horizontalpodautoscalers.autoscaling", "default", "web", raise_minimum)
    await world.opened.objects.compact()
    await world.server.start("127.0.0.1", world.port)
    await eventually(lambda: world.replicas() == 3)


async def test_somebody_else_scales_too(world: ApiServerWorld) -> None:
    """Scales that others keep changing are written over; no conflict remains."""
    world.metrics.cpu = "900m"
    await world.create_web()

    async def meddle() -> None:
        for _ in range(40):
            await world.opened.registry.mutate(
                "deployments.apps", "default", "web", lambda obj: obj["spec"].update(replicas=1)
            )
            await asyncio.sleep(0.02)

    await meddle()
    await eventually(lambda: world.replicas() == 2)
    assert "FailedRescale" not in {reason for reason, _ in world.events()}
