"""Runs candidates over a compiled scenario, and falls back to the exact engine for those that are not covered.

Entry points: `evaluate`, called by `podscaler.simulation.evaluation.comparison`, `podscaler.simulation.search.scoring`
and `podscaler.simulation.fleet.candidate_rows`; `compile_scenario` and `run`, which have no fallback, for measurements.
A new measure: its column in `layout`, its sum in `candidate_kernel` and `exact_fallback`, and a field of BatchResult.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from podscaler.core.model.spec import Spec
from podscaler.simulation.batch import candidate_kernel, candidate_tables, exact_fallback, layout, scenario_tables
from podscaler.simulation.batch.candidate_tables import NotCovered, SpecTables
from podscaler.simulation.batch.exact_fallback import ExactCandidate
from podscaler.simulation.batch.layout import Array, KernelInputs, KernelResults
from podscaler.simulation.batch.scenario_tables import BatchScenario
from podscaler.simulation.model.scenario import SimulationScenario
from podscaler.simulation.world import load_serving


class BatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all candidates; arrays have one row or element for each candidate, in order.

    Sums contain the syncs from `counted_from_ms` on; each sync adds what happened since the sync before.

    Attributes:
        at_ms: the instant of each sync.
        demand_ucores: for each sync the CPU that the load needs, the same for all candidates.
        replicas, ready: by candidate and sync, the replicas after the sync and the ready pods at it; None: without
            timelines.
        pod_ms: the pods at each sync times the sync period.
        arrived_work, lost_work: CPU work in millionths of a core times milliseconds.
        slo_missed_work: the work that arrived before syncs at which the mean response time was above the SLO, or no
            pod was ready; 0 without an SLO.
        scale_ups, scale_downs: numbers of rescales.
        syncs: how many are counted.
        deviations: from the needed pods; None if they were not given.
        fallbacks: why the exact engine simulated a candidate, by its index.
    """

    at_ms: Array
    demand_ucores: Array
    replicas: Array | None
    ready: Array | None
    pod_ms: Array
    arrived_work: Array
    lost_work: Array
    slo_missed_work: Array
    scale_ups: Array
    scale_downs: Array
    syncs: int
    deviations: "Deviations | None"
    fallbacks: Mapping[int, str] = {}


class Deviations(msgspec.Struct, frozen=True, kw_only=True):
    """How the ready pods (supply) deviated from the needed ones (demand), as sums over the counted syncs.

    Attributes:
        under, over: the sums of the shares by which pods were missing or surplus, of what was needed; syncs that need
            no pod have no share.
        under_syncs, over_syncs: at which pods were missing or surplus.
        unstable_syncs: at which supply and demand changed in different directions.
        supply_changes, demand_changes: how often they changed.

    Source: docs/spec/scenarios.md (How well an autoscaler follows demand).
    """

    under: Array
    over: Array
    under_syncs: Array
    over_syncs: Array
    unstable_syncs: Array
    supply_changes: Array
    demand_changes: Array


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """What a run computes beyond the sums that it always has.

    Attributes:
        keep_timeline: whether the result has the replicas and the ready pods of each sync.
        needed: for each sync the pods that the load needs; None: deviations are not computed.
        slo_ms: the mean response time that is not to be exceeded; None if there is no SLO.
        counted_from_ms: the first instant that sums contain.
    """

    keep_timeline: bool = True
    needed: Sequence[int] | Array | None = None
    slo_ms: float | None = None
    counted_from_ms: int = 0


_DEFAULT_MEASURES = Measures()
_NO_REASONS: Mapping[int, str] = {}


def compile_scenario(scenario: SimulationScenario) -> BatchScenario:
    """The scenario, prepared for any number of candidates in place of its autoscaler. Raises NotCovered."""
    return scenario_tables.of_scenario(scenario)


def run(scenario: BatchScenario, candidates: Sequence[Spec], measures: Measures = _DEFAULT_MEASURES) -> BatchResult:
    """The results of the candidates. Raises NotCovered for the first that cannot be simulated.

    Raises ValueError if the numbers of needed pods are not as many as the syncs.
    """
    results = _run_kernel(scenario, candidates, measures)
    return results.as_result(scenario.at_ms, scenario.demand_ucores, measures, {})


