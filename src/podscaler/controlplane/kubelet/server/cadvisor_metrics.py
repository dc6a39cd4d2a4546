"""/metrics/cadvisor of the node: usage and limits of containers, pods and the machine, named as cAdvisor names them.

`podscaler.cli.up.machine` adds the page to those of the `NodeServer`, which renders it for each scrape; dashboards and
`podscaler backtest` on a Prometheus read such series.

A new metric of usage: an entry of _MEMORY_HELP or in `_usage_families`; a new limit: an entry of _LIMIT_HELP and in
`_limits`.

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
MILLI_PER_CORE: Final = 1000
SHARES_PER_CORE: Final = 1024
SHARES_MIN: Final = 2
"""CPU shares as kubelet computes them from requests."""

Object = Mapping[str, Any]
"""A core/v1 Pod or Container as JSON."""
_MEMORY_HELP: Final = {
    "container_memory_rss": "Size of RSS in bytes.",
    "container_memory_usage_bytes": "Current memory usage in bytes, "
    "including all memory regardless of when it was accessed",
    "container_memory_working_set_bytes": "Current working set in bytes.",
}
_LIMIT_HELP: Final = {
    "container_spec_cpu_period": "CPU period of the container.",
    "container_spec_cpu_quota": "CPU quota of the container.",
    "container_spec_cpu_shares": "CPU share of the container.",
    "container_spec_memory_limit_bytes": "Memory limit for the container.",
}


class _Row(NamedTuple):
    """The usage of a cgroup: of a container, a pod or the machine.

    Attributes:
        container: the core/v1 Container; empty for pods, the machine, and a container whose pod is not known.
        labels: all labels of its samples, in cAdvisor's order.
        started_ns: nanoseconds since the epoch; 0: unknown.
    """

    labels: dict[str, str]
    usage: UsageTotal | PodTotal
    container: Object
    started_ns: int


def cadvisor_page(
    get_snapshot: Callable[[], UsageSnapshot | None], list_pods: Callable[[], Sequence[Object]]
) -> NodePage:
    """The page, rendered anew for each request.

    Args:
        get_snapshot: returns the latest readings of usage, None before the first.
        list_pods: returns the pods of the node.
    """
    return NodePage(CONTENT_TYPE, lambda: asyncio.to_thread(render, get_snapshot(), list_pods()))


def render(snapshot: UsageSnapshot | None, pods: Sequence[Object]) -> bytes:
    """The metrics in Prometheus' text format, families sorted by name.

    Before the first reading (a snapshot of None) there are only the error of the scrape and the version.
    """
    families = {"container_scrape_error": _scrape_error(snapshot), "cadvisor_version_info": _version()}
    if snapshot is not None:
        rows = list(_rows(snapshot, {pod["metadata"]["uid"]: pod for pod in pods}))
        families |= _usage_families(snapshot, rows) | _limit_families(rows) | _machine_families()
    ordered = [families[name] for name in sorted(families)]
    return metrics_text.render(ordered, None if snapshot is None else snapshot.at_ns)


_Families = dict[str, tuple[MetricFamily, list[MetricSample]]]
"""Name of a metric -> its family and samples."""


def _usage_families(snapshot: UsageSnapshot, rows: Sequence[_Row]) -> _Families:
    """CPU, memory and the time of the measurement, for each container."""
    cpu = "container_cpu_usage_seconds_total"
    cpu_samples = [_cpu_sample(row) for row in rows]
    families = {cpu: (MetricFamily(cpu, "Cumulative cpu time consumed in seconds.", "counter"), cpu_samples)}
    for name, help_text in _MEMORY_HELP.items():
        samples = [MetricSample(row.labels, row.usage.memory_bytes) for row in rows]
        families[name] = (MetricFamily(name, help_text, "gauge"), samples)
    last_seen = "container_last_seen"
    help_text = "Last time a container was seen by the exporter"
    last_seen_samples = [MetricSample(row.labels, snapshot.at_ns // NANOSECONDS) for row in rows]
    families[last_seen] = (MetricFamily(last_seen, help_text, "gauge"), last_seen_samples)
    return families


def _limit_families(rows: Sequence[_Row]) -> _Families:
    """The start times and the limits of containers."""
    start, help_text = "container_start_time_seconds", "Start time of the container since unix epoch in seconds."
    start_samples = [
        MetricSample(row.labels, row.started_ns // NANOSECONDS, has_time=False) for row in rows if row.started_ns
    ]
    families = {start: (MetricFamily(start, help_text, "gauge"), start_samples)}
    labels_and_limits = [(row.labels, _limits(row.container)) for row in rows if row.container]
    for name, help_text in _LIMIT_HELP.items():
        samples = [
            MetricSample(labels, limits[name], has_time=False) for labels, limits in labels_and_limits if name in limits
        ]
        families[name] = (MetricFamily(name, help_text, "gauge"), samples)
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
    """The family that is 1 before the first reading, then 0."""
    help_text = "1 if there was an error while getting container metrics, 0 otherwise"
    return MetricFamily("container_scrape_error", help_text, "gauge"), [
        MetricSample({}, float(snapshot is None), has_time=False)
    ]


def _version() -> tuple[MetricFamily, list[MetricSample]]:
    """The family with the versions of podscaler and of the kernel as labels."""
    help_text = "A metric with a constant '1' value labeled by kernel version and cadvisor version."
    labels = {"cadvisorVersion": f"podscaler-{__version__}", "kernelVersion": os.uname().release}
    return MetricFamily("cadvisor_version_info", help_text, "gauge"), [MetricSample(labels, 1, has_time=False)]


def _cpu_sample(row: _Row) -> MetricSample:
    """The CPU time of a row, with cAdvisor's label `cpu` after `container`."""
    labels = {"container": row.labels["container"], "cpu": "total", **row.labels}
    return MetricSample(labels, row.usage.cpu_ns / NANOSECONDS)


