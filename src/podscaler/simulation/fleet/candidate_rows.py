"""Simulates each candidate of an autoscaler of a fleet, and computes the row of measures about it.

Called by `partition_runs`, in a worker; the rows become a Parquet file (`result_files`). Specs run in the batch engine,
which sums up their deviations from the needed pods without keeping timelines; other scalers (fixed counts, Knative,
hindsight) run as in `podscaler backtest`.

A new measure: a field of FleetRow and of _CandidateMeasures, set for both ways to run.

Invariant: the measures equal those of `podscaler.simulation.evaluation.comparison.compare`, to the rounding of sums.
"""

from collections.abc import Sequence

import msgspec

from podscaler.base.errors import UsageError
from podscaler.core.model.spec import Spec
from podscaler.simulation import batch
from podscaler.simulation.batch import BatchResult, Measures
from podscaler.simulation.evaluation import comparison
from podscaler.simulation.evaluation.comparison import Candidate, CandidateResult, Needs
from podscaler.simulation.evaluation.elasticity import Elasticity, elastic_speedup
from podscaler.simulation.fleet.autoscalers import FleetAutoscaler, FleetRow, MakeTrial, UnusableAutoscaler
from podscaler.simulation.model.scenario import SimulationScenario

_HOUR_MS = 3_600_000


class _CandidateMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """The measures of a candidate, before they are compared with those of the first."""

    elasticity: Elasticity
    pod_hours: float
    slo_missed_pct: float | None
    lost_pct: float | None
    scale_changes: int
    engine: str


def rows(autoscaler: FleetAutoscaler | UnusableAutoscaler, make_trial: MakeTrial) -> list[FleetRow]:
    """A row for each candidate, in order; a single one with the error where the autoscaler cannot be judged."""
    if isinstance(autoscaler, UnusableAutoscaler):
        return [FleetRow(autoscaler=autoscaler.key, candidate="", error=autoscaler.reason)]
    try:
        trial = make_trial(autoscaler)
        return _rows_of_candidates(autoscaler, trial.candidates, trial.needs)
    except (UsageError, ValueError) as error:
        return [FleetRow(autoscaler=autoscaler.key, candidate="", error=str(error))]


def _rows_of_candidates(autoscaler: FleetAutoscaler, candidates: Sequence[Candidate], needs: Needs) -> list[FleetRow]:
    """A row for each candidate. Raises ValueError if no sync counts, or as the engines do."""
    scenario = autoscaler.scenario
    at_ms = range(scenario.first_sync_ms, scenario.duration_ms + 1, scenario.sync_period_ms)
    needed_pods = [needs.pods.value_at(instant_ms) for instant_ms in at_ms]
    counted_needed_pods = [
        need for instant_ms, need in zip(at_ms, needed_pods, strict=True) if instant_ms >= needs.from_ms
    ]
    if not counted_needed_pods:
        raise ValueError("no sync is in the time that counts")
    measures_of_candidates = _measure_candidates(scenario, candidates, needs, needed_pods)
    present_elasticity = measures_of_candidates[0].elasticity
    needed_pod_hours = sum(counted_needed_pods) * scenario.sync_period_ms / _HOUR_MS
    notes = " ".join(autoscaler.notes)
    return [
        FleetRow(
            autoscaler=autoscaler.key,
            candidate=candidate.name,
            pod_hours=measures.pod_hours,
            needed_pod_hours=needed_pod_hours,
            under_timeshare_pct=measures.elasticity.under_timeshare_pct,
            under_accuracy_pct=measures.elasticity.under_accuracy_pct,
            over_timeshare_pct=measures.elasticity.over_timeshare_pct,
            over_accuracy_pct=measures.elasticity.over_accuracy_pct,
            instability_pct=measures.elasticity.instability_pct,
            jitter=measures.elasticity.jitter,
            slo_missed_pct=measures.slo_missed_pct,
            lost_pct=measures.lost_pct,
            scale_changes=measures.scale_changes,
            speedup=elastic_speedup(present_elasticity, measures.elasticity),
            engine=measures.engine,
            notes=notes,
        )
        for candidate, measures in zip(candidates, measures_of_candidates, strict=True)
    ]


def _measure_candidates(
    scenario: SimulationScenario, candidates: Sequence[Candidate], needs: Needs, needed_pods: Sequence[int]
) -> list[_CandidateMeasures]:
    """The measures of all candidates, in order."""
    specs = [
        candidate.policy for candidate in candidates if isinstance(candidate.policy, Spec) and _runs_in_batch(candidate)
    ]
    other_candidates = [candidate for candidate in candidates if not _runs_in_batch(candidate)]
    measures_in_batch = iter(_measure_in_batch(scenario, specs, needs, needed_pods) if specs else [])
    results = comparison.compare(scenario, other_candidates, needs).results if other_candidates else ()
    measures_of_others = iter([_measures_of_result(candidate_result) for candidate_result in results])
    return [next(measures_in_batch if _runs_in_batch(candidate) else measures_of_others) for candidate in candidates]


def _runs_in_batch(candidate: Candidate) -> bool:
    """Whether a candidate is a spec that starts with the replicas of the scenario."""
    return isinstance(candidate.policy, Spec) and candidate.replicas is None


def _measures_of_result(result: CandidateResult) -> _CandidateMeasures:
    """The measures of a candidate that `comparison.compare` evaluated."""
    return _CandidateMeasures(
        elasticity=result.elasticity,
        pod_hours=result.pod_hours,
        slo_missed_pct=result.slo_missed_pct,
        lost_pct=result.lost_pct,
        scale_changes=result.scale_changes,
        engine=result.run.engine,
    )


def _measure_in_batch(
    scenario: SimulationScenario, specs: Sequence[Spec], needs: Needs, needed_pods: Sequence[int]
) -> list[_CandidateMeasures]:
    """The measures of specs, in order, by the batch engine."""
    has_slo = needs.slo_ms is not None
    measures = Measures(keep_timeline=False, needed=needed_pods, slo_ms=needs.slo_ms, counted_from_ms=needs.from_ms)
    batch_result = batch.evaluate(scenario, specs, measures)
    return [
        _CandidateMeasures(
            elasticity=_elasticity(batch_result, index),
            pod_hours=int(batch_result.pod_ms[index]) / _HOUR_MS,
            slo_missed_pct=comparison.share_pct(int(batch_result.slo_missed_work[index]), arrived_work)
            if has_slo
            else None,
            lost_pct=comparison.share_pct(int(batch_result.lost_work[index]), arrived_work),
            scale_changes=int(batch_result.scale_ups[index] + batch_result.scale_downs[index]),
            engine="exact" if index in batch_result.fallbacks else "batch",
        )
        for index, arrived_work in enumerate(batch_result.arrived_work.tolist())
    ]


def _elasticity(batch_result: BatchResult, index: int) -> Elasticity:
    """The metrics of sums over the counted syncs; each needs a pod at least, so none is undefined."""
    sums, syncs = batch_result.deviations, batch_result.syncs
    assert sums is not None
    return Elasticity(
        under_accuracy_pct=100 * float(sums.under[index]) / syncs,
        over_accuracy_pct=100 * float(sums.over[index]) / syncs,
        under_timeshare_pct=100 * int(sums.under_syncs[index]) / syncs,
        over_timeshare_pct=100 * int(sums.over_syncs[index]) / syncs,
        instability_pct=100 * int(sums.unstable_syncs[index]) / (syncs - 1) if syncs > 1 else None,
        jitter=(int(sums.supply_changes[index]) - int(sums.demand_changes[index])) / syncs,
        samples=syncs,
    )
