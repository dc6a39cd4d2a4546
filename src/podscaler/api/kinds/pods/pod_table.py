"""The table that `kubectl get pods` prints: `web-1  1/2  CrashLoopBackOff  3 (10s ago)  5m`.

PRINTER is part of `api.kinds.pods.pod.RESOURCE`; `podscaler.cli.diagnosis.pod_checks` reads the status with it. The
status is, in rising precedence: the pod's phase or reason; the state of the first unfinished init container; of the
first container that waits or has ended; Terminating. Pods are JSON objects; `spec` and `status` arguments are these
parts of one. A new column: in _COLUMNS and in `_cells`, in the same order.

Source: the columns and cells of kube-apiserver v1.37 (tests/conformance/golden).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.resource import tables
from podscaler.api.resource.resources import Column, Object


@dataclass(slots=True)
class _Restarts:
    """The number of restarts of several containers, and the end of the last run (RFC 3339; empty: no restart)."""

    count: int = 0
    last_at: str = ""

    def add(self, container_status: Object) -> None:
        """Adds the restarts in a container status."""
        self.count += container_status.get("restartCount", 0)
        last_terminated = (container_status.get("lastState") or {}).get("terminated") or {}
        # RFC 3339 texts in UTC with whole seconds sort like the instants that they name.
        self.last_at = max(self.last_at, last_terminated.get("finishedAt") or "")


@dataclass(slots=True)
class _Summary:
    """The contents of the cells that depend on several containers.

    Attributes:
        status: the column STATUS.
        ready: the number of ready containers.
        restarts: the number of restarts: of init containers while the pod initializes, then of containers and sidecars.
        restarted_at: when the last run before a restart ended, RFC 3339; empty without one.
        sidecar_restarts: the restarts of sidecars.
    """

    status: str
    ready: int = 0
    restarts: int = 0
    restarted_at: str = ""
    sidecar_restarts: _Restarts = field(default_factory=_Restarts)


def _cells(pod: Object, now_ns: int) -> list[Any]:
    """The cells of all columns but name and age."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    summary = _summarize(pod, spec, status)
    container_count = len(spec.get("containers") or []) + len(_sidecar_names(spec))
    return [
        f"{summary.ready}/{container_count}",
        summary.status,
        _restarts_text(summary, now_ns),
        _pod_ip(status) or printing.NONE,
        spec.get("nodeName") or printing.NONE,
        status.get("nominatedNodeName") or printing.NONE,
        _readiness_gates_text(spec, status),
    ]


_CONDITIONS_BY_PHASE = {
    phase: ({"type": "Completed", "status": "True", "reason": phase, "message": message},)
    for phase, message in (
        ("Succeeded", "The pod has completed successfully."),
        ("Failed", "The pod failed."),
    )
}
"""Phase of a pod that has ended -> the conditions of its table row."""


def _row_conditions(pod: Object) -> Sequence[Object]:
    """The conditions of the table row of a pod, none before its end."""
    return _CONDITIONS_BY_PHASE.get((pod.get("status") or {}).get("phase", ""), ())


_COLUMNS = tables.named(
    "pod",
    Column("Ready", description="How many of the pod's containers are ready, of all."),
    Column("Status", description="What the pod is doing, in one word."),
    Column("Restarts", description="How often containers were restarted, and when last."),
    tables.AGE,
    Column("IP", description="Address of the pod.", priority=1),
    Column("Node", description="Node on which the pod runs.", priority=1),
    Column("Nominated Node", description="Node on which room is being made for the pod.", priority=1),
    Column("Readiness Gates", description="How many of the pod's readiness gates are passed, of all.", priority=1),
    cells=_cells,
)
PRINTER = replace(_COLUMNS, conditions=_row_conditions)


def _summarize(pod: Object, spec: Object, status: Object) -> _Summary:
    """The readiness, status and restarts of a pod, as the table shows them."""
    summary = _Summary(status.get("reason") or status.get("phase", ""))
    if any(condition.get("reason") == "SchedulingGated" for condition in _conditions(status, "PodScheduled")):
        summary.status = "SchedulingGated"
    is_initializing = _summarize_init_containers(summary, spec, status)
    # an initialized pod also shows its containers while a sidecar starts again, as upstream
    if not is_initializing or _is_true(status, "Initialized"):
        _summarize_containers(summary, status)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            summary.status = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            summary.status = "Terminating"
    return summary


