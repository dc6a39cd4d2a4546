"""What a scenario of the demo consists of: its objects, its load, and how its course is shown.

`demo` plays one of them: `web_scenario`, `queue_scenario`, `requests_scenario`. The calls, in order: `start`, the
objects are created, `begin`, then `advance` and the texts every half second until `is_over`, `end`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podscaler.api.machinery import quantity
from podscaler.cli.demo.demo_story import Story

Object = dict[str, Any]
NAMESPACE = "default"

UP_FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--metric-resolution=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=15s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=5s",
)
"""Shorter periods than in a cluster: a minute shows what takes ten there."""


@dataclass(frozen=True, slots=True)
class DemoPlane:
    """The control plane of the demo, for scenarios with servers of their own.

    Attributes:
        folder: a temporary folder that is removed at the end; the data directory is another one.
        server: the URL of the API server.
        token: of its administrator.
        authorities_pem: the certificate that the API server is verified with.
    """

    folder: Path
    server: str
    token: str
    authorities_pem: bytes


@dataclass(frozen=True, slots=True)
class LoadShape:
    """The load over the demo: nothing, then `rate` for half of the time, then nothing again.

    Attributes:
        seconds: how long the demo may last.
        rate: a second, while there is load.
    """

    seconds: float
    rate: float

    @property
    def begins_s(self) -> float:
        """When the load begins, seconds after the start."""
        return min(5.0, self.seconds * 0.05)

    @property
    def ends_s(self) -> float:
        """When it ends."""
        return self.seconds * 0.5

    def rate_at(self, elapsed_s: float) -> float:
        """The rate at that time."""
        return self.rate if self.begins_s <= elapsed_s < self.ends_s else 0.0


class DemoScenario:
    """The base of scenarios; see the module.

    Attributes:
        name: of its Deployment and its HorizontalPodAutoscaler.
        goal: the sentence of the summary where everything was seen.
    """

    name = ""
    goal = ""

    def check(self) -> None:
        """Raise UsageError where a program is missing that it needs."""

    async def start(self, plane: DemoPlane) -> None:
        """Start the servers that it needs. Raises UsageError where one does not start."""

    def objects(self) -> Sequence[Object]:
        """The objects to create, Deployment and HorizontalPodAutoscaler among them; call it after `start`."""
        raise NotImplementedError

    async def begin(self, url: str) -> None:
        """The first pod is ready, and the load may begin.

        Args:
            url: of the Service; empty where there is none.
        """

    async def advance(self, story: Story, elapsed_s: float) -> None:
        """Set the load of this time."""
        raise NotImplementedError

    @property
    def is_loaded(self) -> bool:
        """Whether there is load now."""
        raise NotImplementedError

    def load_text(self) -> str:
        """The load now, of a fixed width."""
        raise NotImplementedError

    def metric_text(self, status: Object) -> str:
        """The metric in the status of the autoscaler, of a fixed width."""
        raise NotImplementedError

    def is_over(self, story: Story) -> bool:
        """Whether everything was seen, and nothing more will change."""
        return story.is_over()

    def is_success(self, story: Story) -> bool:
        """Whether what the scenario shows was seen."""
        return story.scaled_up and story.scaled_down

    def facts(self) -> Mapping[str, Any]:
        """Further entries of the summary."""
        return {}

    def fact_line(self) -> str:
        """Those entries as a line of text; empty: there are none."""
        return ""

    async def end(self) -> None:
        """End the load and the servers."""


def deployment(name: str, container: Object, *, annotations: Mapping[str, str] | None = None) -> Object:
    """One pod with that container, labelled `run: NAME`."""
    labels = {"run": name}
    metadata: Object = {"labels": labels}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": {"containers": [container]}},
        },
    }


def service(name: str, *, port: int, target_port: int) -> Object:
    """The address under which the pods are reached."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": {"run": name}, "ports": [{"port": port, "targetPort": target_port}]},
    }


def autoscaler(name: str, metric: Object, *, least: int = 1, most: int = 10) -> Object:
    """The autoscaler of the Deployment, with one metric."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [metric],
        },
    }


def external(metric: str, average: str) -> Object:
    """A metric of type External with an AverageValue."""
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "External", "external": {"metric": {"name": metric}, "target": target}}


def metric_source(name: str, system: str, settings: Object) -> Object:
    """A MetricSource that reads the metric of that name from a system."""
    return {
        "apiVersion": "podscaler.dev/v1alpha1",
        "kind": "MetricSource",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {system: settings},
    }


def average_value(status: Object) -> str:
    """The averageValue of the External metric in a status as a decimal number; `-` where there is none.

    Without replicas the average is that of a division by zero, which is the smallest int64.
    """
    for metric in status.get("currentMetrics") or []:
        found = metric.get("external", {}).get("current", {}).get("averageValue")
        if found is not None and not found.startswith("-"):
            return f"{quantity.parse(found).milli_value() / 1000:.1f}"
    return "-"
