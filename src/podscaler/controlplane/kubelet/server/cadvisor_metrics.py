"""/metrics/cadvisor of the node: usage and limits of containers, pods and the machine, named as cAdvisor names them.

`node_server` calls the page for each scrape; dashboards and `podscaler backtest` on a Prometheus read such series.

Source: cAdvisor 0.60's Prometheus collector with the labels of the kubelet in Kubernetes v1.37 (container, id, image,
name, namespace, pod). The row of a pod has an empty `container`, the row of the machine the id `/`.

Differs: only CPU, memory, start times and limits. Working set, RSS and usage are all the resident memory of the
processes. There is no sandbox container.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import psutil

from podscaler.api.machinery.quantity import Quantity
from podscaler.base.clock import NANOSECONDS
from podscaler.base.version import __version__
from podscaler.controlplane.kubelet.server import metrics_text
from podscaler.controlplane.kubelet.server.metrics_text import CONTENT_TYPE, MetricFamily, MetricSample
from podscaler.controlplane.kubelet.server.node_server import NodePage
from podscaler.controlplane.metrics.resource.totals import PodTotal, UsageSnapshot, UsageTotal

PATH: Final = "/metrics/cadvisor"
CPU_PERIOD_US: Final = 100_000
SHARES_PER_CORE: Final = 1024
MIN_SHARES: Final = 2

Object = Mapping[str, Any]
_MEMORY: Final = {
    "container_memory_rss": "Size of RSS in bytes.",
    "container_memory_usage_bytes": "Current memory usage in bytes, "
    "including all memory regardless of when it was accessed",
    "container_memory_working_set_bytes": "Current working set in bytes.",
}
_LIMITS: Final = {
    "container_spec_cpu_period": "CPU period of the container.",
    "container_spec_cpu_quota": "CPU quota of the container.",
    "container_spec_cpu_shares": "CPU share of the container.",
    "container_spec_memory_limit_bytes": "Memory limit for the container.",
}


class _Row(NamedTuple):
    """The usage of a cgroup: of a container, a pod or the machine.

    Attributes:
        container: the container in the pod's spec; empty for pods and the machine.
    """

    labels: dict[str, str]
    usage: UsageTotal | PodTotal
    container: Object
    started_ns: int


def cadvisor_page(snapshot: Callable[[], UsageSnapshot | None], pods: Callable[[], Sequence[Object]]) -> NodePage:
    """The page of what `snapshot` and `pods` (the pods of the node) return."""
    return NodePage(CONTENT_TYPE, lambda: asyncio.to_thread(render, snapshot(), pods()))


def render(snapshot: UsageSnapshot | None, pods: Sequence[Object]) -> bytes:
    """The text, families sorted by name; a snapshot of None has the error of the scrape only."""
    families = {"container_scrape_error": _scrape_error(snapshot), "cadvisor_version_info": _version()}
    if snapshot is not None:
        rows = list(_rows(snapshot, {pod["metadata"]["uid"]: pod for pod in pods}))
        families |= _usage_families(snapshot, rows) | _limit_families(rows) | _machine_families()
    ordered = [families[name] for name in sorted(families)]
    return metrics_text.render(ordered, None if snapshot is None else snapshot.at_ns)


_Families = dict[str, tuple[MetricFamily, list[MetricSample]]]


def _usage_families(snapshot: UsageSnapshot, rows: Sequence[_Row]) -> _Families:
    """CPU, memory and the time of the measurement, for each container."""
    cpu = "container_cpu_usage_seconds_total"
    cpu_samples = [_with_cpu(row) for row in rows]
    families = {cpu: (MetricFamily(cpu, "Cumulative cpu time consumed in seconds.", "counter"), cpu_samples)}
    for name, text in _MEMORY.items():
        samples = [MetricSample(row.labels, row.usage.memory_bytes) for row in rows]
        families[name] = (MetricFamily(name, text, "gauge"), samples)
    seen = "container_last_seen"
    seen_samples = [MetricSample(row.labels, snapshot.at_ns // NANOSECONDS) for row in rows]
    families[seen] = (MetricFamily(seen, "Last time a container was seen by the exporter", "gauge"), seen_samples)
    return families


def _limit_families(rows: Sequence[_Row]) -> _Families:
    """The start times and the limits of containers."""
    start, text = "container_start_time_seconds", "Start time of the container since unix epoch in seconds."
    started = [
        MetricSample(row.labels, row.started_ns // NANOSECONDS, has_time=False) for row in rows if row.started_ns
    ]
    families = {start: (MetricFamily(start, text, "gauge"), started)}
    limits = [(row.labels, _limits(row.container)) for row in rows if row.container]
    for name, text in _LIMITS.items():
        samples = [MetricSample(labels, values[name], has_time=False) for labels, values in limits if name in values]
        families[name] = (MetricFamily(name, text, "gauge"), samples)
    return families


def _machine_families() -> _Families:
    """The cores and the memory of the machine."""
    cores, memory = "machine_cpu_cores", "machine_memory_bytes"
    return {
        cores: (
            MetricFamily(cores, "Number of logical CPU cores.", "gauge"),
            [MetricSample({}, os.cpu_count() or 1, has_time=False)],
        ),
        memory: (
            MetricFamily(memory, "Amount of memory installed on the machine.", "gauge"),
            [MetricSample({}, psutil.virtual_memory().total, has_time=False)],
        ),
    }


def _scrape_error(snapshot: UsageSnapshot | None) -> tuple[MetricFamily, list[MetricSample]]:
    text = "1 if there was an error while getting container metrics, 0 otherwise"
    return MetricFamily("container_scrape_error", text, "gauge"), [
        MetricSample({}, float(snapshot is None), has_time=False)
    ]


def _version() -> tuple[MetricFamily, list[MetricSample]]:
    text = "A metric with a constant '1' value labeled by kernel version and cadvisor version."
    labels = {"cadvisorVersion": f"podscaler-{__version__}", "kernelVersion": os.uname().release}
    return MetricFamily("cadvisor_version_info", text, "gauge"), [MetricSample(labels, 1, has_time=False)]


def _with_cpu(row: _Row) -> MetricSample:
    labels = {"container": row.labels["container"], "cpu": "total", **row.labels}
    return MetricSample(labels, row.usage.cpu_ns / NANOSECONDS)


def _rows(snapshot: UsageSnapshot, pods: Mapping[str, Object]) -> Iterator[_Row]:
    """The machine, then each pod with its containers."""
    yield _Row(_labels("/"), snapshot.node, {}, snapshot.node.started_ns)
    for pod in snapshot.pods:
        place = f"/kubepods/pod{pod.uid}"
        of_pod = {"namespace": pod.namespace, "pod": pod.name}
        yield _Row(_labels(place) | of_pod, pod, {}, min(container.started_ns for container in pod.containers.values()))
        specs, ids = _containers(pods.get(pod.uid, {}))
        for name, total in pod.containers.items():
            spec, container_id = specs.get(name, {}), ids.get(name, "")
            own = {"container": name, "image": spec.get("image", ""), "name": container_id}
            yield _Row(_labels(f"{place}/{container_id or name}") | own | of_pod, total, spec, total.started_ns)


def _labels(cgroup: str) -> dict[str, str]:
    return {"container": "", "id": cgroup, "image": "", "name": "", "namespace": "", "pod": ""}


def _containers(pod: Object) -> tuple[dict[str, Object], dict[str, str]]:
    """The containers of a pod's spec, and their ids without scheme, both by name."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    specs = {
        container["name"]: container for part in ("initContainers", "containers") for container in spec.get(part) or []
    }
    statuses = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    return specs, {container["name"]: container.get("containerID", "").rpartition("//")[2] for container in statuses}


def _limits(container: Object) -> dict[str, int]:
    """The values of the families of limits that a container has."""
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}
    requested_milli = Quantity.parse(requests.get("cpu", "0")).milli_value()
    values = {
        "container_spec_cpu_period": CPU_PERIOD_US,
        "container_spec_cpu_shares": max(requested_milli * SHARES_PER_CORE // 1000, MIN_SHARES),
        "container_spec_memory_limit_bytes": Quantity.parse(limits.get("memory", "0")).value(),
    }
    if "cpu" in limits:
        values["container_spec_cpu_quota"] = Quantity.parse(limits["cpu"]).milli_value() * CPU_PERIOD_US // 1000
    return values
