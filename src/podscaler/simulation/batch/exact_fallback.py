"""Simulates candidates that the batch engine does not cover, by the exact engine, with results in the same arrays.

Called by `podscaler.simulation.batch.batch_runs`; tests compare both engines.
"""

import msgspec
import numpy as np

from podscaler.core.decision import Action
from podscaler.core.model.spec import Spec
from podscaler.simulation import engine
from podscaler.simulation.batch import layout
from podscaler.simulation.batch.layout import Array
from podscaler.simulation.model.results import SimulatedSync, WorkloadState
from podscaler.simulation.model.scenario import AutoscalerModel, SimulationScenario


class ExactCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate: the arrays of a `BatchResult` without their first dimension; sums as `layout` has them."""

    at_ms: Array
    demand_ucores: Array
    replicas: Array
    ready: Array
    totals: Array
    deviations: Array
    inaccuracies: Array


def with_candidate(scenario: SimulationScenario, candidate: Spec) -> SimulationScenario:
    """The scenario with the candidate in place of the autoscaler of its name, or of the only one.

    Raises ValueError if no autoscaler or workload is clearly meant.
    """
    autoscalers = list(scenario.autoscalers)
    indexes = [index for index, autoscaler in enumerate(autoscalers) if autoscaler.spec.key == candidate.key]
    if not indexes and len(autoscalers) == 1:
        indexes = [0]
    if indexes:
        autoscalers[indexes[0]] = msgspec.structs.replace(autoscalers[indexes[0]], spec=candidate)
    elif not autoscalers and len(scenario.workloads) == 1:
        autoscalers = [AutoscalerModel(spec=candidate, workload=scenario.workloads[0].key)]
    else:
        raise ValueError(f"the scenario has no autoscaler {candidate.key}")
    return msgspec.structs.replace(scenario, autoscalers=tuple(autoscalers))


def simulate(
    scenario: SimulationScenario, candidate: Spec, *, needed: Array, slo_ms: float, counted_from_ms: int
) -> ExactCandidate:
    """The candidate's results.

    Args:
        needed: pods for each sync; empty: unknown.
        slo_ms: the mean response time above which work misses the SLO; NaN: there is no SLO.
        counted_from_ms: the first instant that sums contain.

    Raises ValueError as `engine.simulate` and `with_candidate` do.
    """
    syncs = [
        sync
        for sync in engine.simulate(with_candidate(scenario, candidate))
        if sync.autoscaler.spec.key == candidate.key
    ]
    totals = np.zeros(layout.TOTAL_FIELDS, np.int64)
    with_requests = {workload.key for workload in scenario.workloads if workload.requests is not None}
    for sync in syncs:
        if sync.at_ms >= counted_from_ms:
            _add_sync(totals, sync, scenario.sync_period_ms)
            if sync.autoscaler.workload in with_requests and _misses_slo(sync.workload, slo_ms):
                totals[layout.SLO_MISSED_WORK] += sync.workload.arrived_ucores_ms
    at_ms = np.array([sync.at_ms for sync in syncs], np.int64)
    ready = np.array([sync.workload.ready for sync in syncs], np.int32)
    first_counted = int(np.searchsorted(at_ms, counted_from_ms))
    deviations, inaccuracies = (
        compare_pods(needed[first_counted:], ready[first_counted:]) if len(needed) else _NOT_COMPARED
    )
    return ExactCandidate(
        at_ms=at_ms,
        demand_ucores=np.array([sync.workload.demand_ucores for sync in syncs], np.int64),
        replicas=np.array([_replicas_after(sync) for sync in syncs], np.int32),
        ready=ready,
        totals=totals,
        deviations=deviations,
        inaccuracies=inaccuracies,
    )


_NOT_COMPARED = np.zeros(layout.DEVIATION_FIELDS, np.int64), np.zeros(layout.INACCURACY_FIELDS, np.float64)
"""The deviations of a candidate where the needed pods are unknown."""


def _replicas_after(sync: SimulatedSync) -> int:
    return sync.workload.replicas if sync.decision.replicas is None else sync.decision.replicas


def _misses_slo(state: WorkloadState, slo_ms: float) -> bool:
    """Whether the SLO is missed; without a response time (no pod is ready) it is. `slo_ms` is NaN without an SLO."""
    return not np.isnan(slo_ms) and (state.latency_ms is None or state.latency_ms > slo_ms)


def _add_sync(totals: Array, sync: SimulatedSync, sync_period_ms: int) -> None:
    """Add one sync to the sums of a candidate, a row of `KernelResults.totals`."""
    state = sync.workload
    totals[layout.COUNTED_SYNCS] += 1
    totals[layout.ARRIVED_WORK] += state.arrived_ucores_ms
    totals[layout.LOST_WORK] += state.lost_ucores_ms
    totals[layout.POD_MS] += state.pods * sync_period_ms
    totals[layout.SCALE_UPS] += sync.decision.action is Action.SCALE_UP
    totals[layout.SCALE_DOWNS] += sync.decision.action is Action.SCALE_DOWN


def compare_pods(needed: Array, ready: Array) -> tuple[Array, Array]:
    """The deviations of the ready pods from the needed ones, as rows of `KernelResults.deviations` and `inaccuracies`.

    Args:
        needed, ready: pods, with one element for each counted sync.
    """
    deviations = np.zeros(layout.DEVIATION_FIELDS, np.int64)
    missing_pods = needed - ready.astype(np.int64)
    supply_changes, demand_changes = np.sign(np.diff(ready.astype(np.int64))), np.sign(np.diff(needed))
    deviations[layout.UNDER_SYNCS] = (missing_pods > 0).sum()
    deviations[layout.OVER_SYNCS] = (missing_pods < 0).sum()
    deviations[layout.UNSTABLE_SYNCS] = (supply_changes != demand_changes).sum()
    deviations[layout.SUPPLY_CHANGES] = (supply_changes != 0).sum()
    deviations[layout.DEMAND_CHANGES] = (demand_changes != 0).sum()
    shares = np.where(needed > 0, missing_pods / np.maximum(needed, 1), 0)
    # Python's sum adds in the order of syncs, as `candidate_kernel` does: the results are equal to the last bit.
    under_shares, over_shares = sum(shares[missing_pods > 0].tolist()), sum((-shares[missing_pods < 0]).tolist())
    return deviations, np.array([under_shares, over_shares], np.float64)
