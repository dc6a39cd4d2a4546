"""The facts about running pods, kept by a watch."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from podscaler.controlplane.metrics.resource.pods import RunningPods
from podscaler.controlplane.registry.registry import ObjectEvent, Registry
from podscaler.testing import VirtualClock


def pod(name: str, *, namespace: str = "default", phase: str = "Running") -> dict[str, Any]:
    """A pod."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": phase}}


class OneWatch(Registry):
    """A registry with one watch, whose changes come from the test."""

    def __init__(self) -> None:
        self.changes: asyncio.Queue[ObjectEvent] = asyncio.Queue()

    async def watch(self, resource: str, *, initial: bool = True) -> AsyncIterator[ObjectEvent]:
        """The changes."""
        assert resource == "pods"
        while True:
            yield await self.changes.get()


@pytest.mark.parametrize(
    "end", [ObjectEvent("DELETED", pod("a")), ObjectEvent("MODIFIED", pod("a", phase="Succeeded"))]
)
async def test_pods_are_known_while_they_run(end: ObjectEvent) -> None:
    """A pod is there from the moment it runs until it ends or is deleted, in all and in its namespace."""
    registry, clock = OneWatch(), VirtualClock()
    facts = RunningPods(registry)
    following = asyncio.create_task(facts.run())
    seen = []
    for change in (
        ObjectEvent("ADDED", pod("a", phase="Pending")),
        ObjectEvent("ADDED", pod("b", namespace="other")),
        ObjectEvent("MODIFIED", pod("a")),
        end,
        end,
    ):
        registry.changes.put_nowait(change)
        await clock.advance(0)
        seen.append((sorted(facts.running()), sorted(facts.running_in("default"))))
    other, own = ("other", "b"), ("default", "a")
    assert seen == [([], []), ([other], []), ([own, other], ["a"]), ([other], []), ([other], [])]
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
