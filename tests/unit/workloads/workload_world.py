"""A registry, a played node and some controllers in virtual time, for tests of workload controllers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from podscaler.api.kinds import catalog
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop, Reconciler
from podscaler.controlplane.registry.registry import Registry
from podscaler.testing import VirtualClock
from podscaler.testing.node import PlayedNode
from podscaler.testing.registry import open_registry

PODS = "pods"
STATUS_TURNS = 60


class WorkloadWorld:
    """What a test acts on; `pass_time` runs the controllers."""

    def __init__(self, registry: Registry, clock: VirtualClock) -> None:
        self.registry, self.clock = registry, clock
        self.node = PlayedNode(registry, clock)

    async def pass_time(self, span_s: float = 0.0) -> None:
        """Let time pass in six steps."""
        for _ in range(6):
            await self.clock.advance(span_s / 6 + 0.001, turns=STATUS_TURNS)

    async def change(self, resource: str, name: str, **spec: Any) -> Object:
        """Set fields of an object's spec."""
        return await self.registry.mutate(resource, "default", name, lambda obj: obj["spec"].update(spec))

    async def set_image(self, resource: str, name: str, image: str) -> None:
        """Change the template's image."""

        def change(obj: Object) -> None:
            obj["spec"]["template"]["spec"]["containers"][0]["image"] = image

        await self.registry.mutate(resource, "default", name, change)

    def get(self, resource: str, name: str) -> Object:
        """An object of the default namespace."""
        return self.registry.get(resource, "default", name)

    def pods(self) -> dict[str, Object]:
        """The pods that are not on their way out, by name."""
        return {p["metadata"]["name"]: p for p in self.registry.list(PODS) if "deletionTimestamp" not in p["metadata"]}

    def images(self) -> dict[str, str]:
        """The tag of each such pod's image."""
        return {name: pod["spec"]["containers"][0]["image"].partition(":")[2] for name, pod in self.pods().items()}

    def events(self, reason: str) -> list[str]:
        """Messages of the events with that reason, oldest first."""
        found = [event for event in self.registry.list("events") if event["reason"] == reason]
        return [event["message"] for event in sorted(found, key=lambda one: int(one["metadata"]["resourceVersion"]))]


@asynccontextmanager
async def opened(
    directory: Path, *makers: Callable[[Registry, VirtualClock], Reconciler[Any]]
) -> AsyncIterator[WorkloadWorld]:
    """A world in which the controllers that `makers` make are running."""
    clock = VirtualClock()
    async with open_registry(directory, catalog.RESOURCES, clock) as found:
        world = WorkloadWorld(found.registry, clock)
        loops = [ControlLoop(make(found.registry, clock), found.registry, clock) for make in makers]
        tasks = [asyncio.create_task(run) for run in (world.node.run(), *(loop.run() for loop in loops))]
        try:
            yield world
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
