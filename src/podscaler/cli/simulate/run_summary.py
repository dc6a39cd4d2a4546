"""Computes the summary of a simulation for each autoscaler: pods over time, scale changes, lost load, latency.

`podscaler.cli.simulate.simulate` makes Summaries, and prints `lines`. What a sync finds holds until the next one, or
until the scenario's end. A new number: an attribute of RunSummary that `_summary` sets from a sum of
_RunningSums, and its place in `lines` and in `podscaler.cli.simulate.simulation_report`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from podscaler.simulation.model.expectations import clock_text
from podscaler.simulation.model.results import SimulatedSync

_HOUR_MS = 3_600_000
_ABOVE_ANY_COUNT = 1 << 62


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of one autoscaler.

    Attributes:
        autoscaler, workload: their keys, `namespace/name`.
        pod_hours: the time of all pods together, ready or not.
        replicas_min, replicas_max, replicas_mean: of the scale; the mean is weighted by time.
        scale_changes: how often the autoscaler wrote the scale.
        seconds_at_max: the time at maxReplicas.
        failed_syncs: how many syncs had an error.
        lost_ratio: the share of the load that was not served.
        latency_mean_ms: the mean response time, weighted by requests; None if there were no requests.
        latency_worst_ms: the highest mean response time of a sync.
    """

    autoscaler: str
    workload: str
    duration_s: float
    pod_hours: float
    replicas_min: int
    replicas_max: int
    replicas_mean: float
    scale_changes: int
    seconds_at_max: float
    failed_syncs: int
    lost_ratio: float
    latency_mean_ms: float | None
    latency_worst_ms: float | None


@dataclass(slots=True)
class _RunningSums:
    """The sums over the syncs of one autoscaler so far.

    Attributes:
        last_sync: the latest sync; None at first. For the time after it, which `count_until` adds, hold its pods, its
            response time, its rate of requests, and the scale after its decision.
        observed_ms: the time from the first sync.
        pod_ms, replica_ms: counts of pods and of the scale, multiplied by the time.
        at_max_ms: the time with a scale of at least maxReplicas.
        replicas_min, replicas_max: of the scales before and after each sync.
        arrived_ucores_ms, lost_ucores_ms: the work that arrived, and that was lost, up to the last sync.
        request_millionths: requests: thousandths of a request a second, multiplied by milliseconds.
        latency_ms_request_millionths: mean response times in ms, each multiplied by its millionths of requests.
    """

    last_sync: SimulatedSync | None = None
    observed_ms: int = 0
    pod_ms: int = 0
    replica_ms: int = 0
    at_max_ms: int = 0
    replicas_min: int = _ABOVE_ANY_COUNT
    replicas_max: int = 0
    scale_changes: int = 0
    failed_syncs: int = 0
    arrived_ucores_ms: int = 0
    lost_ucores_ms: int = 0
    latency_ms_request_millionths: float = 0.0
    request_millionths: int = 0
    latency_worst_ms: float | None = None

    def add(self, sync: SimulatedSync) -> None:
        """Count one sync, and the time before it."""
        self.count_until(sync.at_ms)
        self.last_sync = sync
        state = sync.workload
        self.scale_changes += sync.decision.replicas is not None
        self.failed_syncs += bool(sync.decision.trace.error)
        self.arrived_ucores_ms += state.arrived_ucores_ms
        self.lost_ucores_ms += state.lost_ucores_ms
        for replicas in (state.replicas, _replicas_after(sync)):
            self.replicas_min = min(self.replicas_min, replicas)
            self.replicas_max = max(self.replicas_max, replicas)
        latency_ms = _finite_latency_ms(sync)
        if latency_ms is not None:
            self.latency_worst_ms = max(self.latency_worst_ms or 0.0, latency_ms)

    def count_until(self, at_ms: int) -> None:
        """Count the time since the last sync, if there was one; call it once for the time after a sync."""
        if self.last_sync is None:
            return
        state, span_ms = self.last_sync.workload, at_ms - self.last_sync.at_ms
        replicas = _replicas_after(self.last_sync)
        self.observed_ms += span_ms
        self.pod_ms += state.pods * span_ms
        self.replica_ms += replicas * span_ms
        if replicas >= self.last_sync.autoscaler.spec.max_replicas:
            self.at_max_ms += span_ms
        latency_ms = _finite_latency_ms(self.last_sync)
        if latency_ms is not None:
            request_millionths = state.rate_milli * span_ms
            self.request_millionths += request_millionths
            self.latency_ms_request_millionths += latency_ms * request_millionths


