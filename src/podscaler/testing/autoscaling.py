"""A controller at work on a cluster in memory, in virtual time: for tests of what the autoscaler does as a whole.

The cluster is `podscaler.testing.cluster.FakeCluster`; everything between it and the decision core is real.
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
    """An autoscaler's spec: half of the requested CPU."""
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "scaleTargetRef": {"kind": "Deployment", "name": target, "apiVersion": "apps/v1"},
        "minReplicas": minimum,
        "maxReplicas": maximum,
        "metrics": [{"type": "Resource", "resource": cpu}],
    } | more


class NoRandomness(random.Random):
    """Every jitter is as short as can be."""

    def random(self) -> float:
        """Nothing."""
        return 0.0


class AutoscalerWorld:
    """A controller at work on a cluster in memory.

    Args:
        recording: where the controller reports its syncs.
        lists_deployments: whether the controller may follow deployments, or has to ask for each scale.
        settings: the controller's, where they are not the defaults; histories are kept in memory unless said otherwise.
    """

    def __init__(self, recording: Recording | None = None, *, lists_deployments: bool = False, **settings: Any) -> None:
        self.recording = recording
        self.clock = VirtualClock()
        self.cluster = FakeCluster(lists_deployments=lists_deployments)
        self.settings = ControllerSettings(
            **({"sync_period_ns": 15 * NANOSECONDS, "history_namespace": None} | settings)
        )
        self.tasks: list[asyncio.Task[None]] = []
        self.controller = self.make_controller()

    def make_controller(self) -> Controller:
        """A controller on the cluster, not started."""
        client = Client(self.cluster, self.clock)
        return assembly.new_controller(client, self.settings, self.clock, recording=self.recording, rng=NoRandomness())

    def add_web(self, *, cpu: str = "500m", replicas: int = 1, **more: Any) -> None:
        """Make the deployment `web` with pods that use so much CPU (of 1 requested), and its autoscaler."""
        self.cluster.put_deployment("web", replicas)
        for number in range(replicas):
            self.cluster.put_pod(f"web-{number}", "web", cpu)
        self.cluster.put_autoscaler("web", spec(**more))

    async def start(self) -> None:
        """Start the controller and let it work until it waits."""
        self.tasks.append(asyncio.ensure_future(self.controller.run()))
        await self.advance(0)

    async def advance(self, span_s: float) -> None:
        """Let virtual time pass."""
        await self.clock.advance(span_s, turns=60)

    def looks(self, name: str = "web") -> int:
        """How often the scale of a target was read."""
        return len(self.cluster.asked("GET", f"deployments/{name}/scale"))

    async def look_times(self, until_s: float, name: str = "web", step_s: float = 0.5) -> list[float]:
        """When the target was looked at, in seconds from now on, beginning with the looks so far at 0."""
        times: list[float] = []
        start_s = self.clock.monotonic_s()
        while True:
            times += [self.clock.monotonic_s() - start_s] * (self.looks(name) - len(times))
            if self.clock.monotonic_s() - start_s >= until_s:
                return times
            await self.advance(step_s)

    @property
    def web(self) -> dict[str, Any]:
        """The autoscaler `web` as it is now."""
        return self.cluster.collections[HPAS].objects["shop", "web"]

    def replicas(self, name: str = "web") -> int:
        """What is wanted of a target."""
        found: int = self.cluster.scales["shop", name]["spec"]["replicas"]
        return found

    def metric(self, name: str, **labels: str) -> float | None:
        """A sample of the controller's own metrics, without their prefix."""
        sample = self.controller.telemetry.registry.get_sample_value
        return sample(f"horizontal_pod_autoscaler_controller_{name}", labels)

    async def close(self) -> None:
        """End the controller."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