def _summarize_init_containers(summary: _Summary, spec: Object, status: Object) -> bool:
    """Sets the status by the first unfinished init container, and the restarts, in `summary`.

    Returns whether the pod still initializes: an init container has not succeeded, and is no started sidecar.
    """
    sidecars = _sidecar_names(spec)
    all_restarts = _Restarts()
    for index, container_status in enumerate(status.get("initContainerStatuses") or []):
        is_sidecar = container_status.get("name") in sidecars
        all_restarts.add(container_status)
        summary.restarts, summary.restarted_at = all_restarts.count, all_restarts.last_at
        if is_sidecar:
            summary.sidecar_restarts.add(container_status)
        state = container_status.get("state") or {}
        terminated = state.get("terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue  # has succeeded
        if is_sidecar and container_status.get("started"):
            summary.ready += bool(container_status.get("ready"))
            continue
        summary.status = _init_status(state, index, len(spec.get("initContainers") or []))
        return True
    return False


def _init_status(state: Object, index: int, init_count: int) -> str:
    """The column STATUS while an init container runs: `Init:1/3`, or the reason why it waits or has ended.

    Args:
        state: the state of the container.
        index: how many init containers have finished.
        init_count: how many there are.
    """
    if (terminated := state.get("terminated")) is not None:
        return f"Init:{_end_reason(terminated)}"
    waiting_reason = (state.get("waiting") or {}).get("reason", "")
    if waiting_reason and waiting_reason != "PodInitializing":
        return f"Init:{waiting_reason}"
    return f"Init:{index}/{init_count}"


def _summarize_containers(summary: _Summary, status: Object) -> None:
    """Counts ready containers and restarts, and sets the status by the first container that does not run.

    A pod of which some containers have completed and others run is Running, or NotReady.
    """
    restarts = replace(summary.sidecar_restarts)  # a copy, to which those of containers are added
    is_running = False
    for container_status in reversed(status.get("containerStatuses") or []):  # so that the first one sets the status
        restarts.add(container_status)
        state = container_status.get("state") or {}
        if waiting := (state.get("waiting") or {}).get("reason"):
            summary.status = waiting
        elif (terminated := state.get("terminated")) is not None:
            summary.status = _end_reason(terminated)
        elif container_status.get("ready") and state.get("running") is not None:
            is_running = True
            summary.ready += 1
    summary.restarts, summary.restarted_at = restarts.count, restarts.last_at
    if summary.status == "Completed" and is_running:
        summary.status = "Running" if _is_true(status, "Ready") else "NotReady"


def _end_reason(terminated: Object) -> str:
    """The reason why a container ended, else its signal or exit code; `terminated` is its terminated state."""
    if reason := terminated.get("reason"):
        return str(reason)
    return f"Signal:{terminated['signal']}" if terminated.get("signal") else f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts_text(summary: _Summary, now_ns: int) -> str:
    """The column RESTARTS: `3 (10s ago)`, or the number alone if no time of a restart is known."""
    if summary.restarts and summary.restarted_at:
        return f"{summary.restarts} ({printing.age(summary.restarted_at, now_ns)} ago)"
    return str(summary.restarts)


def _pod_ip(status: Object) -> str:
    """The first IP address of a pod; empty before it has one."""
    pod_ips = status.get("podIPs") or []
    return str(pod_ips[0].get("ip", "") if pod_ips else status.get("podIP", ""))


def _readiness_gates_text(spec: Object, status: Object) -> str:
    """The column READINESS GATES: `TRUE/ALL`, or `<none>` for a pod without gates."""
    gates = spec.get("readinessGates") or []
    if not gates:
        return printing.NONE
    true_count = sum(_is_true(status, gate.get("conditionType", "")) for gate in gates)
    return f"{true_count}/{len(gates)}"


def _sidecar_names(spec: Object) -> set[str]:
    """The names of the init containers that run beside the containers."""
    return {
        container.get("name", "")
        for container in spec.get("initContainers") or []
        if container.get("restartPolicy") == "Always"
    }


def _conditions(status: Object, condition_type: str) -> list[Object]:
    """The conditions of the type in a pod's status, at most one in a valid pod."""
    return [condition for condition in status.get("conditions") or [] if condition.get("type") == condition_type]


def _is_true(status: Object, condition_type: str) -> bool:
    return any(condition.get("status") == "True" for condition in _conditions(status, condition_type))
