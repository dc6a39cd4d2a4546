"""The events that the node reports about pods and their containers.

`pod_worker` uses it; reasons and texts are the kubelet's where it has such an event.
"""

from collections.abc import Mapping
from typing import Any, Literal

from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Waiting
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Object


class PodEvents:
    """Events of one pod.

    Args:
        pod: the pod as it was when its worker began: events need its names alone.
    """

    def __init__(self, recorder: EventRecorder, pod: Object) -> None:
        self._recorder = recorder
        self._pod = pod

    def of_pod(self, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Something about the pod as a whole."""
        self._recorder.event(self._pod, type, reason, message)

    def of_container(self, name: str, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Something about one container."""
        self._recorder.event(self._pod, type, reason, message, field_path=field_path(self._pod, name))

    def started(self, name: str) -> None:
        """A container's process runs."""
        self.of_container(name, "Normal", "Created", f"Created container: {name}")
        self.of_container(name, "Normal", "Started", f"Started container {name}")

    def backing_off(self, container: ContainerState) -> None:
        """A container waits for its next start."""
        if isinstance(container.state, Waiting) and container.state.reason == "CrashLoopBackOff":
            message = f"Back-off restarting failed container {container.name} in pod {pod_text(self._pod)}"
            self.of_container(container.name, "Warning", "BackOff", message)


def field_path(pod: Mapping[str, Any], name: str) -> str:
    """The part of the pod that a container is: `spec.containers{web}`."""
    is_init = any(entry["name"] == name for entry in pod["spec"].get("initContainers") or [])
    return f"spec.{'initContainers' if is_init else 'containers'}{{{name}}}"


def pod_text(pod: Mapping[str, Any]) -> str:
    """The pod as messages name it: `name_namespace(uid)`."""
    meta = pod["metadata"]
    return f"{meta['name']}_{meta['namespace']}({meta['uid']})"
