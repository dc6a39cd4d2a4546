"""Computes the next actions for a pod: the containers to start and to stop, and the outcome of the pod.

`kubelet.pods.pod_worker` calls `compute_pod_actions` after every change and carries out the result. Pure. A new action
is a field of `PodActions`; a new role of containers, a case in `_find_eligible` and `_termination_actions`. Rules:

1. Init containers run one after the other; the next one is started when the one before has exited with 0 (init
   container) or has started (sidecar: its process runs, and its startup probe has succeeded).
2. Regular containers are started together after all init containers.
3. A container that has exited is restarted from `start_due_ns` on, which `container_state` sets by its policy. Sidecars
   are restarted as long as other containers of the pod run or are to run.
4. The pod is terminated when an init container has failed finally, when all regular containers have terminated
   finally, or with `terminating` (deleted, past its deadline, the node stops). All containers but sidecars are
   stopped at once, then the sidecars one by one, the last first. The pod has an outcome when no container runs.

Source: Pod Lifecycle, Init Containers, Sidecar Containers (Kubernetes documentation); computePodActions (kubelet).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role

Outcome = Literal["Succeeded", "Failed"]


@dataclass(frozen=True, slots=True)
class PodActions:
    """The next actions.

    Attributes:
        start, stop: names of containers. `stop` has those that are being stopped already, too.
        wake_at_ns: when the next restart is due; None if none is.
        initialized: whether regular containers may run.
        outcome: the phase in which the pod has ended; None while a container runs or is to run.
    """

    start: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    wake_at_ns: int | None = None
    initialized: bool = False
    outcome: Outcome | None = None


def compute_pod_actions(
    containers: Sequence[ContainerState], *, initialized: bool, terminating: bool, now_ns: int
) -> PodActions:
    """The next actions for the pod; the same states give the same actions until the caller has carried them out.

    Args:
        containers: all containers, init containers and sidecars first, in the manifest's order.
        initialized: that of the previous result: once true, init containers are no longer considered.
        terminating: whether no container may be started any more.
    """
    if terminating or _is_over(containers):
        return _termination_actions(containers, initialized=initialized)
    # once initialized, all containers are eligible: init containers that have succeeded are not startable
    is_initialized, eligible = (True, containers) if initialized else _find_eligible(containers)
    startable = [
        (container.name, container.start_due_ns)
        for container in eligible
        if not container.is_running and container.start_due_ns is not None
    ]
    return PodActions(
        start=tuple(name for name, due_ns in startable if due_ns <= now_ns),
        wake_at_ns=min((due_ns for _, due_ns in startable if due_ns > now_ns), default=None),
        initialized=is_initialized,
    )


def _find_eligible(containers: Sequence[ContainerState]) -> tuple[bool, Sequence[ContainerState]]:
    """Whether all init containers are done, and the containers that may run now (rules 1 and 2)."""
    eligible: list[ContainerState] = []
    for container in containers:
        if container.role is Role.INIT and _has_succeeded(container):
            continue
        eligible.append(container)
        if container.role is Role.INIT or (container.role is Role.SIDECAR and not container.started):
            return False, eligible  # all later containers wait for this one
    return True, eligible


def _has_succeeded(container: ContainerState) -> bool:
    return container.is_final and container.exit_code == 0


def _has_failed(container: ContainerState) -> bool:
    return container.is_final and container.exit_code != 0


def _is_over(containers: Sequence[ContainerState]) -> bool:
    """Rule 4: whether an init container has failed, or all regular containers have terminated, finally."""
    if any(_has_failed(container) for container in containers if container.role is Role.INIT):
        return True
    return all(container.is_final for container in containers if container.role is Role.MAIN)


def _termination_actions(containers: Sequence[ContainerState], *, initialized: bool) -> PodActions:
    """The actions for a pod that is being terminated (rule 4)."""
    running = [container for container in containers if container.is_running]
    running_sidecars = [container.name for container in running if container.role is Role.SIDECAR]
    running_others = [container.name for container in running if container.role is not Role.SIDECAR]
    stop = tuple(running_others) if running_others else tuple(running_sidecars[-1:])
    return PodActions(stop=stop, initialized=initialized, outcome=None if running else _final_phase(containers))


def _final_phase(containers: Iterable[ContainerState]) -> Outcome:
    """The phase of a pod none of whose containers runs: Succeeded if all but sidecars have exited with 0."""
    exit_codes = [container.exit_code for container in containers if container.role is not Role.SIDECAR]
    return "Succeeded" if all(exit_code == 0 for exit_code in exit_codes) else "Failed"
