"""/metrics/resource of the node: CPU and memory of containers, pods and the node in Prometheus' text format.

`podscaler.cli.up.machine` adds the page to those of the `NodeServer`, which renders it for each scrape; metrics-server
and Prometheus read it. A new family: a `yield` in `_families`, at its place in the alphabet.

Source: the kubelet's /metrics/resource in Kubernetes v1.37: metric names, help texts, label order, and samples with
timestamps (all but the start times and the errors).

Differs: there are no metrics of swap. Memory is the resident memory of the processes, without page cache. The
`scrape_error` of releases before 1.30 is left out.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.kubelet.server import metrics_text
from podscaler.controlplane.kubelet.server.metrics_text import CONTENT_TYPE, MetricFamily, MetricSample
from podscaler.controlplane.kubelet.server.node_server import NodePage
from podscaler.controlplane.metrics.resource.totals import PodTotal, UsageSnapshot

PATH: Final = "/metrics/resource"

_CPU = "[STABLE] Cumulative cpu time consumed by the {} in core-seconds"
_MEMORY = "[STABLE] Current working set of the {} in bytes"
_START = "[STABLE] Start time of the container since unix epoch in seconds"
_ERROR = "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise"


def resource_metrics_page(get_snapshot: Callable[[], UsageSnapshot | None]) -> NodePage:
    """The page, rendered anew for each request; before the first reading it reports an error of the scrape.

    Args:
        get_snapshot: returns the latest readings of usage, None before the first.
    """
    return NodePage(CONTENT_TYPE, lambda: asyncio.to_thread(render, get_snapshot()))


def render(snapshot: UsageSnapshot | None) -> bytes:
    """The metrics in Prometheus' text format, families and samples sorted by name; None: nothing was read yet."""
    return metrics_text.render(_families(snapshot), None if snapshot is None else snapshot.at_ns)


def _families(snapshot: UsageSnapshot | None) -> Iterator[tuple[MetricFamily, list[MetricSample]]]:
    """The families in alphabetical order, as those of a kubelet; before the first reading only the error."""
    pods = snapshot.pods if snapshot is not None else ()
    yield _family("container_cpu_usage_seconds_total", _CPU, "container"), list(_container_cpu(pods))
    yield _family("container_memory_working_set_bytes", _MEMORY, "container"), list(_container_memory(pods))
    yield MetricFamily("container_start_time_seconds", _START, "gauge"), list(_container_starts(pods))
    if snapshot is not None:
        node = snapshot.node
        yield _family("node_cpu_usage_seconds_total", _CPU, "node"), [MetricSample({}, node.cpu_ns / NANOSECONDS)]
        yield _family("node_memory_working_set_bytes", _MEMORY, "node"), [MetricSample({}, node.memory_bytes)]
    cpu_samples = [MetricSample(_pod_labels(pod), pod.cpu_ns / NANOSECONDS) for pod in pods]
    yield _family("pod_cpu_usage_seconds_total", _CPU, "pod"), cpu_samples
    memory_samples = [MetricSample(_pod_labels(pod), pod.memory_bytes) for pod in pods]
    yield _family("pod_memory_working_set_bytes", _MEMORY, "pod"), memory_samples
    error_samples = [MetricSample({}, float(snapshot is None), has_time=False)]
    yield MetricFamily("resource_scrape_error", _ERROR, "gauge"), error_samples


def _family(name: str, help_template: str, subject: str) -> MetricFamily:
    """A family whose help names its subject: `container`, `node` or `pod`."""
    return MetricFamily(name, help_template.format(subject), "counter" if name.endswith("_total") else "gauge")


def _container_cpu(pods: tuple[PodTotal, ...]) -> Iterator[MetricSample]:
    """The CPU time of each container, in seconds."""
    for pod in pods:
        for name, total in pod.containers.items():
            yield MetricSample({"container": name} | _pod_labels(pod), total.cpu_ns / NANOSECONDS)


def _container_memory(pods: tuple[PodTotal, ...]) -> Iterator[MetricSample]:
    """The resident memory of each container, in bytes."""
    for pod in pods:
        for name, total in pod.containers.items():
            yield MetricSample({"container": name} | _pod_labels(pod), total.memory_bytes)


def _container_starts(pods: tuple[PodTotal, ...]) -> Iterator[MetricSample]:
    """The start time of each container, in seconds since the epoch, without a timestamp."""
    for pod in pods:
        for name, total in pod.containers.items():
            yield MetricSample({"container": name} | _pod_labels(pod), total.started_ns / NANOSECONDS, has_time=False)


def _pod_labels(pod: PodTotal) -> dict[str, str]:
    return {"namespace": pod.namespace, "pod": pod.name}