def _rows(snapshot: UsageSnapshot, pods_by_uid: Mapping[str, Object]) -> Iterator[_Row]:
    """The machine, then each pod with its containers, of which it has one at least."""
    yield _Row(_labels("/"), snapshot.node, {}, snapshot.node.started_ns)
    for pod in snapshot.pods:
        pod_cgroup = f"/kubepods/pod{pod.uid}"
        pod_labels = {"namespace": pod.namespace, "pod": pod.name}
        pod_started_ns = min(total.started_ns for total in pod.containers.values())
        yield _Row(_labels(pod_cgroup) | pod_labels, pod, {}, pod_started_ns)
        specs, container_ids = _specs_and_ids(pods_by_uid.get(pod.uid, {}))
        for name, total in pod.containers.items():
            spec, container_id = specs.get(name, {}), container_ids.get(name, "")
            own_labels = {"container": name, "image": spec.get("image", ""), "name": container_id}
            labels = _labels(f"{pod_cgroup}/{container_id or name}") | own_labels | pod_labels
            yield _Row(labels, total, spec, total.started_ns)


def _labels(cgroup: str) -> dict[str, str]:
    """All labels of a row in order, empty but for the id, which is the path of its cgroup."""
    return {"container": "", "id": cgroup, "image": "", "name": "", "namespace": "", "pod": ""}


def _specs_and_ids(pod: Object) -> tuple[dict[str, Object], dict[str, str]]:
    """The core/v1 Containers of a pod, and the ids of their present starts without scheme; both by container name.

    Args:
        pod: empty for a pod that is not known.
    """
    pod_spec, pod_status = pod.get("spec", {}), pod.get("status", {})
    containers = [*(pod_spec.get("initContainers") or []), *(pod_spec.get("containers") or [])]
    statuses = [*(pod_status.get("initContainerStatuses") or []), *(pod_status.get("containerStatuses") or [])]
    specs = {container["name"]: container for container in containers}
    container_ids = {status["name"]: status.get("containerID", "").rpartition("//")[2] for status in statuses}
    return specs, container_ids


def _limits(container: Object) -> dict[str, int]:
    """The values of the metrics in _LIMIT_HELP for a core/v1 Container; without a CPU limit there is no quota."""
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}
    requested_milli = Quantity.parse(requests.get("cpu", "0")).milli_value()
    values = {
        "container_spec_cpu_period": CPU_PERIOD_US,
        "container_spec_cpu_shares": max(requested_milli * SHARES_PER_CORE // MILLI_PER_CORE, SHARES_MIN),
        "container_spec_memory_limit_bytes": Quantity.parse(limits.get("memory", "0")).value(),
    }
    if "cpu" in limits:
        limit_milli = Quantity.parse(limits["cpu"]).milli_value()
        values["container_spec_cpu_quota"] = limit_milli * CPU_PERIOD_US // MILLI_PER_CORE
    return values
