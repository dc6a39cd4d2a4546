"""/stats/summary of the node: CPU and memory of the node, its pods and their containers as JSON.

`node_server` calls the page for each request; Heapster read it, and other monitoring still does.

Source: the Summary type of the kubelet (k8s.io/kubelet/pkg/apis/stats/v1alpha1), as far as CPU and memory go.

Differs: there is nothing about network, file systems, volumes, swap and pressure, as with `only_cpu_and_memory=true`,
which is accepted. `workingSetBytes` is the resident memory of the processes.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from podscaler.base.clock import rfc3339
from podscaler.controlplane.kubelet.server.node_server import NodePage
from podscaler.controlplane.metrics.resource.totals import PodTotal, UsageSnapshot, UsageTotal

PATH: Final = "/stats/summary"
CONTENT_TYPE: Final = "application/json"

JSON = dict[str, Any]


def stats_summary_page(snapshot: Callable[[], UsageSnapshot | None]) -> NodePage:
    """The page of what `snapshot` returns; without one, a summary without usage."""
    return NodePage(CONTENT_TYPE, lambda: asyncio.to_thread(render, snapshot()))


def render(snapshot: UsageSnapshot | None) -> bytes:
    """The Summary as JSON, indented as kubelets do."""
    return msgspec.json.format(msgspec.json.encode(summary(snapshot)), indent=1)


def summary(snapshot: UsageSnapshot | None) -> JSON:
    """The Summary; None: nothing was read yet."""
    if snapshot is None:
        return {"node": {"nodeName": "", "startTime": None}, "pods": []}
    time = rfc3339(snapshot.at_ns)
    node = {"nodeName": snapshot.node_name, "startTime": rfc3339(snapshot.node.started_ns)}
    return {"node": node | _usage(snapshot.node, time), "pods": [_pod(pod, time) for pod in snapshot.pods]}


def _pod(pod: PodTotal, time: str) -> JSON:
    """The entry of a pod with its containers."""
    containers = [
        {"name": name, "startTime": rfc3339(total.started_ns)} | _usage(total, time)
        for name, total in pod.containers.items()
    ]
    return {
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": pod.start_time or None,
        "containers": containers,
    } | _usage(pod, time)


def _usage(total: UsageTotal | PodTotal, time: str) -> JSON:
    cpu: JSON = {"time": time}
    if total.cpu_nanocores is not None:
        cpu["usageNanoCores"] = total.cpu_nanocores
    cpu["usageCoreNanoSeconds"] = total.cpu_ns
    memory = dict.fromkeys(("usageBytes", "workingSetBytes", "rssBytes"), total.memory_bytes)
    return {"cpu": cpu, "memory": {"time": time, **memory}}
