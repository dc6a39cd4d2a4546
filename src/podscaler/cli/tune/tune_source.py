"""Makes the input of a search from a load: one autoscaler, and the pods that its load needs.

Called by `podscaler.cli.tune.tune`. `podscaler.cli.backtest.load_sources` reads the load, as for `podscaler backtest`.
"""

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.cli.backtest import candidate_options
from podscaler.cli.backtest.candidate_options import CandidateRequest
from podscaler.cli.backtest.load_sources import LoadSource
from podscaler.simulation.evaluation.demand import PodCapacity
from podscaler.simulation.model.scenario import SimulationScenario


class TuneSource(msgspec.Struct, frozen=True, kw_only=True):
    """One autoscaler and its load.

    Attributes:
        scenario: with this autoscaler and its workload alone.
        wire: the present spec in the API's form.
        needed: for each sync the pods that the load needs.
        capacity: of one pod.
        slo_ms: the mean response time to meet; None if there is none.
        from_ms: the first instant that counts.
        sentences: what was assumed of the load, and what is not known.
    """

    scenario: SimulationScenario
    wire: HorizontalPodAutoscalerSpec
    needed: tuple[int, ...]
    capacity: PodCapacity
    slo_ms: float | None = None
    from_ms: int = 0
    sentences: tuple[str, ...] = ()


def of_load(load: LoadSource, *, slo_ms: float | None, capacity_milli: int | None) -> TuneSource:
    """The source of a load. Raises UsageError.

    Args:
        slo_ms: the mean response time to meet; None if there is no goal for response times.
        capacity_milli: of a pod, in thousandths of a core; None: its limit, else its request.
    """
    needs = candidate_options.needs(load, CandidateRequest(slo_ms=slo_ms, capacity_milli=capacity_milli))
    scenario, sentences = _with_one_autoscaler(load.scenario)
    at_ms = range(scenario.first_sync_ms, scenario.duration_ms + 1, scenario.sync_period_ms)
    return TuneSource(
        scenario=scenario,
        wire=load.wire,
        needed=tuple([needs.pods.value_at(instant_ms) for instant_ms in at_ms]),
        capacity=needs.capacity,
        slo_ms=slo_ms,
        from_ms=load.from_ms,
        sentences=(*load.sentences, *sentences),
    )


def _with_one_autoscaler(scenario: SimulationScenario) -> tuple[SimulationScenario, tuple[str, ...]]:
    """The scenario with its first autoscaler alone, and a sentence about the rest.

    Raises UsageError if another autoscaler scales the same workload.
    """
    own_autoscaler, *other_autoscalers = scenario.autoscalers
    workload_key = own_autoscaler.workload
    shared = [other.spec.key for other in other_autoscalers if other.workload == workload_key]
    if shared:
        raise UsageError(
            f"{own_autoscaler.spec.key} and {', '.join(shared)} scale the same workload; tune improves one alone"
        )
    workloads = tuple([workload for workload in scenario.workloads if workload.key == workload_key])
    if len(workloads) == len(scenario.workloads):  # then there is no other autoscaler either
        return scenario, ()
    left_out = ", ".join(workload.key for workload in scenario.workloads if workload.key != workload_key)
    reduced = msgspec.structs.replace(scenario, autoscalers=(own_autoscaler,), workloads=workloads)
    return reduced, (f"Left out of the simulation: {left_out}.",)
