"""Recordings of an autoscaler as lines, made of tables."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def at(second: float) -> str:
    """The instant that many seconds after the start of the recording."""
    return (START + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def pod(name: str, *, created_s: float = -600, ready_after_s: float = 9, limit: str | None = None) -> dict[str, Any]:
    """A ready pod that requests 200m."""
    resources = {"requests": {"cpu": "200m"}} | ({"limits": {"cpu": limit}} if limit else {})
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": at(created_s + ready_after_s)}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "resources": resources}]},
        "status": {"phase": "Running", "startTime": at(created_s), "conditions": [ready]},
    }


def usage(second: float, used_milli: dict[str, int], window_s: int = 15) -> dict[str, Any]:
    """The response of the resource metrics API, for pods with one container that use CPU alone."""
    pods = {name: {"app": {"cpu": f"{milli}m"}} for name, milli in used_milli.items()}
    return container_usage(second, pods, window_s)


def container_usage(second: float, pods: dict[str, dict[str, dict[str, str]]], window_s: int = 15) -> dict[str, Any]:
    """The response of the resource metrics API: quantities by pod, container and resource."""
    items = [
        {
            "metadata": {"name": name, "namespace": "default"},
            "timestamp": at(second),
            "window": f"{window_s}s",
            "containers": [{"name": container, "usage": amounts} for container, amounts in containers.items()],
        }
        for name, containers in pods.items()
    ]
    return {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items}


def hpa(name: str = "web", metrics: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """An autoscaler over CPU utilization of 50 %, or over other metrics."""
    target = {"type": "Utilization", "averageUtilization": 50}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    return {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
            "minReplicas": 1,
            "maxReplicas": 10,
            "metrics": list(metrics) or [cpu],
        },
    }


def sync(second: float, pods: Sequence[dict[str, Any]], *metrics: Any, autoscaler: Any = None) -> dict[str, Any]:
    """A sync line."""
    return {
        "time": at(second),
        "hpa": autoscaler or hpa(),
        "scale": {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "spec": {"replicas": len(pods)},
            "status": {"replicas": len(pods), "selector": "app=web"},
        },
        "pods": list(pods),
        "metrics": list(metrics),
    }


def lines(syncs: Iterable[dict[str, Any]]) -> list[bytes]:
    """The recording of these syncs."""
    return [json.dumps(each).encode() for each in ({"recording": 1, "kubernetes": "1.37.0", "flags": {}}, *syncs)]


def steady(used_milli: Sequence[int], *, limit: str | None = None, period_s: int = 15) -> list[bytes]:
    """Two pods that use each of these amounts together, one for each sync; samples are 5 seconds old."""
    pods = [pod("web-0", limit=limit), pod("web-1", limit=limit, ready_after_s=11)]
    return lines(
        sync(index * period_s, pods, usage(index * period_s - 5, {"web-0": each // 2, "web-1": each - each // 2}))
        for index, each in enumerate(used_milli)
    )
