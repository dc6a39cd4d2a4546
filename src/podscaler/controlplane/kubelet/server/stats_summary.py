"""/stats/summary of the node: CPU and memory of the node, its pods and their containers as JSON.

`podscaler.cli.up.machine` adds the page to those of the `NodeServer`, which renders it for each request. Heapster read
it, and other monitoring still does. A new field of all of them: `_usage_stats`; of pods alone: `_pod_stats`.

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
"""A JSON object."""


def stats_summary_page(get_snapshot: Callable[[], UsageSnapshot | None]) -> NodePage:
    """The page, rendered anew for each request; before the first reading a summary without usage.

    Args:
        get_snapshot: returns the latest readings of usage, None before the first.
    """
    return NodePage(CONTENT_TYPE, lambda: asyncio.to_thread(render, get_snapshot()))


def render(snapshot: UsageSnapshot | None) -> bytes:
    """The Summary as JSON, indented as kubelets do."""
    return msgspec.json.format(msgspec.json.encode(summary(snapshot)), indent=1)


def summary(snapshot: UsageSnapshot | None) -> JSON:
    """The Summary; None: nothing was read yet."""
    if snapshot is None:
        return {"node": {"nodeName": "", "startTime": None}, "pods": []}
    read_time = rfc3339(snapshot.at_ns)
    node = {"nodeName": snapshot.node_name, "startTime": rfc3339(snapshot.node.started_ns)}
    pods = [_pod_stats(pod, read_time) for pod in snapshot.pods]
    return {"node": node | _usage_stats(snapshot.node, read_time), "pods": pods}


def _pod_stats(pod: PodTotal, read_time: str) -> JSON:
    """The PodStats of a pod with its containers; `read_time` is that of the reading, RFC 3339."""
    containers = [
        {"name": name, "startTime": rfc3339(total.started_ns)} | _usage_stats(total, read_time)
        for name, total in pod.containers.items()
    ]
    return {
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": pod.start_time or None,
        "containers": containers,
    } | _usage_stats(pod, read_time)


def _usage_stats(total: UsageTotal | PodTotal, read_time: str) -> JSON:
    """The fields `cpu` and `memory` of the node, a pod or a container; `usageNanoCores` only where a rate is known."""
    cpu: JSON = {"time": read_time}
    if total.cpu_nanocores is not None:
        cpu["usageNanoCores"] = total.cpu_nanocores
    cpu["usageCoreNanoSeconds"] = total.cpu_ns
    memory = dict.fromkeys(("usageBytes", "workingSetBytes", "rssBytes"), total.memory_bytes)
    return {"cpu": cpu, "memory": {"time": read_time, **memory}}
