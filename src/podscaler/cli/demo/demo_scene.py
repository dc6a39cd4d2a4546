"""The objects of the demo: a web service that uses CPU, its autoscaler, and the shape of the load. Pure data.

Source: the walkthrough of the Kubernetes documentation (php-apache: 200m requested, 50 % asked for, 1 to 10 pods).
"""

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

NAME = "php-apache"
NAMESPACE = "default"
PORT = 8080
REQUESTED_MILLICORES = 200
TARGET_PCT = 50
MAX_REPLICAS = 10

UP_FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--metric-resolution=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=15s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=5s",
)
"""Shorter periods than in a cluster: a minute shows what takes ten there."""


def deployment() -> Object:
    """One pod of `hpa-example` that asks for a fifth of a core."""
    container = {
        "name": NAME,
        "image": "registry.k8s.io/hpa-example",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": f"{REQUESTED_MILLICORES}m"}},
        "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1},
    }
    labels = {"run": NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def service() -> Object:
    """The address under which the pods are reached."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"selector": {"run": NAME}, "ports": [{"port": PORT, "targetPort": 80}]},
    }


def autoscaler() -> Object:
    """1 to 10 pods, so that they use half of what they ask for."""
    target = {"type": "Utilization", "averageUtilization": TARGET_PCT}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "minReplicas": 1,
            "maxReplicas": MAX_REPLICAS,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


@dataclass(frozen=True, slots=True)
class LoadShape:
    """Requests per second over the demo: nothing, then `rate` for half of the time, then nothing again.

    Attributes:
        seconds: how long the demo may last.
        rate: requests per second while there is load; each uses about 50 ms of a core.
    """

    seconds: float
    rate: float = 10.0

    @property
    def begins_s(self) -> float:
        """When the load begins, seconds after the start."""
        return min(5.0, self.seconds * 0.05)

    @property
    def ends_s(self) -> float:
        """When it ends."""
        return self.seconds * 0.5

    def rate_at(self, elapsed_s: float) -> float:
        """Requests per second at that time."""
        return self.rate if self.begins_s <= elapsed_s < self.ends_s else 0.0
