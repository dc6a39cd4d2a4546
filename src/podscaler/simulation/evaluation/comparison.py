"""Runs candidates in the same world and measures each: cost, elasticity, SLO misses, scale changes, reactions.

Called by `podscaler backtest`. Autoscalers run in the batch engine where it is installed and covers them, else in the
exact engine; both have the same results. Other scalers run in the exact engine's world.

A new measure is a sum in Run that `_run_exactly` and `_run_in_batch` fill, a field of CandidateResult that `_measure`
computes, a column of `podscaler.cli.backtest.comparison_output`, and a field of
`podscaler.simulation.fleet.autoscalers.FleetRow`.

Invariant: all candidates are measured at the same instants, those of the scenario's syncs from `Needs.from_ms` on.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from podscaler.core.model.spec import Spec
from podscaler.simulation import engine, scaler_runs
from podscaler.simulation.evaluation import surges
from podscaler.simulation.evaluation.demand import PodCapacity
from podscaler.simulation.evaluation.elasticity import Elasticity, elastic_speedup, elasticity
from podscaler.simulation.evaluation.surges import ReactionSummary
from podscaler.simulation.model.results import WorkloadState
from podscaler.simulation.model.scenario import AutoscalerModel, SimulationScenario
from podscaler.simulation.model.step_series import StepSeries
from podscaler.simulation.scaler_runs import Scaler
from podscaler.simulation.world import load_serving

_HOUR_MS = 3_600_000

MakeScaler = Callable[[], Scaler]
"""A new scaler, with no memory of another run."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A way to scale the workload.

    Attributes:
        name: in tables.
        policy: an autoscaler's spec, or a function that makes a scaler.
        replicas: at the start; None: those of the scenario.
        is_attainable: whether a controller could do the same; False for hindsight, which knows the future.
    """

    name: str
    policy: Spec | MakeScaler
    replicas: int | None = None
    is_attainable: bool = True


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """The needed pods and the SLO against which candidates are measured.

    Attributes:
        capacity: of one pod, from which `pods` were computed; for texts.
        pods: the needed pods over time.
        slo_ms: the mean response time that is to be met; None if there is no SLO.
        from_ms: the first instant that counts, in ms since the start of the scenario.
    """

    capacity: PodCapacity
    pods: StepSeries
    slo_ms: float | None = None
    from_ms: int = 0


class Run(msgspec.Struct, kw_only=True):
    """The sums and ready pods of one candidate over the instants that count; filled by `_run_exactly`, `_run_in_batch`.

    Attributes:
        at_ms, ready: each instant in ms, and the ready pods at it.
        pod_ms: the sum of the pods at each instant times the sync period.
        arrived_work, lost_work: CPU work (ucores * ms) that arrived, and that was lost.
        slow_work: of the work that arrived, that before instants at which the mean response time was above the SLO or
            no pod was ready; 0 without an SLO or requests.
        engine: `batch` or `exact`.
        reason: why the batch engine did not run it; empty if the batch engine ran it, and for other scalers.
    """

    at_ms: list[int] = []
    ready: list[int] = []
    pod_ms: int = 0
    arrived_work: int = 0
    lost_work: int = 0
    slow_work: int = 0
    scale_changes: int = 0
    engine: str = "exact"
    reason: str = ""


class CandidateResult(msgspec.Struct, frozen=True, kw_only=True):
    """The measures of one candidate.

    Attributes:
        slo_missed_pct: the share of `Run.slow_work` in the CPU work; None if there is no SLO, or no work arrived.
        lost_pct: the share of the CPU work that was lost; None: no work arrived.
        speedup: the elastic speedup against the first candidate; None: undefined.
        run: the sums and ready pods that these measures were computed from.
    """

    name: str
    pod_hours: float
    elasticity: Elasticity
    slo_missed_pct: float | None
    lost_pct: float | None
    scale_changes: int
    reactions: ReactionSummary
    speedup: float | None
    is_attainable: bool
    run: Run


class CandidateComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all candidates, in order; the first one is the present spec.

    Attributes:
        at_ms, needed: the instants, and the pods that were needed at each.
        sync_period_ms: the distance of the instants.
    """

    at_ms: Sequence[int]
    needed: Sequence[int]
    sync_period_ms: int
    results: tuple[CandidateResult, ...]


