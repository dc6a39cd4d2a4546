"""The table that `kubectl get pods` prints: `web-1  1/2  CrashLoopBackOff  3 (10s ago)  5m`.

PRINTER is part of the record of Pod. The status is, in rising precedence: the pod's phase or reason; the state of the
first unfinished init container; of the first container that waits or has ended; Terminating.

Source: the columns and cells of kube-apiserver v1.37 (golden captures).
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

    def add(self, container: Object) -> None:
        self.count += container.get("restartCount", 0)
        last_terminated = (container.get("lastState") or {}).get("terminated") or {}
        # RFC 3339 texts in UTC with whole seconds sort like the instants that they name.
        self.last_at = max(self.last_at, last_terminated.get("finishedAt") or "")


@dataclass(slots=True)
class _Summary:
    """The contents of the cells; `ready` counts containers, `sidecars` are the restarts of sidecars."""

    status: str
    ready: int = 0
    restarts: int = 0
    restarted_at: str = ""
    sidecars: _Restarts = field(default_factory=_Restarts)


def _cells(pod: Object, now_ns: int) -> list[Any]:
    """The cells of all columns but name and age."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    summary = _summarize(pod, spec, status)
    total = len(spec.get("containers") or []) + len(_sidecar_names(spec))
    return [
        f"{summary.ready}/{total}",
        summary.status,
        _restarts(summary, now_ns),
        _ip(status) or printing.NONE,
        spec.get("nodeName") or printing.NONE,
        status.get("nominatedNodeName") or printing.NONE,
        _readiness_gates(spec, status),
    ]


_ENDS = {
    phase: ({"type": "Completed", "status": "True", "reason": phase, "message": message},)
    for phase, message in (
        ("Succeeded", "The pod has completed successfully."),
        ("Failed", "The pod failed."),
    )
}


def _row_conditions(pod: Object) -> Sequence[Object]:
    """The condition of the row of a pod that has ended."""
    return _ENDS.get((pod.get("status") or {}).get("phase", ""), ())


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
    initializing = _summarize_init_containers(summary, spec, status)
    if not initializing or _is_true(status, "Initialized"):
        _summarize_containers(summary, status)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            summary.status = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            summary.status = "Terminating"
    return summary


def _summarize_init_containers(summary: _Summary, spec: Object, status: Object) -> bool:
    """Whether the pod still initializes; sets the status by the first unfinished init container."""
    sidecars = _sidecar_names(spec)
    all_restarts = _Restarts()
    for index, container in enumerate(status.get("initContainerStatuses") or []):
        is_sidecar = container.get("name") in sidecars
        all_restarts.add(container)
        summary.restarts, summary.restarted_at = all_restarts.count, all_restarts.last_at
        if is_sidecar:
            summary.sidecars.add(container)
        state = container.get("state") or {}
        terminated = state.get("terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            summary.ready += bool(container.get("ready"))
            continue
        summary.status = _init_status(state, index, len(spec.get("initContainers") or []))
        return True
    return False


def _init_status(state: Object, index: int, count: int) -> str:
    """The status while an init container runs: `Init:1/3`, or the reason why it waits or has ended."""
    if (terminated := state.get("terminated")) is not None:
        return f"Init:{_end_reason(terminated)}"
    waiting = (state.get("waiting") or {}).get("reason", "")
    if waiting and waiting != "PodInitializing":
        return f"Init:{waiting}"
    return f"Init:{index}/{count}"


def _summarize_containers(summary: _Summary, status: Object) -> None:
    """Count ready containers and restarts, and take the status of the first container that is not running."""
    restarts = summary.sidecars
    is_running = False
    for container in reversed(status.get("containerStatuses") or []):
        restarts.add(container)
        state = container.get("state") or {}
        if waiting := (state.get("waiting") or {}).get("reason"):
            summary.status = waiting
        elif (terminated := state.get("terminated")) is not None:
            summary.status = _end_reason(terminated)
        elif container.get("ready") and state.get("running") is not None:
            is_running = True
            summary.ready += 1
    summary.restarts, summary.restarted_at = restarts.count, restarts.last_at
    if summary.status == "Completed" and is_running:
        summary.status = "Running" if _is_true(status, "Ready") else "NotReady"


def _end_reason(terminated: Object) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    return f"Signal:{terminated['signal']}" if terminated.get("signal") else f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(summary: _Summary, now_ns: int) -> str:
    if summary.restarts and summary.restarted_at:
        return f"{summary.restarts} ({printing.age(summary.restarted_at, now_ns)} ago)"
    return str(summary.restarts)


def _ip(status: Object) -> str:
    pod_ips = status.get("podIPs") or []
    return str(pod_ips[0].get("ip", "") if pod_ips else status.get("podIP", ""))


def _readiness_gates(spec: Object, status: Object) -> str:
    gates = spec.get("readinessGates") or []
    if not gates:
        return printing.NONE
    return f"{sum(_is_true(status, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"


def _sidecar_names(spec: Object) -> set[str]:
    return {
        container.get("name", "")
        for container in spec.get("initContainers") or []
        if container.get("restartPolicy") == "Always"
    }


def _conditions(status: Object, kind: str) -> list[Object]:
    return [condition for condition in status.get("conditions") or [] if condition.get("type") == kind]


def _is_true(status: Object, kind: str) -> bool:
    return any(condition.get("status") == "True" for condition in _conditions(status, kind))
