"""Metrics from ConfigMaps on a real registry in virtual time, with pods that the test makes up.

Called by the tests of metric values.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podscaler.api.kinds import catalog
from podscaler.controlplane.metrics.custom.apis import MetricValues
from podscaler.controlplane.metrics.resource.pods import PodFact
from podscaler.controlplane.registry.providers import MetricsRequest
from podscaler.controlplane.registry.registry import Registry
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

Object = dict[str, Any]
CUSTOM = "custom.metrics.k8s.io"
EXTERNAL = "external.metrics.k8s.io"
LABEL = "podscaler.dev/metrics"


def config_map(name: str, api: str | None, data: Mapping[str, str], **extra: Any) -> Object:
    """A ConfigMap of the namespace default, labelled for `api` (None: without the label)."""
    labels = {} if api is None else {LABEL: api}
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}, "data": dict(data), **extra}


def pod(name: str, *, ready: bool = True, **labels: str) -> PodFact:
    """A running pod."""
    return PodFact(
        {"name": name, "namespace": "default", "labels": labels}, f"uid-{name}", ("c",), None, None, ready, ""
    )


@dataclass
class MetricWorld:
    """What a test works with; `pods` may be changed at any time."""

    registry: Registry
    clock: VirtualClock
    apis: MetricValues
    pods: dict[str, PodFact] = field(default_factory=dict)

    def run_pods(self, *pods: PodFact) -> None:
        """These pods run now."""
        self.pods.clear()
        self.pods.update({one.metadata["name"]: one for one in pods})

    async def state(self, api: str, name: str = "load", **data: str) -> None:
        """Make or replace a ConfigMap and let it be read."""
        wanted = config_map(name, api, data)
        if self.registry.find("configmaps", "default", name) is None:
            await self.registry.create("configmaps", wanted)
        else:
            await self.registry.update("configmaps", wanted)
        await self.clock.advance(0, turns=200)

    def custom(self, resource: str, name: str, metric: str = "", **selectors: str) -> Object:
        """The v1beta2 answer for objects of the namespace default."""
        return self.apis.list_values(MetricsRequest(CUSTOM, "v1beta2", "default", resource, name, metric, **selectors))

    def external(self, metric: str, selector: str = "") -> Object:
        """The answer for an external metric of the namespace default."""
        return self.apis.list_values(MetricsRequest(EXTERNAL, "v1beta1", "default", metric, label_selector=selector))

    def values(self, resource: str, name: str, metric: str = "", **selectors: str) -> dict[str, str]:
        """The values of a custom metric by object."""
        items = self.custom(resource, name, metric, **selectors)["items"]
        return {item["describedObject"]["name"]: item["value"] for item in items}

    def events(self) -> list[tuple[str, str]]:
        """(fieldPath, message) of all events, in the order of their names' last parts: of time."""
        events = self.registry.list("events", "default")
        shown = sorted(events, key=lambda event: event["metadata"]["name"].rpartition(".")[2])
        return [(event["involvedObject"]["fieldPath"], event["message"]) for event in shown]


@asynccontextmanager
async def metric_world(folder: Path) -> AsyncIterator[MetricWorld]:
    """A world without ConfigMaps and pods."""
    clock = VirtualClock()
    async with open_registry(folder, [each for each in catalog.RESOURCES if each.stored], clock) as opened:
        pods: dict[str, PodFact] = {}
        apis = MetricValues(
            opened.registry, catalog.RESOURCES, lambda namespace: pods if namespace == "default" else {}, clock
        )
        task = asyncio.create_task(apis.run())
        await clock.advance(0)
        yield MetricWorld(opened.registry, clock, apis, pods)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
