"""/metrics/resource of the node: CPU and memory of containers, pods and the node in Prometheus' text format.

`node_server` calls the page for each scrape; metrics-server and Prometheus read it.

Source: the kubelet's /metrics/resource in Kubernetes v1.37: metric names, help texts, label order, and samples with
timestamps (all but the start times and the errors).

Differs: there are no metrics of swap. Memory is the resident memory of the processes, without page cache. The
`scrape_error` of releases before 1.30 is left out.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.kubelet.server.node_server import NodePage
from podscaler.controlplane.metrics.resource.totals import PodTotal, UsageSnapshot

PATH: Final = "/metrics/resource"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


class _Family(NamedTuple):
    """The name, help text and type of a metric."""

    name: str
    help: str
    type: str


class _Sample(NamedTuple):
    """One sample: labels by name in order, and whether it has the timestamp of the reading."""

    labels: dict[str, str]
    value: float
    has_time: bool = True


_CPU = "Cumulative cpu time consumed by the {} in core-seconds"
_MEMORY = "Current working set of the {} in bytes"
_START = "Start time of the container since unix epoch in seconds"
_ERROR = "1 if there was an error while getting container metrics, 0 otherwise"


def resource_metrics_page(snapshot: Callable[[], UsageSnapshot | None]) -> NodePage:
    """The page of what `snapshot` returns; without a snapshot it reports an error of the scrape."""
    return NodePage(CONTENT_TYPE, lambda: asyncio.to_thread(render, snapshot()))


def render(snapshot: UsageSnapshot | None) -> bytes:
    """The text, families and samples sorted by name; None: nothing was read yet."""
    lines: list[str] = []
    for family, samples in _families(snapshot):
        if samples:
            lines.append(f"# HELP {family.name} [STABLE] {family.help}")
            lines.append(f"# TYPE {family.name} {family.type}")
            lines += [_line(family.name, each, snapshot) for each in samples]
    return "".join(f"{line}\n" for line in lines).encode()


def _families(snapshot: UsageSnapshot | None) -> Iterator[tuple[_Family, list[_Sample]]]:
    pods = snapshot.pods if snapshot is not None else ()
    yield _family("container_cpu_usage_seconds_total", _CPU, "container"), list(_container_cpu(pods))
    yield _family("container_memory_working_set_bytes", _MEMORY, "container"), list(_container_memory(pods))
    yield _Family("container_start_time_seconds", _START, "gauge"), list(_container_starts(pods))
    if snapshot is not None:
        node = snapshot.node
        yield _family("node_cpu_usage_seconds_total", _CPU, "node"), [_Sample({}, node.cpu_ns / NANOSECONDS)]
        yield _family("node_memory_working_set_bytes", _MEMORY, "node"), [_Sample({}, node.memory_bytes)]
    cpu = [_Sample(_of_pod(pod), pod.cpu_ns / NANOSECONDS) for pod in pods]
    yield _family("pod_cpu_usage_seconds_total", _CPU, "pod"), cpu
    memory = [_Sample(_of_pod(pod), pod.memory_bytes) for pod in pods]
    yield _family("pod_memory_working_set_bytes", _MEMORY, "pod"), memory
    error = [_Sample({}, float(snapshot is None), has_time=False)]
    yield _Family("resource_scrape_error", _ERROR, "gauge"), error


def _family(name: str, text: str, subject: str) -> _Family:
    return _Family(name, text.format(subject), "counter" if name.endswith("_total") else "gauge")


def _container_cpu(pods: tuple[PodTotal, ...]) -> Iterator[_Sample]:
    for pod in pods:
        for name, total in pod.containers.items():
            yield _Sample({"container": name} | _of_pod(pod), total.cpu_ns / NANOSECONDS)


def _container_memory(pods: tuple[PodTotal, ...]) -> Iterator[_Sample]:
    for pod in pods:
        for name, total in pod.containers.items():
            yield _Sample({"container": name} | _of_pod(pod), total.memory_bytes)


def _container_starts(pods: tuple[PodTotal, ...]) -> Iterator[_Sample]:
    for pod in pods:
        for name, total in pod.containers.items():
            yield _Sample({"container": name} | _of_pod(pod), total.started_ns / NANOSECONDS, has_time=False)


def _of_pod(pod: PodTotal) -> dict[str, str]:
    return {"namespace": pod.namespace, "pod": pod.name}


def _line(name: str, sample: _Sample, snapshot: UsageSnapshot | None) -> str:
    labels = ",".join(f'{label}="{value}"' for label, value in sample.labels.items())
    shown = f"{name}{{{labels}}}" if labels else name
    time = f" {snapshot.at_ns // 1_000_000}" if snapshot is not None and sample.has_time else ""
    return f"{shown} {_number(sample.value)}{time}"


def _number(value: float) -> str:
    """A number with the fewest digits that are exact: 12.25, 0."""
    return repr(float(value)).removesuffix(".0")
