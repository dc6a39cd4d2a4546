"""Scales that are derived, and metrics that are listed and shared, lead to the decisions that asking for each does."""

import random
from typing import Any

import pytest

from podscaler.controller.recording.recording import Recording, SyncRecord, SyncsEnd
from podscaler.core import decision
from podscaler.testing.autoscaling import AutoscalerWorld, spec

NAMES = [f"app{number}" for number in range(6)]
PERIODS = 12


class Kept(Recording):
    """Keeps what was decided: when, about whom, and what."""

    is_on = True

    def __init__(self) -> None:
        self.decided: dict[str, list[Any]] = {}

    def report(self, what: SyncRecord | SyncsEnd) -> None:
        """As Recording."""
        if isinstance(what, SyncRecord):
            self.decided.setdefault(what.autoscaler.metadata.name, []).append(_told(what.decision))


def _told(made: decision.Decision) -> Any:
    conditions = [(each.type, each.status, each.reason, each.message) for each in made.status.conditions or ()]
    return made.replicas, conditions, made.status.current_metrics, made.error


async def _play(seed: int, *, sharing: bool) -> tuple[dict[str, list[Any]], int]:
    """Some periods in which loads, replicas and targets change at random; what was decided, and what was asked."""
    rng, kept = random.Random(seed), Kept()
    world = AutoscalerWorld(kept, lists_deployments=sharing)
    if not sharing:
        await _asking(world)
    for name in NAMES:
        world.cluster.put_deployment(name, 2)
        _put_pods(world, name, 2, "500m")
        world.cluster.put_autoscaler(name, spec(name), uid=name)
    await world.start()
    await world.advance(1)
    for _ in range(PERIODS):
        for name in NAMES:
            _change(world, name, rng)
        await world.advance(15)
    await world.close()
    scales = len(world.cluster.asked("GET", "/scale")) + len(world.cluster.asked("GET", "metrics.k8s.io"))
    return kept.decided, scales


async def _asking(world: AutoscalerWorld) -> None:
    """Make the controller ask for everything."""
    observer = world.controller.processor.reconciler._observer
    observer._metrics = observer._metrics._source


def _put_pods(world: AutoscalerWorld, name: str, count: int, cpu: str) -> None:
    for number in range(count):
        world.cluster.put_pod(f"{name}-{number}", name, cpu)


def _change(world: AutoscalerWorld, name: str, rng: random.Random) -> None:
    """A new load, and now and then somebody else's scaling, a pod without usage, or a target that is gone."""
    _put_pods(world, name, rng.randrange(1, 4), f"{rng.randrange(100, 1200)}m")
    if rng.random() < 0.2:
        world.cluster.put_deployment(name, rng.randrange(0, 12))
    if rng.random() < 0.2:
        world.cluster.usage.pop(("shop", f"{name}-0"), None)


@pytest.mark.parametrize("seed", range(12))
async def test_the_same_is_decided(seed: int) -> None:
    """Every decision of every autoscaler is the same, and far less is asked."""
    asked_for, requests = await _play(seed, sharing=False)
    shared, fewer = await _play(seed, sharing=True)
    assert shared == asked_for
    assert fewer < requests / 3
