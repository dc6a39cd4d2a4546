"""Schedules pods: binds them to the only node of the cluster (the place of kube-scheduler).

`kubelet.node_agent` calls `Binder.bind` for every pod without a node, and again when the node changes. Pods of another
scheduler or with scheduling gates are skipped. A pod that does not match the node (nodeSelector, or the node is
cordoned) gets the reason in its condition PodScheduled.

Source: kube-scheduler's events and messages. Differs: there is one node, and resource requests are not checked, as pods
share the machine as processes do.
"""

from collections.abc import Mapping
from typing import Any, Final

from podscaler.base.clock import Clock, rfc3339
from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Object, Registry

SCHEDULER_NAME: Final = "default-scheduler"
NO_NODES: Final = "no nodes available to schedule pods"


class Binder:
    """Binds pods to one node.

    Args:
        registry: the pods and the node.
        clock: the times of condition transitions.
        events: the recorder of the component `default-scheduler`.
        node_name: the name of the node.
    """

    def __init__(self, registry: Registry, clock: Clock, events: EventRecorder, node_name: str) -> None:
        self._registry = registry
        self._clock = clock
        self._events = events
        self._node_name = node_name

    async def bind(self, pod: Object) -> None:
        """Bind `pod`, or write the reason why it cannot be bound to its status.

        Raises StatusError, but not 404 and 409: the pod is gone or bound then.
        """
        if is_skipped(pod):
            return
        node = self._registry.find("nodes", "", self._node_name)
        mismatch = NO_NODES if node is None else node_mismatch(pod, node)
        try:
            if mismatch:
                await self._mark_unschedulable(pod, mismatch)
            else:
                await self._bind(pod)
        except StatusError as error:
            if error.code not in (404, 409):
                raise

    async def _bind(self, pod: Object) -> None:
        """Bind the pod, unless it was bound or replaced by another pod of its name meanwhile."""
        metadata = pod["metadata"]
        is_bound = False

        def set_node(stored_pod: Object) -> None:
            nonlocal is_bound
            if stored_pod["metadata"]["uid"] == metadata["uid"] and not stored_pod["spec"].get("nodeName"):
                stored_pod["spec"]["nodeName"] = self._node_name
                _set_scheduled(stored_pod, "True", self._clock.now_ns())
                is_bound = True

        await self._registry.mutate("pods", metadata["namespace"], metadata["name"], set_node, subresource="binding")
        if is_bound:
            message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {self._node_name}"
            self._events.event(pod, "Normal", "Scheduled", message)

    async def _mark_unschedulable(self, pod: Object, mismatch: str) -> None:
        """Write the condition PodScheduled=False with the message, and an event."""
        metadata = pod["metadata"]

        def set_condition(stored_pod: Object) -> None:
            if stored_pod["metadata"]["uid"] == metadata["uid"]:
                _set_scheduled(stored_pod, "False", self._clock.now_ns(), reason="Unschedulable", message=mismatch)

        namespace, name = metadata["namespace"], metadata["name"]
        await self._registry.mutate("pods", namespace, name, set_condition, subresource="status")
        self._events.event(pod, "Warning", "FailedScheduling", mismatch)


def is_skipped(pod: Mapping[str, Any]) -> bool:
    """Whether this scheduler does not handle the pod: bound, being deleted, gated, or of another scheduler."""
    spec = pod["spec"]
    return bool(
        spec.get("nodeName")
        or pod["metadata"].get("deletionTimestamp")
        or spec.get("schedulingGates")
        or spec.get("schedulerName", SCHEDULER_NAME) != SCHEDULER_NAME
    )


def node_mismatch(pod: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    """kube-scheduler's message why the pod cannot run on the node, empty if it can; the node may be an empty object.

    A new check: a message here, and a change of the node that ends the mismatch binds the pod (`kubelet.node_agent`).
    """
    if (node.get("spec") or {}).get("unschedulable"):
        return "0/1 nodes are available: 1 node(s) were unschedulable."
    labels = (node.get("metadata") or {}).get("labels") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    return ""


def _set_scheduled(pod: Object, status: str, now_ns: int, *, reason: str = "", message: str = "") -> None:
    """Set the condition PodScheduled in place, unless it has that status and message already."""
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    previous = next((condition for condition in conditions if condition["type"] == "PodScheduled"), None)
    if previous is not None and (previous["status"], previous.get("message", "")) == (status, message):
        return
    new = {"type": "PodScheduled", "status": status, "lastProbeTime": None, "lastTransitionTime": rfc3339(now_ns)}
    new |= {name: content for name, content in (("reason", reason), ("message", message)) if content}
    others = [condition for condition in conditions if condition["type"] != "PodScheduled"]
    pod["status"]["conditions"] = [*others, new]