def compare(scenario: SimulationScenario, candidates: Sequence[Candidate], needs: Needs) -> CandidateComparison:
    """The measures of the candidates, at least one, each in place of the scenario's first autoscaler.

    Raises ValueError if no instant counts, or where the scenario contradicts itself.
    """
    runs = _run_all(scenario, candidates, needs)
    at_ms = runs[0].at_ms
    if not at_ms:
        raise ValueError("no sync is in the time that counts")
    needed = [needs.pods.value_at(instant_ms) for instant_ms in at_ms]
    present_elasticity = elasticity(needed, runs[0].ready)
    pairs = zip(candidates, runs, strict=True)
    results = tuple([_measure(candidate, run, needed, present_elasticity, needs) for candidate, run in pairs])
    return CandidateComparison(at_ms=at_ms, needed=needed, sync_period_ms=scenario.sync_period_ms, results=results)


def _measure(
    candidate: Candidate, run: Run, needed: Sequence[int], present_elasticity: Elasticity, needs: Needs
) -> CandidateResult:
    """The measures of one candidate, whose speedup is against the elasticity of the first candidate."""
    candidate_elasticity = elasticity(needed, run.ready)
    reactions = surges.reactions(run.at_ms, needed, run.ready)
    return CandidateResult(
        name=candidate.name,
        pod_hours=run.pod_ms / _HOUR_MS,
        elasticity=candidate_elasticity,
        slo_missed_pct=None if needs.slo_ms is None else share_pct(run.slow_work, run.arrived_work),
        lost_pct=share_pct(run.lost_work, run.arrived_work),
        scale_changes=run.scale_changes,
        reactions=surges.summary(reactions, run.at_ms[-1]),
        speedup=elastic_speedup(present_elasticity, candidate_elasticity),
        is_attainable=candidate.is_attainable,
        run=run,
    )


def share_pct(part: int, whole: int) -> float | None:
    """A part in percent of the whole; None if the whole is 0."""
    return 100 * part / whole if whole else None


def _run_all(scenario: SimulationScenario, candidates: Sequence[Candidate], needs: Needs) -> list[Run]:
    """The runs of all candidates, in order; the batch engine has no other replicas at the start than the scenario's."""
    batched_indexes = [
        index
        for index, candidate in enumerate(candidates)
        if isinstance(candidate.policy, Spec) and candidate.replicas is None
    ]
    batched_candidates = [candidates[index] for index in batched_indexes]
    # Not strict: `_run_in_batch` yields a run for every candidate, or none at all.
    batch_runs = dict(zip(batched_indexes, _run_in_batch(scenario, batched_candidates, needs), strict=False))
    return [
        batch_runs.get(index) or _run_exactly(scenario, candidate, needs) for index, candidate in enumerate(candidates)
    ]


def _run_in_batch(scenario: SimulationScenario, candidates: Sequence[Candidate], needs: Needs) -> Iterable[Run]:
    """The runs of specs in the batch engine; none if it is not installed, or not for exactly one autoscaler."""
    try:
        from podscaler.simulation import batch
    except ImportError:
        return
    specs = [candidate.policy for candidate in candidates if isinstance(candidate.policy, Spec)]
    if len(scenario.autoscalers) != 1 or not specs:
        return
    batch_result = batch.evaluate(scenario, specs, batch.Measures(slo_ms=needs.slo_ms, counted_from_ms=needs.from_ms))
    assert batch_result.ready is not None, "Measures keeps the timeline unless told otherwise"
    is_counted = batch_result.at_ms >= needs.from_ms
    at_ms = batch_result.at_ms[is_counted].tolist()
    for index in range(len(specs)):
        reason = batch_result.fallbacks.get(index, "")
        yield Run(
            at_ms=at_ms,
            ready=batch_result.ready[index][is_counted].tolist(),
            pod_ms=int(batch_result.pod_ms[index]),
            arrived_work=int(batch_result.arrived_work[index]),
            lost_work=int(batch_result.lost_work[index]),
            slow_work=int(batch_result.slo_missed_work[index]),
            scale_changes=int(batch_result.scale_ups[index] + batch_result.scale_downs[index]),
            engine="exact" if reason else "batch",
            reason=reason,
        )


