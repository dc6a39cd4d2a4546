"""Creates the objects of the demo and reads their state, through the API.

Called by `demo`, with the client that the autoscaler uses, too.
"""

from typing import Any

import msgspec

from podscaler.cli.demo import demo_scene
from podscaler.cli.demo.demo_story import DemoRescale, DemoView
from podscaler.kube.client.client import Client

NAME, NAMESPACE = demo_scene.NAME, demo_scene.NAMESPACE
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
AUTOSCALER = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers/{NAME}"
SERVICE = f"/api/v1/namespaces/{NAMESPACE}/services/{NAME}"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"

STABILIZED = {"ScaleDownStabilized", "ScaleUpStabilized"}
EARLIER = "(no reason given: the metric is on target now, but an earlier, higher recommendation still counts)"
"""Stands for upstream's empty reason: upstream words the reason before it applies stabilization."""


class DemoStage:
    """The demo's objects on one API server.

    Args:
        client: an admin's.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reported: set[str] = set()

    async def set_up(self) -> None:
        """Create Deployment, Service and autoscaler. Raises StatusError."""
        for path, obj in (
            (DEPLOYMENT, demo_scene.deployment()),
            (SERVICE, demo_scene.service()),
            (AUTOSCALER, demo_scene.autoscaler()),
        ):
            collection = path.rpartition("/")[0]
            await self._client.post(collection, msgspec.json.encode(obj), subject=f"{obj['kind']} {NAME}")

    async def url(self) -> str:
        """The Service's address, empty as long as no pod is ready. Raises StatusError."""
        deployment = await self._get(DEPLOYMENT)
        if not deployment.get("status", {}).get("readyReplicas"):
            return ""
        address = (await self._get(SERVICE))["spec"]["clusterIP"]
        return f"http://{address}:{demo_scene.PORT}/"

    async def view(self, *, at_s: float, rate: float) -> DemoView:
        """The present state. Raises StatusError."""
        deployment = await self._get(DEPLOYMENT)
        status = (await self._get(AUTOSCALER))["status"]
        return DemoView(
            at_s=at_s,
            rate=rate,
            utilization_pct=_utilization_pct(status),
            replicas=deployment["spec"]["replicas"],
            ready=deployment.get("status", {}).get("readyReplicas", 0),
            holding=_holding(status, deployment["spec"]["replicas"]),
        )

    async def new_rescales(self, *, at_s: float) -> list[DemoRescale]:
        """Changes that the autoscaler has reported since the last call. Raises StatusError."""
        found = []
        events = (await self._get(EVENTS))["items"]
        for event in sorted(events, key=lambda event: int(event["metadata"]["resourceVersion"])):
            identity = event["metadata"]["uid"] + str(event.get("count"))
            if event.get("reason") == "SuccessfulRescale" and identity not in self._reported:
                self._reported.add(identity)
                size, _, reason = event["message"].removeprefix("New size: ").partition("; reason: ")
                found.append(DemoRescale(at_s, int(size), reason or EARLIER))
        return found

    async def _get(self, path: str) -> Any:
        return msgspec.json.decode(await self._client.get(path, subject=path))


def _utilization_pct(status: dict[str, Any]) -> int | None:
    for metric in status.get("currentMetrics") or []:
        found: int | None = metric.get("resource", {}).get("current", {}).get("averageUtilization")
        if found is not None:
            return found
    return None


def _holding(status: dict[str, Any], replicas: int) -> str:
    """Why the autoscaler does not scale, from its conditions; empty without a reason, or with a single pod."""
    for condition in status.get("conditions") or []:
        if condition["type"] == "ScalingActive" and condition["status"] == "False":
            return str(condition.get("message", ""))
        if condition.get("reason") in STABILIZED and replicas > 1:
            return str(condition.get("message", ""))
    return ""
