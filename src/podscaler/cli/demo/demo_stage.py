"""Creates the objects of the demo and reads their state, through the API.

Called by `podscaler.cli.demo.demo`. A scenario with objects of a further kind: add its path to COLLECTIONS.
"""

from typing import Any

import msgspec

from podscaler.cli.demo.demo_scenario import NAMESPACE, DemoScenario
from podscaler.cli.demo.demo_story import DemoRescale, DemoView
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client

COLLECTIONS = {
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "HorizontalPodAutoscaler": f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers",
    "MetricSource": f"/apis/podscaler.dev/v1alpha1/namespaces/{NAMESPACE}/metricsources",
    "Service": f"/api/v1/namespaces/{NAMESPACE}/services",
}
"""The paths of the kinds that scenarios create."""
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"

STABILIZED_REASONS = {"ScaleDownStabilized", "ScaleUpStabilized"}
"""The reasons of the condition AbleToScale while stabilization prevents a rescale."""
NO_REASON = "(no reason given: the metric is on target now, but an earlier, higher recommendation still counts)"
"""Printed for an event without a reason: `reconcileAutoscaler` of kube-controller-manager composes the reason before it
applies stabilization."""


class DemoStage:
    """The demo's objects on one API server.

    Args:
        client: has the rights of an administrator.
        scenario: returns the objects.
    """

    def __init__(self, client: Client, scenario: DemoScenario) -> None:
        self._client = client
        self._scenario = scenario
        self._created_kinds: list[str] = []
        self._reported_events: set[str] = set()  # uid and count, since an Event may occur again

    async def set_up(self) -> None:
        """Create the objects of the scenario. Raises StatusError."""
        for manifest in self._scenario.objects():
            kind, name = manifest["kind"], manifest["metadata"]["name"]
            await self._client.post(COLLECTIONS[kind], msgspec.json.encode(manifest), subject=f"{kind} {name}")
            self._created_kinds.append(kind)

    def created_text(self) -> str:
        """The kinds that were created, as part of a sentence; call it after `set_up`."""
        return f"{', '.join(self._created_kinds[:-1])} and {self._created_kinds[-1]}"

    async def is_ready(self) -> bool:
        """Whether a pod is ready. Raises StatusError."""
        deployment = await self._get_object("Deployment")
        return bool(deployment.get("status", {}).get("readyReplicas"))

    async def service_url(self) -> str:
        """The Service's address; empty if the scenario has no Service. Raises StatusError."""
        if "Service" not in self._created_kinds:
            return ""
        spec = (await self._get_object("Service"))["spec"]
        return f"http://{spec['clusterIP']}:{spec['ports'][0]['port']}/"

    async def read_view(self, *, at_s: float) -> DemoView:
        """The present state, `at_s` seconds after the start. Raises StatusError."""
        deployment = await self._get_object("Deployment")
        status = (await self._get_object("HorizontalPodAutoscaler"))["status"]
        return DemoView(
            at_s=at_s,
            load=self._scenario.load_text(),
            metric=self._scenario.metric_text(status),
            is_loaded=self._scenario.is_loaded,
            replicas=deployment["spec"]["replicas"],
            ready=deployment.get("status", {}).get("readyReplicas", 0),
            holding=_holding_reason(status, deployment["spec"]["replicas"]),
        )

    async def take_rescales(self, *, at_s: float) -> list[DemoRescale]:
        """The rescales that events report since the last call, oldest first. Raises StatusError."""
        rescales = []
        events = (await self._get(EVENTS))["items"]
        for event in sorted(events, key=lambda event: int(event["metadata"]["resourceVersion"])):
            occurrence = event["metadata"]["uid"] + str(event.get("count"))
            if event.get("reason") == "SuccessfulRescale" and occurrence not in self._reported_events:
                self._reported_events.add(occurrence)
                size, _, reason = event["message"].removeprefix("New size: ").partition("; reason: ")
                rescales.append(DemoRescale(at_s, int(size), reason or NO_REASON))
        return rescales

    async def _get_object(self, kind: str) -> Any:
        """The scenario's object of a kind. Raises StatusError."""
        return await self._get(COLLECTIONS[kind] + urls.path(self._scenario.name))

    async def _get(self, path: str) -> Any:
        return msgspec.json.decode(await self._client.get(path, subject=path))


def _holding_reason(status: dict[str, Any], replicas: int) -> str:
    """Why the autoscaler does not scale, from the conditions of its status; empty without a reason, or for one pod."""
    for condition in status.get("conditions") or []:
        if condition["type"] == "ScalingActive" and condition["status"] == "False":
            return str(condition.get("message", ""))
        if condition.get("reason") in STABILIZED_REASONS and replicas > 1:
            return str(condition.get("message", ""))
    return ""