def _run_exactly(scenario: SimulationScenario, candidate: Candidate, needs: Needs) -> Run:
    """The run of one candidate in the exact engine."""
    own_scenario = _with_replicas(scenario, candidate.replicas)
    workload_key = _workload_key(scenario)
    has_requests = any(workload.key == workload_key and workload.requests for workload in scenario.workloads)
    slo_bound_ms = load_serving.slo_bound_ms(needs.slo_ms) if has_requests else None
    run = Run()
    if isinstance(candidate.policy, Spec):
        autoscaler, *other_autoscalers = own_scenario.autoscalers
        model = AutoscalerModel(spec=candidate.policy, workload=autoscaler.workload)
        own_scenario = msgspec.structs.replace(own_scenario, autoscalers=(model, *other_autoscalers))
        for sync in engine.simulate(own_scenario):
            if sync.autoscaler.spec.key == candidate.policy.key and sync.at_ms >= needs.from_ms:
                run.scale_changes += sync.decision.replicas is not None
                _add_state(run, sync.at_ms, sync.workload, scenario.sync_period_ms, slo_bound_ms)
        return run
    scaler = _CountedScaler(candidate.policy(), needs.from_ms)
    for at_ms, state in scaler_runs.run_scaler(own_scenario, workload_key, scaler):
        if at_ms >= needs.from_ms:
            _add_state(run, at_ms, state, scenario.sync_period_ms, slo_bound_ms)
    run.scale_changes = scaler.changes
    return run


def _workload_key(scenario: SimulationScenario) -> str:
    """The key of the workload that candidates scale: that of the first autoscaler, or else the first one."""
    return scenario.autoscalers[0].workload if scenario.autoscalers else scenario.workloads[0].key


def _with_replicas(scenario: SimulationScenario, replicas: int | None) -> SimulationScenario:
    """The scenario whose workload starts with that many replicas; None: with its own."""
    if replicas is None:
        return scenario
    key = _workload_key(scenario)
    workloads = [
        msgspec.structs.replace(workload, replicas=replicas) if workload.key == key else workload
        for workload in scenario.workloads
    ]
    return msgspec.structs.replace(scenario, workloads=tuple(workloads))


def _add_state(run: Run, at_ms: int, state: WorkloadState, period_ms: int, slo_bound_ms: float | None) -> None:
    """Add the state at an instant that counts to the sums of a run; `slo_bound_ms` is None without SLO or requests."""
    run.at_ms.append(at_ms)
    run.ready.append(state.ready)
    run.pod_ms += state.pods * period_ms
    run.arrived_work += state.arrived_ucores_ms
    run.lost_work += state.lost_ucores_ms
    if slo_bound_ms is not None and (state.latency_ms is None or state.latency_ms > slo_bound_ms):
        run.slow_work += state.arrived_ucores_ms


class _CountedScaler:
    """A Scaler that counts the changes that another one makes from an instant on."""

    def __init__(self, scaler: Scaler, from_ms: int) -> None:
        self._scaler = scaler
        self._from_ms = from_ms
        self.tick_ms = scaler.tick_ms
        self.changes = 0

    def replicas(self, at_ms: int, state: WorkloadState) -> int:
        replicas = self._scaler.replicas(at_ms, state)
        self.changes += at_ms >= self._from_ms and replicas != state.replicas
        return replicas