def _run_kernel(scenario: BatchScenario, candidates: Sequence[Spec], measures: Measures) -> "_Results":
    """Simulate the candidates in machine code; one row of results for each. Raises NotCovered, ValueError as `run`."""
    syncs = len(scenario.at_ms)
    spec_tables = _spec_tables(scenario, candidates)
    world = scenario.world.copy()
    world[layout.COUNTED_FROM] = np.searchsorted(scenario.at_ms, measures.counted_from_ms)
    needed_pods = _needed_pods(measures, syncs)
    results = _Results.empty(len(candidates), syncs, keep_timeline=measures.keep_timeline)
    inputs = KernelInputs(
        world=world,
        loads=scenario.loads,
        feeds=scenario.feeds,
        containers=scenario.containers,
        specs=spec_tables.specs,
        tolerances=spec_tables.tolerances,
        metrics=spec_tables.metrics,
        policies=spec_tables.policies,
        needed=needed_pods,
    )
    memory = layout.memory_for(world, spec_tables.event_slots)
    candidate_kernel.simulate(inputs, memory, results.arrays, _slo_bound_ms(measures))
    return results


def evaluate(
    scenario: SimulationScenario, candidates: Sequence[Spec], measures: Measures = _DEFAULT_MEASURES
) -> BatchResult:
    """The results of the candidates; those that are not covered are simulated by the exact engine.

    Raises ValueError as `run_exactly` does.
    """
    try:
        compiled = compile_scenario(scenario)
    except NotCovered as not_covered:
        return run_exactly(scenario, candidates, measures, dict.fromkeys(range(len(candidates)), str(not_covered)))
    obstacles = {index: find_obstacle(compiled, candidate) for index, candidate in enumerate(candidates)}
    fallbacks = {index: not_covered_reason for index, not_covered_reason in obstacles.items() if not_covered_reason}
    covered_indexes = [index for index in obstacles if index not in fallbacks]
    results = _Results.empty(len(candidates), len(compiled.at_ms), keep_timeline=measures.keep_timeline)
    if covered_indexes:
        covered_candidates = [candidates[index] for index in covered_indexes]
        results.store_rows(covered_indexes, _run_kernel(compiled, covered_candidates, measures))
    for index in fallbacks:
        results.store_exact_row(index, _simulate_exactly(scenario, candidates[index], measures))
    return results.as_result(compiled.at_ms, compiled.demand_ucores, measures, fallbacks)


def run_exactly(
    scenario: SimulationScenario,
    candidates: Sequence[Spec],
    measures: Measures = _DEFAULT_MEASURES,
    reasons: Mapping[int, str] = _NO_REASONS,
) -> BatchResult:
    """As `run`, by the exact engine.

    Args:
        reasons: why the batch engine does not simulate a candidate, by its index; the `fallbacks` of the result.

    Raises ValueError as `engine.simulate` does, if no autoscaler of the scenario has the key of a candidate, and if the
    needed pods are not as many as the syncs.
    """
    at_ms = np.arange(scenario.first_sync_ms, scenario.duration_ms + 1, scenario.sync_period_ms, dtype=np.int64)
    demand_ucores = np.zeros(len(at_ms), np.int64)
    results = _Results.empty(len(candidates), len(at_ms), keep_timeline=measures.keep_timeline)
    for index, candidate in enumerate(candidates):
        exact_result = _simulate_exactly(scenario, candidate, measures)
        demand_ucores = exact_result.demand_ucores
        results.store_exact_row(index, exact_result)
    return results.as_result(at_ms, demand_ucores, measures, reasons)


def find_obstacle(scenario: BatchScenario, candidate: Spec) -> str | None:
    """Why the batch engine cannot simulate a candidate, in one sentence; None if it can."""
    try:
        _spec_tables(scenario, [candidate])
    except NotCovered as reason:
        return str(reason)
    return None


def _spec_tables(scenario: BatchScenario, candidates: Sequence[Spec]) -> SpecTables:
    """The candidates as arrays. Raises NotCovered for the first that cannot be simulated."""
    scenario_model = scenario.scenario
    replicas_max = max([scenario.sources.workload.replicas, *(candidate.max_replicas for candidate in candidates)])
    if replicas_max > scenario.most_replicas:
        raise NotCovered(f"{replicas_max} replicas have more capacity than 61 bits can state")
    return candidate_tables.of_specs(
        candidates, scenario.sources, scenario_model.settings, len(scenario.at_ms), scenario_model.sync_period_ms
    )


