"""What to do next for a pod: which containers to start or stop, when to look again, and how the pod ended.

`pod_worker` asks after every change and carries out the answer. Pure. Rules:

1. Init containers run one after the other; the next one begins when the one before has ended with 0 (init container)
   or has started (sidecar: its process runs, its startup probe succeeded).
2. Regular containers begin when all of these are through, all at once.
3. A container that ended is started again as its policy says, from `retry_at_ns` on. Sidecars are restarted as long as
   anything else of the pod is to run.
4. When an init container failed for good, or all regular containers ended for good, or the pod is `ending` (deleted,
   past its deadline, the node stops), the pod winds down: everything but sidecars is stopped at once, then the sidecars
   one by one, last first. When nothing runs, the pod has its outcome.

Source: Pod Lifecycle, Init Containers, Sidecar Containers (Kubernetes documentation).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role

Outcome = Literal["Succeeded", "Failed"]


@dataclass(frozen=True, slots=True)
class PodActions:
    """The next steps.

    Attributes:
        start, stop: names of containers. A container that is being stopped already is named again.
        wake_at_ns: when a container becomes due, None when only events can change anything.
        initialized: whether regular containers may run.
        outcome: how the pod ended, once nothing of it runs and nothing will.
    """

    start: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    wake_at_ns: int | None = None
    initialized: bool = False
    outcome: Outcome | None = None


def plan(containers: Sequence[ContainerState], *, initialized: bool, ending: bool, now_ns: int) -> PodActions:
    """The next steps for the pod.

    Args:
        containers: all of them, init containers and sidecars first, in the manifest's order.
        initialized: what the previous plan said: once true, init containers are not looked at again.
        ending: nothing may be started any more.
    """
    through, eligible = (True, list(containers)) if initialized else _eligible(containers)
    if ending or _is_over(containers):
        return _wind_down(containers, initialized=initialized)
    startable = [c for c in eligible if _is_startable(c)]
    due = [c for c in startable if (c.retry_at_ns or 0) <= now_ns]
    later = [c.retry_at_ns for c in startable if c.retry_at_ns is not None and c.retry_at_ns > now_ns]
    return PodActions(
        start=tuple(c.name for c in due),
        wake_at_ns=min(later, default=None),
        initialized=through,
    )


def _eligible(containers: Sequence[ContainerState]) -> tuple[bool, list[ContainerState]]:
    """Whether all init containers are through, and the containers that may run now (rules 1 and 2)."""
    eligible: list[ContainerState] = []
    for container in containers:
        if container.role is Role.INIT:
            if _has_succeeded(container):
                continue
            return False, [*eligible, container]
        if container.role is Role.SIDECAR:
            eligible.append(container)
            if not container.started:
                return False, eligible
        else:
            eligible.append(container)
    return True, eligible


def _is_startable(container: ContainerState) -> bool:
    return not container.is_running and container.retry_at_ns is not None


def _has_succeeded(container: ContainerState) -> bool:
    return container.is_final and container.exit_code == 0


def _has_failed(container: ContainerState) -> bool:
    return container.is_final and container.exit_code != 0


def _is_over(containers: Iterable[ContainerState]) -> bool:
    """Rule 4: nothing of the pod's own work is left to do."""
    own = [c for c in containers if c.role is not Role.SIDECAR]
    if any(_has_failed(c) for c in own if c.role is Role.INIT):
        return True
    return all(c.is_final for c in own if c.role is Role.MAIN)


def _wind_down(containers: Sequence[ContainerState], *, initialized: bool) -> PodActions:
    running = [c for c in containers if c.is_running]
    own = [c.name for c in running if c.role is not Role.SIDECAR]
    sidecars = [c.name for c in running if c.role is Role.SIDECAR]
    stop = tuple(own) if own else tuple(sidecars[-1:])
    return PodActions(stop=stop, initialized=initialized, outcome=None if running else _outcome(containers))


def _outcome(containers: Iterable[ContainerState]) -> Outcome:
    own = [c for c in containers if c.role is not Role.SIDECAR]
    return "Succeeded" if all(c.exit_code == 0 for c in own) else "Failed"
