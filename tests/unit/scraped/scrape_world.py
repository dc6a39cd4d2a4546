"""Pods that expose metrics, in virtual time: a real registry, and bodies that the test states.

Called by the tests of scraping.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yarl import URL

from podscaler.api.kinds import catalog
from podscaler.controlplane.metrics.custom.apis import MetricValues
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.metrics.resource.pods import RunningPods
from podscaler.controlplane.metrics.scraped.scrape_client import ScrapeError
from podscaler.controlplane.metrics.scraped.scraper import Scraper
from podscaler.controlplane.registry.providers import MetricsRequest
from podscaler.controlplane.registry.registry import Registry
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

Object = dict[str, Any]
INTERVAL_S = 10.0
METRICS_PORT = {"name": "metrics", "containerPort": 9090}


@dataclass
class ScrapeWorld:
    """What a test works with.

    Attributes:
        bodies: what pods answer, by name; an exception is raised; a pod without one refuses.
        asked: the URLs that were fetched.
    """

    registry: Registry
    clock: VirtualClock
    apis: MetricValues
    bodies: dict[str, str | Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    slow_s: float = 0.0

    async def fetch(self, url: URL, timeout_s: float) -> tuple[str, str]:
        """Answers for the pods, whose names stand in place of hosts."""
        self.asked.append(str(url))
        await self.clock.sleep(self.slow_s)
        assert timeout_s == INTERVAL_S
        body = self.bodies.get(url.host or "", ScrapeError(f"GET {url} failed: refused"))
        if isinstance(body, Exception):
            raise body
        return body, "text/plain"

    async def run_pod(self, name: str, body: str | Exception, owner: Object | None = None, **labels: str) -> None:
        """Make a pod that runs and answers `body`, and let it be scraped."""
        self.bodies[name] = body
        metadata = {"name": name, "namespace": "default", "labels": labels or {"app": "web"}}
        if owner is not None:
            reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner["metadata"]["name"]}
            metadata["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
        container = {"name": "c", "image": "web", "ports": [METRICS_PORT]}
        made = await self.registry.create("pods", {"metadata": metadata, "spec": {"containers": [container]}})
        await self.registry.update("pods", {**made, "status": {"phase": "Running"}}, subresource="status")
        await self.rounds(1)

    async def rounds(self, count: int) -> None:
        """Let so many rounds pass."""
        for _ in range(count):
            await self.clock.advance(INTERVAL_S, turns=200)

    def values(self, kind: str, name: str, metric: str = "", **selectors: str) -> dict[str, str]:
        """The values of a custom metric by object."""
        query = MetricsRequest("custom.metrics.k8s.io", "v1beta2", "default", kind, name, metric, **selectors)
        return {each["describedObject"]["name"]: each["value"] for each in self.apis.list_values(query)["items"]}

    def events(self) -> list[tuple[str, str]]:
        """(pod, message) of all events."""
        found = self.registry.list("events", "default")
        return sorted((each["involvedObject"]["name"], each["message"]) for each in found)


@asynccontextmanager
async def scrape_world(folder: Path) -> AsyncIterator[ScrapeWorld]:
    """A world without pods."""
    clock = VirtualClock()
    async with open_registry(folder, [each for each in catalog.RESOURCES if each.stored], clock) as opened:
        registry = opened.registry
        pods = RunningPods(registry)
        world: ScrapeWorld

        def locate(pod: Mapping[str, Any], port: int) -> tuple[str, int]:
            return pod["metadata"]["name"], port

        async def fetch(url: URL, timeout_s: float) -> tuple[str, str]:
            return await world.fetch(url, timeout_s)

        kinds = DescribableKinds(catalog.RESOURCES)
        scraper = Scraper(registry, kinds, locate, fetch, clock=clock, interval_s=INTERVAL_S)
        apis = MetricValues(registry, catalog.RESOURCES, pods.running_in, clock, scraped=scraper.index)
        world = ScrapeWorld(registry, clock, apis)
        tasks = [asyncio.create_task(each) for each in (pods.run(), scraper.run(), apis.run())]
        await clock.advance(0)
        yield world
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
