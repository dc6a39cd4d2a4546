"""Claims that are deleted wait for the pods that use them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.controlplane.controllers.gc.claim_protection import ClaimProtection
from podscaler.controlplane.registry.registry import Registry
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

CLAIM = {
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def pod_with(volume: dict[str, Any]) -> dict[str, Any]:
    """A pod with one volume."""
    spec = {"containers": [{"name": "app", "image": "example.com/app"}], "volumes": [{"name": "v", **volume}]}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}


@asynccontextmanager
async def running(tmp_path: Path) -> AsyncIterator[tuple[Registry, VirtualClock]]:
    """A registry in which the controller works and one claim is."""
    clock = VirtualClock()
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened:
        await opened.registry.create("persistentvolumeclaims", CLAIM)
        loop = ControlLoop(ClaimProtection(opened.registry), opened.registry, clock, workers=1)
        task = asyncio.create_task(loop.run())
        yield opened.registry, clock
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def is_kept(registry: Registry, clock: VirtualClock) -> bool:
    """Whether the claim is still there after a while."""
    for _ in range(5):
        await clock.advance(0.01, turns=60)
    return registry.find("persistentvolumeclaims", "default", "data") is not None


async def test_a_claim_that_nobody_uses_goes(tmp_path: Path) -> None:
    """Its finalizer holds it up only while it is asked who uses it."""
    async with running(tmp_path) as (registry, clock):
        assert await is_kept(registry, clock)
        await registry.delete("persistentvolumeclaims", "default", "data")
        assert not await is_kept(registry, clock)


async def test_a_claim_goes_with_the_pod_that_uses_it(tmp_path: Path) -> None:
    """Not before."""
    async with running(tmp_path) as (registry, clock):
        await registry.create("pods", pod_with({"persistentVolumeClaim": {"claimName": "data"}}))
        await registry.delete("persistentvolumeclaims", "default", "data")
        assert await is_kept(registry, clock)
        await registry.delete("pods", "default", "web", grace_period_s=0)
        assert not await is_kept(registry, clock)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_uses_nothing(tmp_path: Path, phase: str) -> None:
    """It is over, whatever it names."""
    async with running(tmp_path) as (registry, clock):
        pod = await registry.create("pods", pod_with({"persistentVolumeClaim": {"claimName": "data"}}))
        await registry.delete("persistentvolumeclaims", "default", "data")
        assert await is_kept(registry, clock)
        await registry.update("pods", {**pod, "status": {**pod["status"], "phase": phase}}, subresource="status")
        assert not await is_kept(registry, clock)


@pytest.mark.parametrize(
    ("phase", "is_kept"), [pytest.param("Bound", True, id="bound"), pytest.param("Available", False, id="free")]
)
async def test_a_deleted_volume_stays_while_it_is_bound(tmp_path: Path, phase: str, is_kept: bool) -> None:
    """Its finalizer is removed once it is not."""
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    async with running(tmp_path) as (registry, clock):
        await registry.create("persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
        await registry.mutate(
            "persistentvolumes", "", "v", lambda one: one["status"].update(phase=phase), subresource="status"
        )
        await registry.delete("persistentvolumes", "", "v")
        await clock.advance(1)
        assert (registry.find("persistentvolumes", "", "v") is not None) == is_kept