def _slo_bound_ms(measures: Measures) -> float:
    """The response time above which the SLO is missed; NaN: there is no SLO."""
    bound_ms = load_serving.slo_bound_ms(measures.slo_ms)
    return math.nan if bound_ms is None else bound_ms


def _needed_pods(measures: Measures, syncs: int) -> Array:
    """The needed pods for each sync; empty if they are unknown. Raises ValueError if there are not `syncs` of them."""
    needed_pods = np.array([] if measures.needed is None else measures.needed, np.int64)
    if len(needed_pods) not in (0, syncs):
        raise ValueError(f"there are {len(needed_pods)} numbers of needed pods for {syncs} syncs")
    return needed_pods


def _simulate_exactly(scenario: SimulationScenario, candidate: Spec, measures: Measures) -> ExactCandidate:
    """The results of one candidate, by the exact engine."""
    at_ms = range(scenario.first_sync_ms, scenario.duration_ms + 1, scenario.sync_period_ms)
    return exact_fallback.simulate(
        scenario,
        candidate,
        needed=_needed_pods(measures, len(at_ms)),
        slo_ms=_slo_bound_ms(measures),
        counted_from_ms=measures.counted_from_ms,
    )


class _Results(NamedTuple):
    """The results of all candidates, which both engines fill: `layout` states the fields of the arrays."""

    arrays: KernelResults

    @classmethod
    def empty(cls, candidates: int, syncs: int, *, keep_timeline: bool) -> "_Results":
        """Arrays of zeros for that many candidates and syncs; without `keep_timeline` timelines have no rows."""
        rows = candidates if keep_timeline else 0
        return cls(
            KernelResults(
                replicas=np.zeros((rows, syncs), np.int32),
                ready=np.zeros((rows, syncs), np.int32),
                totals=np.zeros((candidates, layout.TOTAL_FIELDS), np.int64),
                deviations=np.zeros((candidates, layout.DEVIATION_FIELDS), np.int64),
                inaccuracies=np.zeros((candidates, layout.INACCURACY_FIELDS), np.float64),
            )
        )

    def store_exact_row(self, index: int, exact_result: ExactCandidate) -> None:
        """Copy the results of the exact engine into the row of one candidate."""
        own_arrays = self.arrays
        if len(own_arrays.replicas):
            own_arrays.replicas[index] = exact_result.replicas
            own_arrays.ready[index] = exact_result.ready
        own_arrays.totals[index] = exact_result.totals
        own_arrays.deviations[index] = exact_result.deviations
        own_arrays.inaccuracies[index] = exact_result.inaccuracies

    def store_rows(self, rows: Sequence[int], covered_results: "_Results") -> None:
        """Copy the results of the covered candidates into these rows, in order."""
        for own_array, covered_array in zip(self.arrays, covered_results.arrays, strict=True):
            if len(own_array):  # timelines that are not kept have no rows
                own_array[list(rows)] = covered_array

    def as_result(
        self, at_ms: Array, demand_ucores: Array, measures: Measures, fallbacks: Mapping[int, str]
    ) -> BatchResult:
        """The arrays as the public result, with the columns of `totals` and `deviations` as fields."""
        replicas, ready, totals, deviation_counts, inaccuracies = self.arrays
        deviations = Deviations(
            under=inaccuracies[:, layout.UNDER_SHARES],
            over=inaccuracies[:, layout.OVER_SHARES],
            under_syncs=deviation_counts[:, layout.UNDER_SYNCS],
            over_syncs=deviation_counts[:, layout.OVER_SYNCS],
            unstable_syncs=deviation_counts[:, layout.UNSTABLE_SYNCS],
            supply_changes=deviation_counts[:, layout.SUPPLY_CHANGES],
            demand_changes=deviation_counts[:, layout.DEMAND_CHANGES],
        )
        return BatchResult(
            at_ms=at_ms,
            demand_ucores=demand_ucores,
            replicas=replicas if measures.keep_timeline else None,
            ready=ready if measures.keep_timeline else None,
            pod_ms=totals[:, layout.POD_MS],
            arrived_work=totals[:, layout.ARRIVED_WORK],
            lost_work=totals[:, layout.LOST_WORK],
            slo_missed_work=totals[:, layout.SLO_MISSED_WORK],
            scale_ups=totals[:, layout.SCALE_UPS],
            scale_downs=totals[:, layout.SCALE_DOWNS],
            syncs=int((at_ms >= measures.counted_from_ms).sum()),
            deviations=None if measures.needed is None else deviations,
            fallbacks=fallbacks,
        )
