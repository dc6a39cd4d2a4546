"""/metrics/cadvisor of the node: usage and limits of containers, pods and the machine, named as cAdvisor names them.

`podscaler.cli.up.machine` adds the page to those of the `NodeServer`, which renders it for each scrape; dashboards and
`podscaler backtest` on a Prometheus read such series.

Readings of usage have the timestamp of the reading. All other samples (`has_time=False`) are no readings: starts,
limits, the size of the machine, the version and the error of the scrape.

A new metric of every cgroup: a family in `_usage_families`; one that also is the resident memory: an entry of
_MEMORY_HELP. A new limit: an entry of _LIMIT_HELP, and its value in `_limit_values`. A family of the machine alone:
`_machine_families`.

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
"""The period that a CPU quota refers to, as kubelet sets it."""
MILLI_PER_CORE: Final = 1000
SHARES_PER_CORE: Final = 1024
SHARES_MIN: Final = 2
"""The CPU shares of a container without a request, as kubelet computes them; it is the least that Linux takes."""

Object = Mapping[str, Any]
"""A core/v1 Pod or Container as JSON."""
_Families = dict[str, tuple[MetricFamily, list[MetricSample]]]
"""Name of a metric -> its family and samples."""

_MEMORY_HELP: Final = {
    "container_memory_rss": "Size of RSS in bytes.",
    "container_memory_usage_bytes": "Current memory usage in bytes, "
    "including all memory regardless of when it was accessed",
    "container_memory_working_set_bytes": "Current working set in bytes.",
}
"""The names under which resident memory is reported, with their help texts."""
_LIMIT_HELP: Final = {
    "container_spec_cpu_period": "CPU period of the container.",
    "container_spec_cpu_quota": "CPU quota of the container.",
    "container_spec_cpu_shares": "CPU share of the container.",
    "container_spec_memory_limit_bytes": "Memory limit for the container.",
}
"""The metrics that `_limit_values` computes from the spec of a container, with their help texts."""


class _Row(NamedTuple):
    """One cgroup: that of the machine, a pod or a container.

    Attributes:
        labels: all labels of its samples, in cAdvisor's order.
        usage: its CPU time and memory.
        spec: the core/v1 Container; empty for the machine, a pod, and a container whose pod is not known.
        started_ns: nanoseconds since the epoch.
    """

    labels: dict[str, str]
    usage: UsageTotal | PodTotal
    spec: Object
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
    families = _scrape_error_family(snapshot) | _version_family()
    if snapshot is not None:
        rows = list(_rows(snapshot, {pod["metadata"]["uid"]: pod for pod in pods}))
        families |= _usage_families(snapshot, rows) | _start_family(rows) | _limit_families(rows) | _machine_families()
    ordered = [families[name] for name in sorted(families)]
    return metrics_text.render(ordered, None if snapshot is None else snapshot.at_ns)


def _gauge_family(name: str, help_text: str, samples: list[MetricSample]) -> _Families:
    """The family of one gauge."""
    return {name: (MetricFamily(name, help_text, "gauge"), samples)}


def _usage_families(snapshot: UsageSnapshot, rows: Sequence[_Row]) -> _Families:
    """CPU time, memory and the time of the reading, for each row."""
    cpu = "container_cpu_usage_seconds_total"
    cpu_family = MetricFamily(cpu, "Cumulative cpu time consumed in seconds.", "counter")
    families: _Families = {cpu: (cpu_family, [_cpu_sample(row) for row in rows])}
    for name, help_text in _MEMORY_HELP.items():
        families |= _gauge_family(name, help_text, [MetricSample(row.labels, row.usage.memory_bytes) for row in rows])
    last_seen_samples = [MetricSample(row.labels, snapshot.at_ns // NANOSECONDS) for row in rows]
    return families | _gauge_family(
        "container_last_seen", "Last time a container was seen by the exporter", last_seen_samples
    )


def _start_family(rows: Sequence[_Row]) -> _Families:
    """The start time of each row; for the machine, that is when it booted."""
    samples = [MetricSample(row.labels, row.started_ns // NANOSECONDS, has_time=False) for row in rows]
    return _gauge_family(
        "container_start_time_seconds", "Start time of the container since unix epoch in seconds.", samples
    )


def _limit_families(rows: Sequence[_Row]) -> _Families:
    """The limits of the containers whose specs are known."""
    labels_and_limits = [(row.labels, _limit_values(row.spec)) for row in rows if row.spec]
    families: _Families = {}
    for name, help_text in _LIMIT_HELP.items():
        samples = [
            MetricSample(labels, limits[name], has_time=False) for labels, limits in labels_and_limits if name in limits
        ]
        families |= _gauge_family(name, help_text, samples)
    return families


def _machine_families() -> _Families:
    """The cores and the memory of the machine."""
    cores = MetricSample({}, os.cpu_count() or 1, has_time=False)
    memory = MetricSample({}, psutil.virtual_memory().total, has_time=False)
    return _gauge_family("machine_cpu_cores", "Number of logical CPU cores.", [cores]) | _gauge_family(
        "machine_memory_bytes", "Amount of memory installed on the machine.", [memory]
    )


def _scrape_error_family(snapshot: UsageSnapshot | None) -> _Families:
    """The family that is 1 before the first reading, then 0."""
    help_text = "1 if there was an error while getting container metrics, 0 otherwise"
    return _gauge_family(
        "container_scrape_error", help_text, [MetricSample({}, float(snapshot is None), has_time=False)]
    )


def _version_family() -> _Families:
    """The family with the versions of podscaler and of the kernel as labels."""
    help_text = "A metric with a constant '1' value labeled by kernel version and cadvisor version."
    labels = {"cadvisorVersion": f"podscaler-{__version__}", "kernelVersion": os.uname().release}
    return _gauge_family("cadvisor_version_info", help_text, [MetricSample(labels, 1, has_time=False)])


def _cpu_sample(row: _Row) -> MetricSample:
    """The CPU time of a row, with cAdvisor's label `cpu` after `container`, as labels are in alphabetical order."""
    labels = dict(sorted({**row.labels, "cpu": "total"}.items()))
    return MetricSample(labels, row.usage.cpu_ns / NANOSECONDS)


def _rows(snapshot: UsageSnapshot, pods_by_uid: Mapping[str, Object]) -> Iterator[_Row]:
    """The machine, then each pod with its containers; a pod of a snapshot has one at least."""
    yield _Row(_row_labels("/"), snapshot.node, {}, snapshot.node.started_ns)
    for pod in snapshot.pods:
        pod_cgroup = f"/kubepods/pod{pod.uid}"
        pod_labels = {"namespace": pod.namespace, "pod": pod.name}
        pod_started_ns = min(container.started_ns for container in pod.containers.values())
        yield _Row(_row_labels(pod_cgroup) | pod_labels, pod, {}, pod_started_ns)
        specs, container_ids = _specs_and_ids(pods_by_uid.get(pod.uid, {}))
        for name, total in pod.containers.items():
            spec, container_id = specs.get(name, {}), container_ids.get(name, "")
            own_labels = {"container": name, "image": spec.get("image", ""), "name": container_id}
            labels = _row_labels(f"{pod_cgroup}/{container_id or name}") | own_labels | pod_labels
            yield _Row(labels, total, spec, total.started_ns)


def _row_labels(cgroup: str) -> dict[str, str]:
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


def _limit_values(container: Object) -> dict[str, int]:
    """The values of the metrics in _LIMIT_HELP for a core/v1 Container.

    Without a CPU limit there is no quota; without a memory limit that is 0, as cAdvisor reports it.
    """
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}  # the API server sets absent requests to the limits
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
