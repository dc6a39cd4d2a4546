"""The objects of the benchmark: deployments with three ready pods each, and an autoscaler for each.

Nobody works on the deployments: pods are written as a node would have reported them an hour ago.
"""

import asyncio
import base64
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from podscaler.base.errors import StatusError
from podscaler.kube.client.client import MERGE_PATCH, Client

PODS_EACH = 3
PODS_METRIC = "requests"
EXTERNAL_METRIC = "queue"
HPAS = "/apis/autoscaling/v2"
AT_ONCE = 32
SERVICE_NAMESPACE = "bench"
HOUR_AGO = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
Object = dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """How many autoscalers, how many of them in a namespace, and whether each has three metrics or one."""

    count: int
    per_namespace: int = 100
    metrics: int = 1

    def namespace(self, index: int) -> str:
        """Of an autoscaler."""
        return f"apps-{index // self.per_namespace}"

    def indexes(self, namespace: str) -> Sequence[int]:
        """The autoscalers of a namespace."""
        first = int(namespace.rpartition("-")[2]) * self.per_namespace
        return range(first, min(first + self.per_namespace, self.count))


def name_of(index: int) -> str:
    """Of a deployment and its autoscaler."""
    return f"web{index}"


def pod_name(index: int, number: int) -> str:
    """Of one of its pods."""
    return f"web{index}-{number}"


def index_of(selector: str) -> int:
    """The deployment whose pods `app=webN` picks."""
    return int(selector.partition("app=web")[2])


async def populate(client: Client, layout: Layout) -> None:
    """Make all of it; what is there already is left alone."""
    namespaces = dict.fromkeys(layout.namespace(index) for index in range(layout.count))
    for namespace in namespaces:
        await _make(client, "/api/v1/namespaces", {"metadata": {"name": namespace}})
    indexes = iter(range(layout.count))

    async def some() -> None:
        for index in indexes:
            await _populate_one(client, layout, index)

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


async def register(client: Client, port: int, authority_pem: bytes, groups: dict[str, str]) -> None:
    """Have the aggregator ask 127.0.0.1:port for `groups` (name to version); returns when it does.

    The aggregator refuses loopback addresses, but not a service that is an external name for one.
    """
    await _make(client, "/api/v1/namespaces", {"metadata": {"name": SERVICE_NAMESPACE}})
    service = {"metadata": {"name": "metrics"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    await _make(client, f"/api/v1/namespaces/{SERVICE_NAMESPACE}/services", service)
    for group, version in groups.items():
        spec = {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": base64.b64encode(authority_pem).decode(),
            "service": {"namespace": SERVICE_NAMESPACE, "name": "metrics", "port": port},
        }
        path = "/apis/apiregistration.k8s.io/v1/apiservices"
        await _make(client, path, {"metadata": {"name": f"{version}.{group}"}, "spec": spec})
        await _wait_available(client, f"{path}/{version}.{group}")


async def _wait_available(client: Client, path: str) -> None:
    for _ in range(200):
        found = msgspec.json.decode(await client.get(path, subject=path))
        conditions = found.get("status", {}).get("conditions", [])
        if any(each["type"] == "Available" and each["status"] == "True" for each in conditions):
            return
        await asyncio.sleep(0.2)
    raise SystemExit(f"{path} did not become available: {conditions}")


async def _populate_one(client: Client, layout: Layout, index: int) -> None:
    namespace, name = layout.namespace(index), name_of(index)
    workloads = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await _make(client, workloads, _deployment(name))
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), PODS_EACH)
    await _patch(client, f"{workloads}/{name}/status", {"status": {"observedGeneration": 1} | counts})
    for number in range(PODS_EACH):
        pods, pod = f"/api/v1/namespaces/{namespace}/pods", pod_name(index, number)
        await _make(client, pods, {"metadata": {"name": pod, "labels": {"app": name}}, "spec": _pod_spec()})
        await _patch(client, f"{pods}/{pod}/status", {"status": _pod_status()})
    autoscalers = f"{HPAS}/namespaces/{namespace}/horizontalpodautoscalers"
    await _make(client, autoscalers, _autoscaler(name, layout.metrics))


def _deployment(name: str) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec()}
    spec = {"replicas": PODS_EACH, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _pod_spec() -> Object:
    requests = {"requests": {"cpu": "1", "memory": "128Mi"}}
    return {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "none", "resources": requests}]}


def _pod_status() -> Object:
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    running = {"state": {"running": {"startedAt": HOUR_AGO}}}
    return {
        "phase": "Running",
        "startTime": HOUR_AGO,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": HOUR_AGO} for kind in kinds],
        "containerStatuses": [
            {"name": "c", "ready": True, "restartCount": 0, "image": "none", "imageID": "none"} | running
        ],
    }


def _autoscaler(name: str, metrics: int) -> Object:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    average = {"type": "AverageValue", "averageValue": "500m"}
    queue = {"name": EXTERNAL_METRIC, "selector": {"matchLabels": {"app": name}}}
    all_metrics = [
        {"type": "Resource", "resource": cpu},
        {"type": "Pods", "pods": {"metric": {"name": PODS_METRIC}, "target": average}},
        {"type": "External", "external": {"metric": queue, "target": average}},
    ]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"minReplicas": 1, "maxReplicas": 20, "scaleTargetRef": target, "metrics": all_metrics[:metrics]}
    return {"metadata": {"name": name}, "spec": spec}


async def _make(client: Client, path: str, obj: Object) -> None:
    try:
        await client.post(path, msgspec.json.encode(obj), subject=path)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise


async def _patch(client: Client, path: str, change: Object) -> None:
    await client.patch(path, msgspec.json.encode(change), subject=path, content_type=MERGE_PATCH)


async def reset_scale(client: Client, layout: Layout, index: int) -> None:
    """Give a deployment its replicas back."""
    path = f"/apis/apps/v1/namespaces/{layout.namespace(index)}/deployments/{name_of(index)}/scale"
    await _patch(client, path, {"spec": {"replicas": PODS_EACH}})
