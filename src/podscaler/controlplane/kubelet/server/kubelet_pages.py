"""The node's pages about itself: /healthz with its checks, /pods, /metrics and /metrics/probes.

`podscaler.cli.up.machine` adds `kubelet_pages` to the pages of the `NodeServer`. A new page: an entry of its result.

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

HEALTH_PATHS: Final = ("/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop")
PODS_PATH: Final = "/pods"
METRICS_PATH: Final = "/metrics"
PROBES_PATH: Final = "/metrics/probes"

Object = dict[str, Any]
"""A core/v1 Pod as JSON."""


def kubelet_pages(
    get_snapshot: Callable[[], UsageSnapshot | None],
    list_pods: Callable[[], Sequence[Object]],
    get_node_name: Callable[[], str],
) -> dict[str, NodePage]:
    """The pages by path.

    Args:
        get_snapshot: returns the latest readings of usage, None before the first.
        list_pods: returns the pods of the node.
        get_node_name: returns the name of the Node.
    """

    async def render_health() -> bytes:
        return b"ok"

    async def render_pods() -> bytes:
        return await asyncio.to_thread(pods_body, list_pods())

    async def render_metrics() -> bytes:
        return await asyncio.to_thread(metrics_body, get_snapshot(), get_node_name())

    async def render_probes() -> bytes:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        return await asyncio.to_thread(prometheus_client.generate_latest, registry)

    pages = dict.fromkeys(HEALTH_PATHS, NodePage("text/plain; charset=utf-8", render_health))
    pages[PODS_PATH] = NodePage("application/json", render_pods)
    pages[METRICS_PATH] = NodePage(CONTENT_TYPE, render_metrics)
    pages[PROBES_PATH] = NodePage(CONTENT_TYPE, render_probes)
    return pages


def pods_body(pods: Sequence[Object]) -> bytes:
    """The PodList of pods as JSON; items have neither kind nor apiVersion."""
    items = [{field: value for field, value in pod.items() if field not in ("kind", "apiVersion")} for pod in pods]
    return json_text.encode({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})


def metrics_body(snapshot: UsageSnapshot | None, node_name: str) -> bytes:
    """The gauges of the node and its process as text; a snapshot of None counts no pods."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    pods = snapshot.pods if snapshot is not None else ()
    node_name_gauge = Gauge(
        "kubelet_node_name", "[ALPHA] The node's name. The count is always 1.", ["node"], registry=registry
    )
    node_name_gauge.labels(node_name).set(1)
    help_text = "[ALPHA] Number of pods that have a running pod sandbox"
    Gauge("kubelet_running_pods", help_text, registry=registry).set(len(pods))
    help_text = "[ALPHA] Number of containers currently running"
    containers = Gauge("kubelet_running_containers", help_text, ["container_state"], registry=registry)
    containers.labels("running").set(sum(len(pod.containers) for pod in pods))
    help_text = "[BETA] A metric with a constant '1' value labeled by the version."
    build_info = Gauge("kubernetes_build_info", help_text, ["git_version"], registry=registry)
    build_info.labels(startup.KUBELET_VERSION).set(1)
    return prometheus_client.generate_latest(registry)
