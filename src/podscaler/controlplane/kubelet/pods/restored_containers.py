"""Restores the containers of a pod from the pod's status, after a restart of the node.

`pod_worker` calls `restore` when it begins with a pod, which continues as after a reboot of its node where `up` was
stopped or killed. Pure. Rules:

1. A container that was running has terminated with reason ContainerStatusUnknown; its policy decides whether it is
   restarted, at once.
2. A container that has terminated and is not restarted stays so.
3. If a regular container is restarted, init containers run again before it, as upstream makes a new sandbox for the
   pod. Restart counts go on.

A new field of `ContainerState` that must survive a restart: `pod_status` writes it, `_restore_container` reads it.

Source: Pod Lifecycle, Init Containers, "Pod restart reasons" (Kubernetes documentation).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from podscaler.api.machinery import instants
from podscaler.controlplane.kubelet.containers import container_state
from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role, Terminated, Waiting
from podscaler.controlplane.kubelet.pods.pod_status import CONTAINER_ID_SCHEME

_UNKNOWN_MESSAGE = "the node was stopped while this container was running"


def restore(pod: Mapping[str, Any], *, now_ns: int) -> list[ContainerState]:
    """The containers of `pod`, with the states of its status, in the order of `container_state.initial_states`.

    Args:
        pod: a core/v1 Pod as JSON; without a status its containers have their initial states.
        now_ns: the instant at which containers that were running count as terminated.
    """
    status = pod.get("status") or {}
    status_by_name = {
        container_status["name"]: container_status
        for field in ("initContainerStatuses", "containerStatuses")
        for container_status in status.get(field) or []
    }
    containers = [
        _restore_container(container, status_by_name.get(container.name), now_ns)
        for container in container_state.initial_states(pod["spec"])
    ]
    return _reset_succeeded_inits(containers)


def _restore_container(
    container: ContainerState, container_status: Mapping[str, Any] | None, now_ns: int
) -> ContainerState:
    """`container` with the state of its core/v1 ContainerStatus (None: it has none, and is unchanged)."""
    if container_status is None:
        return container
    last_termination = _find_terminated(container_status.get("lastState") or {})
    state = _restore_state(container_status.get("state") or {}, now_ns)
    restored = replace(
        container,
        state=container.state if state is None else state,
        last_termination=last_termination,
        start_tried=state is not None or last_termination is not None,
        restart_count=container_status.get("restartCount", 0),
    )
    if state is not None and not container_state.is_restarted(container.policy, state.exit_code):
        return replace(restored, start_due_ns=None)
    return restored


def _restore_state(state_json: Mapping[str, Any], now_ns: int) -> Terminated | None:
    """The termination of a container with this core/v1 ContainerState (rules 1 and 2); None if it was waiting."""
    if (running := state_json.get("running")) is not None:
        started_ns = _instant_ns(running.get("startedAt"))
        return Terminated(
            container_state.UNKNOWN_EXIT_CODE, "ContainerStatusUnknown", now_ns, started_ns, message=_UNKNOWN_MESSAGE
        )
    return _find_terminated(state_json)


def _find_terminated(state_json: Mapping[str, Any]) -> Terminated | None:
    """The termination in a core/v1 ContainerState, None if it has none."""
    terminated = state_json.get("terminated")
    if terminated is None:
        return None
    return Terminated(
        exit_code=terminated.get("exitCode", 0),
        reason=terminated.get("reason", ""),
        finished_ns=_instant_ns(terminated.get("finishedAt")),
        started_ns=_instant_ns(terminated.get("startedAt")),
        container_id=terminated.get("containerID", "").removeprefix(CONTAINER_ID_SCHEME),
        message=terminated.get("message", ""),
    )


def _instant_ns(timestamp: str | None) -> int:
    """An RFC 3339 time in nanoseconds since the epoch; 0 for a field that the status does not have."""
    return instants.parse(timestamp) if timestamp else 0


def _reset_succeeded_inits(containers: Sequence[ContainerState]) -> list[ContainerState]:
    """The containers; those init containers that have succeeded are reset if a regular container will run (rule 3)."""
    if all(container.is_final for container in containers if container.role is Role.MAIN):
        return list(containers)
    return [_reset_init(container) if _is_succeeded_init(container) else container for container in containers]


def _is_succeeded_init(container: ContainerState) -> bool:
    return container.role is Role.INIT and container.is_final and container.exit_code == 0


def _reset_init(container: ContainerState) -> ContainerState:
    """The state of an init container that runs again; its termination becomes the last one."""
    previous = container.latest_termination
    return replace(container, state=Waiting("PodInitializing"), last_termination=previous, start_due_ns=0)
