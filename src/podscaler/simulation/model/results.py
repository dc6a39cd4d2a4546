"""Defines the results of a simulation: one `SimulatedSync` for each sync, and its numbers as a `TimelineRow`.

`podscaler.simulation.engine` yields syncs; tables, reports and evaluations read rows.
"""

import msgspec

from podscaler.core.decision import Decision
from podscaler.core.model.trace import MetricStep, OfAverage, OfTotal, PerPod
from podscaler.simulation.model.scenario import AutoscalerModel


class WorkloadState(msgspec.Struct, frozen=True, kw_only=True):
    """A workload at a sync, and what happened to its load since the sync before.

    Attributes:
        replicas: of its scale, before the decision of this sync.
        pods: that exist and are not being deleted.
        ready: of these, the ready ones.
        unscheduled: of these, those that wait for room on a node.
        rate_milli: arrivals now, in thousandths of a request per second; 0 without requests.
        demand_ucores: the CPU that its load needs now, without requests that wait.
        demand_bytes: the memory that its load needs now.
        backlog_ucores_ms: the CPU work of requests that wait, in millionths of a core times milliseconds.
        arrived_ucores_ms, lost_ucores_ms: the CPU work that arrived, and that was given up or not served, since the
            sync before.
        used_ucores: the CPU that all pods used on average since the sync before, idle use included.
        latency_ms: the mean response time now; None: without requests, or while no pod is ready.
    """

    replicas: int
    pods: int
    ready: int
    unscheduled: int = 0
    rate_milli: int = 0
    demand_ucores: int = 0
    demand_bytes: int = 0
    backlog_ucores_ms: int = 0
    arrived_ucores_ms: int = 0
    lost_ucores_ms: int = 0
    used_ucores: int = 0
    latency_ms: float | None = None


class SimulatedSync(msgspec.Struct, frozen=True, kw_only=True):
    """One sync of one autoscaler.

    Attributes:
        at_ms: its instant, in milliseconds since the start.
        nodes: that are ready; None if the scenario has no cluster.
    """

    at_ms: int
    autoscaler: AutoscalerModel
    workload: WorkloadState
    decision: Decision
    nodes: int | None = None


class MetricReading(msgspec.Struct, frozen=True):
    """What a sync read of one metric.

    Attributes:
        name: as messages name it, such as `cpu resource utilization (percentage of request)`.
        current, target: in the target's unit (percent, or thousandths); `current` is None if it could not be read.
        unit: `percent` or `milli`.
    """

    name: str
    current: int | None
    target: int | None
    unit: str


class TimelineRow(msgspec.Struct, frozen=True, kw_only=True):
    """One sync in numbers.

    Attributes:
        at_s: since the start.
        autoscaler: its key, `namespace/name`.
        wanted: the replicas that the metrics ask for, before any limit; None if no metric could be used.
        limited: the replicas after stabilization, rates and bounds; None if the sync ended before.
        lost_ratio: the share of the work that arrived since the sync before.
        reason, error: those of the trace; empty without a rescale, and without an error.
        Others are those of `WorkloadState`, in cores, core-seconds, requests per second and milliseconds.
    """

    at_s: float
    autoscaler: str
    replicas: int
    wanted: int | None
    limited: int | None
    pods: int
    ready: int
    unscheduled: int
    nodes: int | None
    requests_per_s: float
    demand_cores: float
    demand_bytes: int
    used_cores: float
    backlog_core_s: float
    lost_ratio: float
    latency_ms: float | None
    metrics: tuple[MetricReading, ...]
    reason: str
    error: str


def row(sync: SimulatedSync) -> TimelineRow:
    """The numbers of a sync."""
    trace, state = sync.decision.trace, sync.workload
    combination = trace.combination
    return TimelineRow(
        at_s=sync.at_ms / 1000,
        autoscaler=sync.autoscaler.spec.key,
        replicas=state.replicas,
        wanted=None if combination is None else combination.proposal,
        limited=trace.desired,
        pods=state.pods,
        ready=state.ready,
        unscheduled=state.unscheduled,
        nodes=sync.nodes,
        requests_per_s=state.rate_milli / 1000,
        demand_cores=state.demand_ucores / 1e6,
        demand_bytes=state.demand_bytes,
        used_cores=state.used_ucores / 1e6,
        backlog_core_s=state.backlog_ucores_ms / 1e9,
        lost_ratio=state.lost_ucores_ms / state.arrived_ucores_ms if state.arrived_ucores_ms else 0.0,
        latency_ms=state.latency_ms,
        metrics=tuple([_reading(step) for step in trace.metrics]),
        reason=trace.reason,
        error=trace.error,
    )


def _reading(step: MetricStep) -> MetricReading:
    """The value that a sync calculated with; `current` is None where the calculation has none."""
    current, unit = None, "milli"
    match step.calculation:
        case PerPod(first=first_reading) if first_reading is not None:
            current = first_reading.current
            unit = "milli" if first_reading.requests_milli is None else "percent"
        case OfTotal(usage_milli=usage_milli):
            current = usage_milli
        case OfAverage(reported_milli=reported_milli):
            current = reported_milli
        case _:
            pass
    return MetricReading(step.name, current, step.target, unit)
