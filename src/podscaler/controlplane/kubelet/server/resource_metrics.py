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
from podscaler.controlplane.metrics.resource.totals import PodTotal, UsageSnapshot, UsageTotal

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
    yield _family("container_cpu_usage_seconds_total", _CPU, "container"), _container_samples(pods, _cpu_s)
    yield _family("container_memory_working_set_bytes", _MEMORY, "container"), _container_samples(pods, _memory_bytes)
    yield (
        MetricFamily("container_start_time_seconds", _START, "gauge"),
        _container_samples(pods, _start_s, has_time=False),
    )
    if snapshot is not None:
        node = snapshot.node
        yield _family("node_cpu_usage_seconds_total", _CPU, "node"), [MetricSample({}, _cpu_s(node))]
        yield _family("node_memory_working_set_bytes", _MEMORY, "node"), [MetricSample({}, node.memory_bytes)]
    cpu_samples = [MetricSample(_pod_labels(pod), _cpu_s(pod)) for pod in pods]
    yield _family("pod_cpu_usage_seconds_total", _CPU, "pod"), cpu_samples
    memory_samples = [MetricSample(_pod_labels(pod), pod.memory_bytes) for pod in pods]
    yield _family("pod_memory_working_set_bytes", _MEMORY, "pod"), memory_samples
    error_samples = [MetricSample({}, float(snapshot is None), has_time=False)]
    yield MetricFamily("resource_scrape_error", _ERROR, "gauge"), error_samples


def _family(name: str, help_template: str, subject: str) -> MetricFamily:
    """A family whose help names its subject: `container`, `node` or `pod`. Names of counters end in `_total`."""
    return MetricFamily(name, help_template.format(subject), "counter" if name.endswith("_total") else "gauge")


def _container_samples(
    pods: tuple[PodTotal, ...], read_value: Callable[[UsageTotal], float], *, has_time: bool = True
) -> list[MetricSample]:
    """One sample for each container of the pods, with the value that `read_value` reads from its totals."""
    return [
        MetricSample({"container": name} | _pod_labels(pod), read_value(total), has_time)
        for pod in pods
        for name, total in pod.containers.items()
    ]


def _cpu_s(total: UsageTotal | PodTotal) -> float:
    return total.cpu_ns / NANOSECONDS


def _memory_bytes(total: UsageTotal | PodTotal) -> float:
    return total.memory_bytes


def _start_s(total: UsageTotal) -> float:
    """The start in seconds since the epoch."""
    return total.started_ns / NANOSECONDS


def _pod_labels(pod: PodTotal) -> dict[str, str]:
    return {"namespace": pod.namespace, "pod": pod.name}