@dataclass(slots=True)
class Summaries:
    """Collects the syncs of a simulation of `duration_ms`; `sums` by the autoscaler's key."""

    duration_ms: int
    sums: dict[str, _RunningSums] = field(default_factory=dict)

    def add(self, sync: SimulatedSync) -> None:
        """Count one sync; syncs come in order."""
        self.sums.setdefault(sync.autoscaler.spec.key, _RunningSums()).add(sync)

    def finish(self) -> list[RunSummary]:
        """Count the time to the scenario's end; returns a summary for each autoscaler, by first syncs. Call it once."""
        for sums in self.sums.values():
            sums.count_until(self.duration_ms)
        return [self._summary(key, sums) for key, sums in self.sums.items()]

    def _summary(self, key: str, sums: _RunningSums) -> RunSummary:
        """The summary of one autoscaler from the sums over the whole run."""
        assert sums.last_sync is not None, "sums are made for a sync"
        requests = sums.request_millionths
        return RunSummary(
            autoscaler=key,
            workload=sums.last_sync.autoscaler.workload,
            duration_s=self.duration_ms / 1000,
            pod_hours=sums.pod_ms / _HOUR_MS,
            replicas_min=sums.replicas_min,
            replicas_max=sums.replicas_max,
            replicas_mean=sums.replica_ms / sums.observed_ms if sums.observed_ms else float(sums.replicas_max),
            scale_changes=sums.scale_changes,
            seconds_at_max=sums.at_max_ms / 1000,
            failed_syncs=sums.failed_syncs,
            lost_ratio=sums.lost_ucores_ms / sums.arrived_ucores_ms if sums.arrived_ucores_ms else 0.0,
            latency_mean_ms=sums.latency_ms_request_millionths / requests if requests else None,
            latency_worst_ms=sums.latency_worst_ms,
        )


def _finite_latency_ms(sync: SimulatedSync) -> float | None:
    """The mean response time at a sync; None without one, and for one that no float can hold (an extreme load)."""
    latency_ms = sync.workload.latency_ms
    return latency_ms if latency_ms is not None and math.isfinite(latency_ms) else None


def _replicas_after(sync: SimulatedSync) -> int:
    """The scale after the sync: what it wrote, else the scale as it was."""
    return sync.workload.replicas if sync.decision.replicas is None else sync.decision.replicas


def lines(summary: RunSummary) -> Iterator[str]:
    """The summary as lines of text."""
    yield f"{summary.autoscaler}, {clock_text(round(summary.duration_s * 1000))} in all"
    changes = f"{summary.scale_changes} scale change{'' if summary.scale_changes == 1 else 's'}"
    failed = f", {summary.failed_syncs} failed syncs" if summary.failed_syncs else ""
    replicas_text = f"{summary.replicas_min} to {summary.replicas_max}, mean {summary.replicas_mean:.2f}"
    yield f"  replicas    {replicas_text}; {changes}{failed}"
    at_max = clock_text(round(summary.seconds_at_max * 1000))
    yield f"  pods        {summary.pod_hours:.2f} pod-hours; {at_max} at maxReplicas"
    yield f"  lost        {summary.lost_ratio:.2%} of the load"
    if summary.latency_worst_ms is not None:
        mean = "" if summary.latency_mean_ms is None else f"mean {summary.latency_mean_ms:.0f} ms, "
        yield f"  latency     {mean}worst {summary.latency_worst_ms:.0f} ms"
