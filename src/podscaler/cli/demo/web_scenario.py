"""The demo's scenario `web`: a web service scaled by its CPU usage under requests at a given rate.

`podscaler.cli.demo.demo` runs it; `podscaler.cli.demo.requests_scenario` shares HttpScenario, which has the load.

Source: the HorizontalPodAutoscaler walkthrough of the Kubernetes documentation (php-apache: 200m requested, a target of
50 %, 1 to 10 pods).
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from podscaler.cli.demo import demo_scenario
from podscaler.cli.demo.demo_scenario import DemoScenario, LoadShape, Object
from podscaler.cli.demo.demo_story import Story
from podscaler.cli.demo.load import LoadGenerator

NAME = "php-apache"
PORT = 8080
REQUESTED_MILLICORES = 200
TARGET_PCT = 50
REQUESTS_PER_S = 10.0
"""The load while there is any; each request uses about 50 ms of a core."""


class WebLoad:
    """A task that sends requests to a Service, from the construction to `end`.

    Args:
        url: the Service's URL.
    """

    def __init__(self, url: str) -> None:
        self._generator = LoadGenerator(url)
        self._task = asyncio.create_task(self._generator.run())

    @property
    def requests_per_s(self) -> float:
        """The rate of requests, which may be changed at any time."""
        return self._generator.requests_per_s

    @requests_per_s.setter
    def requests_per_s(self, requests_per_s: float) -> None:
        self._generator.requests_per_s = requests_per_s

    def facts(self) -> Mapping[str, Any]:
        """Requests, and latencies in seconds."""
        outcomes = self._generator.outcomes
        return {
            "requests": {"served": outcomes.served, "failed": outcomes.failed},
            "latencySeconds": {f"p{percent}": round(outcomes.percentile_s(percent), 3) for percent in (50, 95, 99)},
        }

    def fact_line(self) -> str:
        """How many requests were served, and how fast."""
        requests, latency = self.facts()["requests"], self.facts()["latencySeconds"]
        return (
            f"{requests['served']} requests served, {requests['failed']} failed; "
            f"latency p50 {latency['p50']:.2f} s, p95 {latency['p95']:.2f} s, p99 {latency['p99']:.2f} s"
        )

    async def end(self) -> None:
        """End the requests."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class HttpScenario(DemoScenario):
    """A scenario whose load is HTTP requests to its Service; subclasses have the objects and the metric.

    Args:
        seconds: how long the demo may last.

    Attributes:
        requests_per_s: the rate while there is load.
    """

    requests_per_s = 0.0

    def __init__(self, seconds: float) -> None:
        self._shape = LoadShape(seconds, self.requests_per_s)
        self._web_load: WebLoad | None = None

    async def begin(self, url: str) -> None:
        """Begin to send requests."""
        self._web_load = WebLoad(url)

    async def advance(self, story: Story, elapsed_s: float) -> None:
        """Set the rate."""
        del story
        self._running_load.requests_per_s = self._shape.rate_at(elapsed_s)

    @property
    def is_loaded(self) -> bool:
        """Whether requests are sent."""
        return self._running_load.requests_per_s > 0

    def load_text(self) -> str:
        """`load 10.0/s`."""
        return f"load {self._running_load.requests_per_s:4.1f}/s"

    def facts(self) -> Mapping[str, Any]:
        """Requests, and latencies in seconds."""
        return self._running_load.facts() if self._web_load is not None else {}

    def fact_line(self) -> str:
        """How many requests were served, and how fast."""
        return self._running_load.fact_line() if self._web_load is not None else ""

    async def end(self) -> None:
        """End the requests."""
        if self._web_load is not None:
            await self._web_load.end()

    @property
    def _running_load(self) -> WebLoad:
        assert self._web_load is not None, "the load has begun"
        return self._web_load


class WebScenario(HttpScenario):
    """The objects and the metric of `podscaler demo`; HttpScenario has the load."""

    name = NAME
    goal = "It scaled up under load and down again without it."
    requests_per_s = REQUESTS_PER_S

    def objects(self) -> Sequence[Object]:
        """Pods of `hpa-example` that request 200m, a Service, and an autoscaler: 1 to 10 pods that use half of it."""
        container = {
            "name": NAME,
            "image": "registry.k8s.io/hpa-example",
            "ports": [{"containerPort": 80}],
            "resources": {"requests": {"cpu": f"{REQUESTED_MILLICORES}m"}},
            "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1},
        }
        target = {"type": "Utilization", "averageUtilization": TARGET_PCT}
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        return (
            demo_scenario.deployment(NAME, container),
            demo_scenario.service(NAME, port=PORT, target_port=80),
            demo_scenario.autoscaler(NAME, metric),
        )

    def metric_text(self, status: Object) -> str:
        """`cpu  81%`."""
        utilization_pct = _utilization_pct(status)
        return f"cpu {'  -  ' if utilization_pct is None else f'{utilization_pct:4d}%'}"


def _utilization_pct(status: Object) -> int | None:
    """The CPU utilization in the status of a HorizontalPodAutoscaler, in percent; None if it has none yet."""
    for metric in status.get("currentMetrics") or []:
        percent: int | None = metric.get("resource", {}).get("current", {}).get("averageUtilization")
        if percent is not None:
            return percent
    return None
