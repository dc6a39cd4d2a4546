"""The three metrics APIs as tests script them: loads that the running pods of an app share, and plain values.

On the real control plane the aggregation layer asks them, on the embedded one the gate. `answer` is the whole of it;
`questions` and `delay_s` are what `benchmarks.cluster_metrics.Http` wants of a script.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

GROUPS = {
    "metrics.k8s.io": ("v1beta1", "PodMetricsList"),
    "custom.metrics.k8s.io": ("v1beta2", "MetricValueList"),
    "external.metrics.k8s.io": ("v1beta1", "ExternalMetricValueList"),
}
CONTAINERS = ("app", "sidecar")
Pods = Callable[[str, str], list[str]]
"""From namespace and app to the names of the running pods."""


class PlayedMetrics:
    """See the module. Values are in thousandths.

    Args:
        pods: which run.

    Attributes:
        usage: CPU of all pods together, by namespace, app and container; what is not there is 0.
        values: of a metric, by namespace and name: of all pods together for metrics of pods.
        sharing: of metrics of objects and external ones, the app whose running pods share the value.
        is_out: whether every question is answered with 503.
        asked: how often metrics were asked for, by namespace.
    """

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self.usage: dict[tuple[str, str, str], int] = {}
        self.values: dict[tuple[str, str], int] = {}
        self.sharing: dict[tuple[str, str], str] = {}
        self.is_out = False
        self.asked: Counter[str] = Counter()
        self.questions = 0
        self.delay_s = 0.0

    def answer(self, path: str, query: str) -> tuple[int, Any]:
        """Status and document."""
        parts = path.strip("/").split("/")
        group = parts[1] if len(parts) > 1 else ""
        if group not in GROUPS:
            return (200, {}) if parts == ["apis"] else (404, _failure(404, "NotFound", "no such group"))
        if len(parts) < 4:
            return 200, _discovery(group, parts)
        self.questions += 1
        self.asked[parts[4] if len(parts) > 4 else ""] += 1
        if self.is_out:
            return 503, _failure(503, "ServiceUnavailable", "out of order")
        selector = parse_qs(query).get("labelSelector", [""])[0]
        items = self._items(group, parts, selector)
        if items is None:
            return 404, _failure(404, "NotFound", f"no metric {parts[-1]}")
        version, kind = GROUPS[group]
        return 200, {"kind": kind, "apiVersion": f"{group}/{version}", "metadata": {}, "items": items}

    def _items(self, group: str, parts: list[str], selector: str) -> list[Any] | None:
        namespace, app = parts[4], selector.partition("=")[2]
        if group == "metrics.k8s.io":
            return self._usages(namespace, [app] if app else self._apps(namespace))
        name = (namespace, parts[-1])
        if name not in self.values:
            return None
        if group == "custom.metrics.k8s.io" and parts[5] == "pods":
            return self._of_pods(name, app)
        return [_external(name, self._share(name)) if len(parts) == 6 else _of_object(parts, self._share(name))]

    def _apps(self, namespace: str) -> list[str]:
        return sorted({app for each, app, _ in self.usage if each == namespace})

    def _usages(self, namespace: str, apps: list[str]) -> list[Any]:
        return [
            _usage(namespace, pod, app, {each: self._used(namespace, app, each) for each in CONTAINERS})
            for app in apps
            for pod in self._pods(namespace, app)
        ]

    def _used(self, namespace: str, app: str, container: str) -> int:
        return self.usage.get((namespace, app, container), 0) // max(1, len(self._pods(namespace, app)))

    def _of_pods(self, name: tuple[str, str], app: str) -> list[Any]:
        pods = self._pods(name[0], app)
        return [_value(name, {"kind": "Pod", "name": pod}, self.values[name] // len(pods)) for pod in pods]

    def _share(self, name: tuple[str, str]) -> int:
        app = self.sharing.get(name)
        return self.values[name] // max(1, len(self._pods(name[0], app))) if app else self.values[name]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _usage(namespace: str, pod: str, app: str, cpu_milli: dict[str, int]) -> Any:
    containers = [{"name": name, "usage": {"cpu": f"{used}m", "memory": "16Mi"}} for name, used in cpu_milli.items()]
    metadata = {"name": pod, "namespace": namespace, "labels": {"app": app}}
    return {"metadata": metadata, "timestamp": _now(), "window": "1s", "containers": containers}


def _value(name: tuple[str, str], described: Any, milli: int) -> Any:
    described_object = {"namespace": name[0], "apiVersion": "v1"} | described
    metric = {"name": name[1], "selector": None}
    return {"describedObject": described_object, "metric": metric, "timestamp": _now(), "value": f"{milli}m"}


def _of_object(parts: list[str], milli: int) -> Any:
    return _value((parts[4], parts[-1]), {"kind": "Service", "name": parts[6]}, milli)


def _external(name: tuple[str, str], milli: int) -> Any:
    return {"metricName": name[1], "metricLabels": {}, "timestamp": _now(), "value": f"{milli}m"}


def _failure(code: int, reason: str, message: str) -> Any:
    text = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}} | text


def _discovery(group: str, parts: list[str]) -> Any:
    version, _ = GROUPS[group]
    known = {"groupVersion": f"{group}/{version}", "version": version}
    if len(parts) == 2:
        return {"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": [known], "preferredVersion": known}
    pods = {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
    resources = [pods] if group == "metrics.k8s.io" else []
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}", "resources": resources}
