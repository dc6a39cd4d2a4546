"""Scores candidates on the two parts of a scenario: what the search sees, and what it is judged by.

Called by `podscaler tune`. The later part is simulated from the start of the scenario, so that its first sync has the
history of the part before; only its own syncs are counted.
"""

from collections.abc import Callable, Sequence

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.core.model import spec as core_spec
from podscaler.simulation import batch
from podscaler.simulation.batch import BatchResult, Measures
from podscaler.simulation.model.scenario import SimulationScenario
from podscaler.simulation.search.scores import Scores
from podscaler.simulation.search.search import Evaluate

_HOUR_MS = 3_600_000


class ScoredPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a scenario.

    Attributes:
        scenario: from its start to the end of the part.
        from_ms: the first instant that counts.
        needed: for each sync of `scenario` the pods that the load needs.
        slo_ms: the mean response time that is not to be exceeded; None: there is none.
    """

    scenario: SimulationScenario
    from_ms: int
    needed: Sequence[int]
    slo_ms: float | None = None


def split(whole: ScoredPart, share: float) -> list[ScoredPart]:
    """The first part, with that share of the syncs that count, and the later one.

    Args:
        share: above 0 and below 1.

    Raises ValueError where one of the parts has no sync.
    """
    scenario = whole.scenario
    before = sum(_at_ms(scenario, sync) < whole.from_ms for sync in range(len(whole.needed)))
    syncs = len(whole.needed) - before
    first = round(syncs * share)
    if not 0 < first < syncs:
        raise ValueError(f"a load of {syncs} syncs cannot be divided at {share:.0%}")
    return [until(whole, before + first), msgspec.structs.replace(whole, from_ms=_at_ms(scenario, before + first))]


def until(part: ScoredPart, syncs: int) -> ScoredPart:
    """The part without what is later than its first syncs, counted from the start of the scenario."""
    seen = msgspec.structs.replace(part.scenario, duration_ms=_at_ms(part.scenario, syncs) - 1)
    return msgspec.structs.replace(part, scenario=seen, needed=part.needed[:syncs])


def _at_ms(scenario: SimulationScenario, sync: int) -> int:
    return scenario.first_sync_ms + sync * scenario.sync_period_ms


def evaluator(part: ScoredPart, on_fallback: Callable[[str], None]) -> Evaluate:
    """Scores specs on a part, with the batch engine where it covers them.

    Args:
        on_fallback: called with the reason each time the exact engine is used for a candidate.
    """
    (autoscaler,) = part.scenario.autoscalers
    present = autoscaler.spec

    def evaluate(specs: Sequence[HorizontalPodAutoscalerSpec]) -> Sequence[Scores]:
        candidates = [core_spec.read(present.namespace, present.name, each) for each in specs]
        measures = Measures(keep_timeline=False, needed=part.needed, slo_ms=part.slo_ms, counted_from_ms=part.from_ms)
        result = batch.evaluate(part.scenario, candidates, measures)
        for reason in result.fallbacks.values():
            on_fallback(reason)
        return [_scores(result, index) for index in range(len(specs))]

    return evaluate


def _scores(result: BatchResult, index: int) -> Scores:
    deviations = result.deviations
    assert deviations is not None, "the needed pods were given"
    arrived = max(float(result.arrived_work[index]), 1.0)
    per_sync = 100 / max(result.syncs, 1)
    return Scores(
        pod_hours=float(result.pod_ms[index]) / _HOUR_MS,
        under_provisioned_pct=float(deviations.under_syncs[index]) * per_sync,
        under_amount_pct=float(deviations.under[index]) * per_sync,
        over_provisioned_pct=float(deviations.over_syncs[index]) * per_sync,
        over_amount_pct=float(deviations.over[index]) * per_sync,
        slo_missed_pct=100 * float(result.slo_missed_work[index]) / arrived,
        lost_pct=100 * float(result.lost_work[index]) / arrived,
        scale_changes=float(result.scale_ups[index] + result.scale_downs[index]),
    )
