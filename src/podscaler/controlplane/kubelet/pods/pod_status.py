"""Computes the core/v1 PodStatus from the states of a pod's containers.

`kubelet.pods.pod_writer` calls `pod_status` and writes the result if it differs from the stored status. Pure.
Transition times, and fields and conditions of other writers (conditions of readiness gates, ...), are taken from the
former status. `restored_containers` is the inverse for containers: it reads what `container_status` writes.

Source: PodStatus and ContainerStatus (API reference); Pod Lifecycle (Kubernetes documentation).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.base.clock import rfc3339
from podscaler.controlplane.kubelet.containers.container_state import (
    ContainerState,
    Role,
    Running,
    State,
    Terminated,
    Waiting,
)
from podscaler.controlplane.kubelet.pods import pod_conditions
from podscaler.controlplane.kubelet.pods.pod_actions import Outcome
from podscaler.controlplane.registry.registry import Object

CONTAINER_ID_SCHEME = "podscaler://"
_NOT_STARTED_AT = "1970-01-01T00:00:00Z"
"""The startedAt of a container that could not be started, as container runtimes report it."""


@dataclass(frozen=True, slots=True)
class PodStatusFacts:
    """The facts of the status other than the containers' states.

    Attributes:
        host_ip: the address of the node.
        pod_ip: empty before the pod has an address.
        started_ns: when this node started to work on the pod; becomes status.startTime unless that is set.
        initialized: whether the init containers have succeeded, and the sidecars among them have started.
        outcome: the phase in which the pod has ended, None while it runs.
        reason, message: why the node terminated it (`DeadlineExceeded`), else empty.
    """

    host_ip: str
    pod_ip: str
    started_ns: int
    initialized: bool
    outcome: Outcome | None = None
    reason: str = ""
    message: str = ""


def pod_status(pod: Object, containers: Sequence[ContainerState], facts: PodStatusFacts, *, now_ns: int) -> Object:
    """The new status of `pod` as JSON; fields of other writers are carried over from its former status.

    A field that this function sets stands in _OWN_FIELDS too.

    Args:
        pod: the stored Pod.
        containers: all its containers, in the manifest's order.
    """
    former = pod.get("status") or {}
    status: Object = {field: value for field, value in former.items() if field not in _OWN_FIELDS}
    specs = container_specs(pod["spec"])
    init_statuses = [
        container_status(container, specs[container.name])
        for container in containers
        if container.role is not Role.MAIN
    ]
    main_statuses = [
        container_status(container, specs[container.name]) for container in containers if container.role is Role.MAIN
    ]
    status["phase"] = phase(containers, facts)
    status["conditions"] = pod_conditions.conditions(
        pod,
        containers,
        pod_conditions.PodReadiness(status["phase"], facts.initialized, has_address=bool(facts.pod_ip)),
        now_ns=now_ns,
    )
    status |= _address_fields(facts)
    status["startTime"] = former.get("startTime") or rfc3339(facts.started_ns)
    if init_statuses:
        status["initContainerStatuses"] = init_statuses
    status["containerStatuses"] = main_statuses
    if facts.reason:
        status["reason"] = facts.reason
    if facts.message:
        status["message"] = facts.message
    if generation := pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
    return status


_OWN_FIELDS = frozenset(
    (
        *("phase", "conditions", "message", "reason", "startTime", "observedGeneration"),
        *("hostIP", "hostIPs", "podIP", "podIPs", "containerStatuses", "initContainerStatuses"),
    )
)
"""The fields of PodStatus that `pod_status` sets or leaves out, whatever the former status has."""


def phase(containers: Sequence[ContainerState], facts: PodStatusFacts) -> str:
    """The pod's phase: the outcome, or Pending until all regular containers have started once, then Running."""
    if facts.outcome is not None:
        return facts.outcome
    has_unstarted = any(
        container.role is Role.MAIN and isinstance(container.state, Waiting) and container.last_termination is None
        for container in containers
    )
    return "Pending" if has_unstarted or not facts.initialized else "Running"


def container_status(container: ContainerState, spec: Mapping[str, Any]) -> Object:
    """The core/v1 ContainerStatus of a container; `spec` is its core/v1 Container."""
    status: Object = {
        "name": container.name,
        "state": _state_json(container.state),
        "lastState": _state_json(container.last_termination) if container.last_termination else {},
        "ready": is_ready(container),
        "restartCount": container.restart_count,
        "image": spec.get("image", ""),
        "imageID": f"{CONTAINER_ID_SCHEME}image/{spec.get('image', '')}" if container.start_tried else "",
        "started": container.started,
    }
    if container_id := _container_id(container):
        status["containerID"] = CONTAINER_ID_SCHEME + container_id
    return status


def is_ready(container: ContainerState) -> bool:
    """Whether an init container has succeeded; whether the readiness probe of another container has."""
    if container.role is Role.INIT:
        return container.is_final and container.exit_code == 0
    return container.ready


def container_specs(pod_spec: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The core/v1 Containers of a PodSpec, init containers too, by name."""
    containers = [*(pod_spec.get("initContainers") or []), *(pod_spec.get("containers") or [])]
    return {container["name"]: container for container in containers}


def _address_fields(facts: PodStatusFacts) -> Object:
    """The fields of the status with addresses; none of the pod before it has one."""
    addresses: Object = {"hostIP": facts.host_ip, "hostIPs": [{"ip": facts.host_ip}]}
    if facts.pod_ip:
        addresses |= {"podIP": facts.pod_ip, "podIPs": [{"ip": facts.pod_ip}]}
    return addresses


def _container_id(container: ContainerState) -> str:
    """The id of the present start of a container, or of the last one if it waits; empty if it never ran."""
    if isinstance(container.state, Waiting):
        return container.last_termination.container_id if container.last_termination else ""
    return container.state.container_id


def _state_json(state: State) -> Object:
    """The core/v1 ContainerState of a state."""
    if isinstance(state, Waiting):
        message = {"message": state.message} if state.message else {}
        return {"waiting": {"reason": state.reason, **message}}
    if isinstance(state, Running):
        return {"running": {"startedAt": rfc3339(state.started_ns)}}
    return {"terminated": _terminated_json(state)}


def _terminated_json(state: Terminated) -> Object:
    """The core/v1 ContainerStateTerminated of a container that has ended."""
    terminated: Object = {"exitCode": state.exit_code, "reason": state.reason}
    if state.message:
        terminated["message"] = state.message
    terminated["startedAt"] = rfc3339(state.started_ns) if state.started_ns else _NOT_STARTED_AT
    terminated["finishedAt"] = rfc3339(state.finished_ns)
    if state.container_id:
        terminated["containerID"] = CONTAINER_ID_SCHEME + state.container_id
    return terminated
