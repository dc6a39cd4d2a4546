"""Restores the containers of a pod from the pod's status, after a restart of the node.

`pod_worker` begins with it, so that a pod goes on after `up` was stopped or killed as after a reboot of its node. Pure.
Rules:

1. A container that was running has terminated with reason ContainerStatusUnknown; its policy decides whether it is
   restarted, at once.
2. A container that has terminated and is not restarted stays so.
3. If a regular container is restarted, init containers run again before it, as upstream makes a new sandbox for the
   pod. Restart counts go on.

Source: Pod Lifecycle, Init Containers, "Pod restart reasons" (Kubernetes documentation).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from podscaler.api.machinery import instants
from podscaler.controlplane.kubelet.containers import container_state
from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role, State, Terminated, Waiting

_LOST = "the node was stopped while this container was running"


def restore(pod: Mapping[str, Any], *, now_ns: int) -> list[ContainerState]:
    """The containers of `pod`, with the states of its status, in the order of `container_state.initial_states`."""
    status = pod.get("status") or {}
    known = {
        entry["name"]: entry
        for group in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(group) or []
    }
    containers = [
        _restored(container, known[container.name], now_ns) if container.name in known else container
        for container in container_state.initial_states(pod["spec"])
    ]
    return _reset_inits(containers)


def _restored(container: ContainerState, entry: Mapping[str, Any], now_ns: int) -> ContainerState:
    last = _terminated(entry.get("lastState") or {})
    state, ran = _state(entry.get("state") or {}, container.state, now_ns)
    known = replace(
        container,
        state=state,
        last=last,
        ran=ran or last is not None,
        restart_count=entry.get("restartCount", 0),
    )
    if isinstance(state, Terminated) and not container_state.restarts(container.policy, state.exit_code):
        return replace(known, retry_at_ns=None)
    return known


def _state(recorded: Mapping[str, Any], otherwise: State, now_ns: int) -> tuple[State, bool]:
    if (running := recorded.get("running")) is not None:
        started_ns = _instant_ns(running.get("startedAt"))
        return Terminated(
            container_state.UNKNOWN_EXIT_CODE, "ContainerStatusUnknown", now_ns, started_ns, message=_LOST
        ), True
    terminated = _terminated(recorded)
    return (terminated, True) if terminated else (otherwise, False)


def _terminated(recorded: Mapping[str, Any]) -> Terminated | None:
    entry = recorded.get("terminated")
    if entry is None:
        return None
    return Terminated(
        exit_code=entry.get("exitCode", 0),
        reason=entry.get("reason", ""),
        finished_ns=_instant_ns(entry.get("finishedAt")),
        started_ns=_instant_ns(entry.get("startedAt")),
        container_id=entry.get("containerID", ""),
        message=entry.get("message", ""),
    )


def _instant_ns(text: str | None) -> int:
    return instants.parse(text) if text else 0


def _reset_inits(containers: Sequence[ContainerState]) -> list[ContainerState]:
    if all(c.is_final for c in containers if c.role is Role.MAIN):
        return list(containers)
    return [_reset(c) if c.role is Role.INIT and c.is_final and c.exit_code == 0 else c for c in containers]


def _reset(container: ContainerState) -> ContainerState:
    last = container.state if isinstance(container.state, Terminated) else container.last
    return replace(container, state=Waiting("PodInitializing"), last=last, retry_at_ns=0)
