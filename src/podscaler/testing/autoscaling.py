"""A real controller on a fake cluster in memory, in virtual time, for tests of the autoscaler as a whole.

Only the cluster (`podscaler.testing.cluster.FakeCluster`) and the clock are fakes. A test makes an AutoscalerWorld,
adds objects (`add_web`), calls `start` and `advance`, and reads `replicas`, the requests, or the object `web`. At its
end it calls `close`. Objects are in NAMESPACE, the default namespace of FakeCluster.

A restart of the controller is `close`, `controller = make_controller()` and `start`. For a second controller beside the
first, append the task of its `run()` to `tasks`, so that `close` ends it.
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
from podscaler.testing.cluster import HPAS, NAMESPACE, FakeCluster

_LOOP_ITERATIONS = 60
"""How often the event loop runs after each wake-up: enough for all requests of a sync, which yield to it in turn."""


def spec(target: str = "web", minimum: int = 1, maximum: int = 10, **fields: Any) -> dict[str, Any]:
    """The spec (JSON of autoscaling/v2) of an HPA of the Deployment `target`, for 50 % CPU utilization.

    `minimum` and `maximum` are minReplicas and maxReplicas; `fields` are further fields, or others in their place.
    """
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "scaleTargetRef": {"kind": "Deployment", "name": target, "apiVersion": "apps/v1"},
        "minReplicas": minimum,
        "maxReplicas": maximum,
        "metrics": [{"type": "Resource", "resource": cpu}],
    } | fields


class NoRandomness(random.Random):
    """A generator of random numbers that makes every jitter 0."""

    def random(self) -> float:
        """Return 0."""
        return 0.0


class AutoscalerWorld:
    """A controller and its cluster.

    Args:
        recording: records the controller's syncs.
        lists_deployments: whether the controller can list and watch Deployments, from which it derives their scales;
            False: each sync reads the subresource scale.
        settings: fields of ControllerSettings that differ from the defaults; by default, histories are kept in memory
            and MetricSources are not read.

    Attributes:
        controller: the controller that `start` runs; `make_controller` makes it.
        tasks: the running controllers, which `close` ends.
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
        """A new controller of the cluster with these settings and this recording, which is not started."""
        client = Client(self.cluster, self.clock)
        return assembly.new_controller(client, self.settings, self.clock, recording=self.recording, rng=NoRandomness())

    def add_web(self, *, cpu: str = "500m", replicas: int = 1, **spec_arguments: Any) -> None:
        """Create the Deployment `web`, its pods, each of which uses `cpu` of 1 requested, and its HPA (`spec`)."""
        self.cluster.put_deployment("web", replicas)
        for number in range(replicas):
            self.cluster.put_pod(f"web-{number}", "web", cpu)
        self.cluster.put_autoscaler("web", spec(**spec_arguments))

    async def start(self) -> None:
        """Start `controller` and let it run until it waits."""
        self.tasks.append(asyncio.ensure_future(self.controller.run()))
        await self.advance(0)

    async def advance(self, span_s: float) -> None:
        """Advance virtual time by so many seconds."""
        await self.clock.advance(span_s, turns=_LOOP_ITERATIONS)

    def scale_reads(self, name: str = "web") -> int:
        """How many GETs of the scale of a Deployment were sent: one in each sync, unless scales are derived."""
        return len(self.cluster.asked("GET", f"deployments/{name}/scale"))

    async def scale_read_times(self, until_s: float, name: str = "web", step_s: float = 0.5) -> list[float]:
        """Advance time, and return when each GET of a Deployment's scale was sent, in seconds from the call.

        Args:
            until_s: the seconds to advance; the next multiple of `step_s` ends it.
            step_s: the precision of the result; GETs before the call count as at 0.
        """
        read_times_s: list[float] = []
        start_s = self.clock.monotonic_s()
        while True:
            elapsed_s = self.clock.monotonic_s() - start_s
            read_times_s += [elapsed_s] * (self.scale_reads(name) - len(read_times_s))
            if elapsed_s >= until_s:
                return read_times_s
            await self.advance(step_s)

    @property
    def web(self) -> dict[str, Any]:
        """The HPA `web` as it is stored now."""
        return self.cluster.collections[HPAS].objects[NAMESPACE, "web"]

    def replicas(self, name: str = "web") -> int:
        """The spec.replicas of a Deployment."""
        replicas: int = self.cluster.scales[NAMESPACE, name]["spec"]["replicas"]
        return replicas

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of a metric (`name` without prefix) that `controller` exports; None without these labels."""
        get_value = self.controller.telemetry.registry.get_sample_value
        return get_value(f"horizontal_pod_autoscaler_controller_{name}", labels)

    async def close(self) -> None:
        """Cancel the controllers in `tasks`, and return when they have ended."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
