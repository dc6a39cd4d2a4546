"""Fixtures of the node's tests: a real registry, a stage on which containers are played, virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.controlplane.kubelet.pods.pod_worker import PodWorker
from podscaler.controlplane.registry.registry import Object
from podscaler.testing import VirtualClock
from podscaler.testing.containers import PlayedContainers
from podscaler.testing.registry import OpenRegistry, open_registry


@pytest.fixture
def clock() -> VirtualClock:
    """Time that stands still at 2026-01-01T00:00:00Z."""
    return VirtualClock()


@pytest.fixture
async def opened(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[OpenRegistry]:
    """A registry of all kinds."""
    stored = [resource for resource in catalog.RESOURCES if resource.stored]
    async with open_registry(tmp_path / "data", stored, clock) as found:
        yield found


class Played:
    """One pod on the stage, with its worker."""

    def __init__(self, stage: PlayedContainers, opened: OpenRegistry, clock: VirtualClock) -> None:
        self.stage = stage
        self.registry = opened.registry
        self.clock = clock
        self.worker: PodWorker | None = None
        self._task: asyncio.Task[None] | None = None

    async def begin(self, name: str = "web", *, annotations: dict[str, str] | None = None, **spec: Any) -> "Played":
        """Create the pod, bound to the node, and give it a worker."""
        metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "node", **spec}}
        self.worker = PodWorker(self.stage.host, await self.registry.create("pods", pod))
        self._task = asyncio.create_task(self.worker.run())
        await self.clock.advance(0)
        return self

    async def begin_again(self) -> None:
        """A new worker for the pod as it is stored, as after a restart of the node."""
        self.worker = PodWorker(self.stage.host, self.pod)
        self._task = asyncio.create_task(self.worker.run())
        await self.clock.advance(0)

    @property
    def pod(self) -> Object:
        """The pod as it is stored."""
        return self.registry.get("pods", "default", "web")

    @property
    def is_gone(self) -> bool:
        """Whether the object is gone and the worker is done."""
        return self.registry.find("pods", "default", "web") is None

    def container(self, name: str = "c") -> dict[str, Any]:
        """The status of one container."""
        status = self.pod["status"]
        entries = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
        return next(entry for entry in entries if entry["name"] == name)

    def state(self, name: str = "c") -> str:
        """The state of one container in a word: `running`, or the reason it is in."""
        kind, detail = next(iter(self.container(name)["state"].items()))
        return kind if kind == "running" else str(detail["reason"])

    async def delete(self, grace_period_s: int | None = None) -> None:
        """Delete the pod as a user does, and tell the worker as the node does."""
        await self.registry.delete("pods", "default", "web", grace_period_s=grace_period_s)
        assert self.worker is not None
        found = self.registry.find("pods", "default", "web")
        self.worker.update(found) if found else self.worker.forget()
        await self.clock.advance(0)

    async def events(self) -> list[tuple[str, str]]:
        """Reasons and messages of the pod's events, oldest first."""
        await self.stage.host.events.flush()
        found = self.registry.list("events", "default")
        in_order = sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [(event["reason"], event["message"]) for event in in_order]

    async def end(self) -> None:
        """Stop whatever still runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.stage.host.background.cancel_all()
        await self.stage.host.events.flush()


@pytest.fixture
async def played(tmp_path: Path, opened: OpenRegistry, clock: VirtualClock) -> AsyncIterator[Played]:
    """A pod to play with."""
    found = Played(PlayedContainers(opened.registry, clock, tmp_path / "node"), opened, clock)
    yield found
    await found.end()


@pytest.fixture
def container() -> Callable[..., dict[str, Any]]:
    """Makes a container of a pod's spec."""

    def make(name: str = "c", **fields: Any) -> dict[str, Any]:
        return {"name": name, "image": "any", "command": ["/bin/app"], **fields}

    return make
