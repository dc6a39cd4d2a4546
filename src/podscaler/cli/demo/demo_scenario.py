"""The base class of the demo's scenarios, and functions that make their Kubernetes objects.

`web_scenario`, `queue_scenario` and `requests_scenario` are the scenarios; `podscaler.cli.demo.demo` runs one. It
calls, in order: `check`, `start`, `objects` (whose result `podscaler.cli.demo.demo_stage` creates), `begin`, then every
half second `advance` and the functions that return text, until `is_over`; `end` in any case; then `is_success`, `facts`
and `fact_line` for the summary. A new scenario is a subclass of DemoScenario, and an item of SCENARIOS there.
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
    "--pod-network=loopback",
)
"""Shorter periods than in a cluster: a minute shows what takes ten there. Pods share the machine's network, so that
they reach the servers of scenarios, which listen on 127.0.0.1, also where `up` runs as root."""


@dataclass(frozen=True, slots=True)
class DemoControlPlane:
    """The control plane of the demo, for scenarios with servers of their own.

    Attributes:
        folder: a temporary folder that is removed at the end; the data directory is another one.
        server_url: of the API server.
        token: the bearer token of the cluster's administrator.
        authorities_pem: the certificate that the API server is verified with.
    """

    folder: Path
    server_url: str
    token: str
    authorities_pem: bytes


@dataclass(frozen=True, slots=True)
class LoadShape:
    """The load over the demo: nothing at first, then `requests_per_s` up to half of the time, then nothing again.

    Attributes:
        duration_s: how long the demo may last.
        requests_per_s: while there is load.
    """

    duration_s: float
    requests_per_s: float

    @property
    def begins_s(self) -> float:
        """When the load begins, seconds after the start: after a twentieth of the time, 5 s at most."""
        return min(5.0, self.duration_s * 0.05)

    @property
    def ends_s(self) -> float:
        """When the load ends, seconds after the start."""
        return self.duration_s * 0.5

    def rate_at(self, elapsed_s: float) -> float:
        """Requests a second at that time."""
        return self.requests_per_s if self.begins_s <= elapsed_s < self.ends_s else 0.0


class DemoScenario:
    """A workload with its autoscaler and its load; subclasses are the scenarios.

    Attributes:
        name: the name of the Deployment and of the HorizontalPodAutoscaler.
        goal: the first sentence of the summary of a demo that succeeded.
    """

    name = ""
    goal = ""

    def check(self) -> None:
        """Raise UsageError if a program is missing that the scenario needs."""

    async def start(self, control_plane: DemoControlPlane) -> None:
        """Start the scenario's own servers (Redis, Prometheus). Raises UsageError if one does not start."""

    def objects(self) -> Sequence[Object]:
        """The objects to create, Deployment and HorizontalPodAutoscaler among them; call it after `start`."""
        raise NotImplementedError  # every scenario has its own

    async def begin(self, url: str) -> None:
        """Prepare the load; called when the first pod is ready.

        Args:
            url: the Service's URL; empty if there is no Service.
        """

    async def advance(self, story: Story, elapsed_s: float) -> None:
        """Set the load for the time `elapsed_s` seconds after the start."""
        raise NotImplementedError  # every scenario has its own

    @property
    def is_loaded(self) -> bool:
        """Whether there is load now."""
        raise NotImplementedError  # every scenario has its own

    def load_text(self) -> str:
        """The load now, of a fixed width."""
        raise NotImplementedError  # every scenario has its own

    def metric_text(self, status: Object) -> str:
        """The metric in the status of the autoscaler, of a fixed width."""
        raise NotImplementedError  # every scenario has its own

    def is_over(self, story: Story) -> bool:
        """Whether everything was seen, and nothing more will change."""
        return story.is_over()

    def is_success(self, story: Story) -> bool:
        """Whether what the scenario shows was seen."""
        return story.scaled_up and story.scaled_down

    def facts(self) -> Mapping[str, Any]:
        """Further entries of the summary, JSON-ready by name."""
        return {}

    def fact_line(self) -> str:
        """The entries of `facts` as a line of text; empty if there are none."""
        return ""

    async def end(self) -> None:
        """End the load and the servers."""


def deployment(name: str, container: Object, *, annotations: Mapping[str, str] | None = None) -> Object:
    """A Deployment of one pod with that container, labelled `run: NAME`."""
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
    """A Service for the pods with the label `run: NAME`."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": {"run": name}, "ports": [{"port": port, "targetPort": target_port}]},
    }


def autoscaler(name: str, metric: Object, *, min_replicas: int = 1, max_replicas: int = 10) -> Object:
    """A HorizontalPodAutoscaler of the Deployment of that name, with one metric and these bounds of replicas."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": min_replicas,
            "maxReplicas": max_replicas,
            "metrics": [metric],
        },
    }


def external_metric(metric: str, average_value: str) -> Object:
    """A metric of type External with a target of type AverageValue."""
    target = {"type": "AverageValue", "averageValue": average_value}
    return {"type": "External", "external": {"metric": {"name": metric}, "target": target}}


def metric_source(name: str, system: str, settings: Object) -> Object:
    """A MetricSource that reads the metric of that name from a system."""
    return {
        "apiVersion": "podscaler.dev/v1alpha1",
        "kind": "MetricSource",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {system: settings},
    }


def average_value_text(status: Object) -> str:
    """The averageValue of the External metric in a status as a decimal number; `-` where there is none.

    Without replicas kube-controller-manager divides by zero and reports the smallest int64, which counts as none here.
    """
    for metric in status.get("currentMetrics") or []:
        average = metric.get("external", {}).get("current", {}).get("averageValue")
        if average is not None and not average.startswith("-"):
            return f"{quantity.parse(average).milli_value() / 1000:.1f}"
    return "-"
