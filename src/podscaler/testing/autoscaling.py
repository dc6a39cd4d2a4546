"""A real controller on a fake cluster in memory, in virtual time, for tests of the autoscaler as a whole.

Only the cluster (`podscaler.testing.cluster.FakeCluster`) and the clock are fakes. A test makes an AutoscalerWorld,
adds objects (`add_web`), calls `start` and `advance`, and reads `replicas`, the requests, or the object `web`.
"""

import asyncio
import random
from typing import Any

from podscaler.base.clock import NANOSECONDS
from podscaler.controller import assembly
from podscaler.controller.controller import Controller
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.recording import Recording
from podscaler.kube.client.client import Client
from podscaler.testing.clock import VirtualClock
from podscaler.testing.cluster import HPAS, FakeCluster


def spec(target: str = "web", minimum: int = 1, maximum: int = 10, **more: Any) -> dict[str, Any]:
    """The spec of an HPA of the Deployment `target` with the target 50 % CPU utilization; `more` adds fields."""
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "scaleTargetRef": {"kind": "Deployment", "name": target, "apiVersion": "apps/v1"},
        "minReplicas": minimum,
        "maxReplicas": maximum,
        "metrics": [{"type": "Resource", "resource": cpu}],
    } | more


class NoRandomness(random.Random):
    """A generator of random numbers that makes every jitter 0."""

    def random(self) -> float:
        """Return 0."""
        return 0.0


class AutoscalerWorld:
    """A controller and its cluster.

    Args:
        recording: records the controller's syncs.
        lists_deployments: whether the controller can list and watch Deployments, or must read each scale.
        settings: fields of ControllerSettings that differ from the defaults; by default, histories are kept in memory
            and MetricSources are not read.
    """

    def __init__(self, recording: Recording | None = None, *, lists_deployments: bool = False, **settings: Any) -> None:
        self.recording = recording
        self.clock = VirtualClock()
        self.cluster = FakeCluster(lists_deployments=lists_deployments)
        self.settings = ControllerSettings(
            **({"sync_period_ns": 15 * NANOSECONDS, "history_namespace": None, "metric_sources": False} | settings)
        )
        self.tasks: list[asyncio.Task[None]] = []
        self.controller = self.make_controller()

    def make_controller(self) -> Controller:
        """Make another controller of the cluster, which is not started."""
        client = Client(self.cluster, self.clock)
        return assembly.new_controller(client, self.settings, self.clock, recording=self.recording, rng=NoRandomness())

    def add_web(self, *, cpu: str = "500m", replicas: int = 1, **more: Any) -> None:
        """Create the Deployment `web`, its pods, each of which uses `cpu` of 1 requested, and its HPA."""
        self.cluster.put_deployment("web", replicas)
        for number in range(replicas):
            self.cluster.put_pod(f"web-{number}", "web", cpu)
        self.cluster.put_autoscaler("web", spec(**more))

    async def start(self) -> None:
        """Start the controller and let it run until it waits."""
        self.tasks.append(asyncio.ensure_future(self.controller.run()))
        await self.advance(0)

    async def advance(self, span_s: float) -> None:
        """Advance virtual time by so many seconds."""
        await self.clock.advance(span_s, turns=60)

    def looks(self, name: str = "web") -> int:
        """How often the scale of a target was read, which is once in each sync."""
        return len(self.cluster.asked("GET", f"deployments/{name}/scale"))

    async def look_times(self, until_s: float, name: str = "web", step_s: float = 0.5) -> list[float]:
        """Advance to `until_s`; returns when the scale was read, in seconds from now, with former reads at 0."""
        times: list[float] = []
        start_s = self.clock.monotonic_s()
        while True:
            times += [self.clock.monotonic_s() - start_s] * (self.looks(name) - len(times))
            if self.clock.monotonic_s() - start_s >= until_s:
                return times
            await self.advance(step_s)

    @property
    def web(self) -> dict[str, Any]:
        """The HPA `web` as it is stored now."""
        return self.cluster.collections[HPAS].objects["shop", "web"]

    def replicas(self, name: str = "web") -> int:
        """The spec.replicas of a target."""
        replicas: int = self.cluster.scales["shop", name]["spec"]["replicas"]
        return replicas

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of one of the controller's own metrics (`name` without prefix), None if there is none."""
        sample = self.controller.telemetry.registry.get_sample_value
        return sample(f"horizontal_pod_autoscaler_controller_{name}", labels)

    async def close(self) -> None:
        """Stop the controllers."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
