"""The node's pages about itself: /healthz with its checks, /pods, /metrics and /metrics/probes.

The wiring of `up` adds `kubelet_pages` to the pages of the `NodeServer`.

Source: the kubelet's server in Kubernetes v1.37: the checks ping, log and syncloop, a PodList whose items have no type,
and the names of the metrics.

Differs: /metrics has the few gauges that describe the node, and the process; /metrics/probes has no samples of probes.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector

from podscaler.api.text import json_text
from podscaler.controlplane.kubelet import startup
from podscaler.controlplane.kubelet.server.metrics_text import CONTENT_TYPE
from podscaler.controlplane.kubelet.server.node_server import NodePage
from podscaler.controlplane.metrics.resource.totals import UsageSnapshot

HEALTH: Final = ("/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop")
PODS: Final = "/pods"
METRICS: Final = "/metrics"
PROBES: Final = "/metrics/probes"

Object = dict[str, Any]


def kubelet_pages(
    snapshot: Callable[[], UsageSnapshot | None], pods: Callable[[], Sequence[Object]], node_name: Callable[[], str]
) -> dict[str, NodePage]:
    """The pages by path.

    Args:
        snapshot: the latest readings of usage.
        pods: the pods of the node.
        node_name: the name of the Node.
    """

    async def healthy() -> bytes:
        return b"ok"

    async def pod_list() -> bytes:
        return await asyncio.to_thread(pods_body, pods())

    async def metrics() -> bytes:
        return await asyncio.to_thread(metrics_body, snapshot(), node_name())

    async def probes() -> bytes:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        return await asyncio.to_thread(prometheus_client.generate_latest, registry)

    pages = dict.fromkeys(HEALTH, NodePage("text/plain; charset=utf-8", healthy))
    pages[PODS] = NodePage("application/json", pod_list)
    pages[METRICS] = NodePage(CONTENT_TYPE, metrics)
    pages[PROBES] = NodePage(CONTENT_TYPE, probes)
    return pages


def pods_body(pods: Sequence[Object]) -> bytes:
    """The PodList of pods as JSON; items have neither kind nor apiVersion."""
    items = [{name: value for name, value in pod.items() if name not in ("kind", "apiVersion")} for pod in pods]
    return json_text.encode({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})


def metrics_body(snapshot: UsageSnapshot | None, node_name: str) -> bytes:
    """The gauges of the node and its process as text; a snapshot of None counts no pods."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    pods = snapshot.pods if snapshot is not None else ()
    name = Gauge("kubelet_node_name", "[ALPHA] The node's name. The count is always 1.", ["node"], registry=registry)
    name.labels(node_name).set(1)
    text = "[ALPHA] Number of pods that have a running pod sandbox"
    Gauge("kubelet_running_pods", text, registry=registry).set(len(pods))
    text = "[ALPHA] Number of containers currently running"
    containers = Gauge("kubelet_running_containers", text, ["container_state"], registry=registry)
    containers.labels("running").set(sum(len(pod.containers) for pod in pods))
    text = "[BETA] A metric with a constant '1' value labeled by the version."
    build = Gauge("kubernetes_build_info", text, ["git_version"], registry=registry)
    build.labels(startup.KUBELET_VERSION).set(1)
    return prometheus_client.generate_latest(registry)
