"""Records events of pods and their containers.

`kubelet.pods.pod_worker` and `simulated_pod` use it. Reasons and messages are kubelet's where it has such an event. A
new event needs no method here: the first two take any reason.

Source: pkg/kubelet/events/event.go (kubelet).
"""

from collections.abc import Mapping
from typing import Any, Literal

from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Waiting
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Object


class PodEvents:
    """Records the events of one pod; any version of its object will do, as only its names are used."""

    def __init__(self, recorder: EventRecorder, pod: Object) -> None:
        self._recorder = recorder
        self._pod = pod

    def record_pod_event(self, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Record an event of the pod."""
        self._recorder.event(self._pod, type, reason, message)

    def record_container_event(self, name: str, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Record an event of one container."""
        self._recorder.event(self._pod, type, reason, message, field_path=field_path(self._pod, name))

    def record_started(self, name: str) -> None:
        """Record that a container was created and started."""
        self.record_container_event(name, "Normal", "Created", f"Created container: {name}")
        self.record_container_event(name, "Normal", "Started", f"Started container {name}")

    def record_back_off(self, container: ContainerState) -> None:
        """Record BackOff if the container is in CrashLoopBackOff; called after each exit."""
        if isinstance(container.state, Waiting) and container.state.reason == "CrashLoopBackOff":
            message = f"Back-off restarting failed container {container.name} in pod {pod_text(self._pod)}"
            self.record_container_event(container.name, "Warning", "BackOff", message)


def field_path(pod: Mapping[str, Any], name: str) -> str:
    """The event's fieldPath for a container: `spec.containers{web}`."""
    is_init = any(container["name"] == name for container in pod["spec"].get("initContainers") or [])
    return f"spec.{'initContainers' if is_init else 'containers'}{{{name}}}"


def pod_text(pod: Mapping[str, Any]) -> str:
    """The pod's name in messages: `name_namespace(uid)`."""
    meta = pod["metadata"]
    return f"{meta['name']}_{meta['namespace']}({meta['uid']})"
