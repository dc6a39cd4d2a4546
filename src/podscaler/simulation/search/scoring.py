"""Scores candidates on the two parts of a scenario: the first one for the search, the later one for its judgement.

Called by `podscaler tune`. The later part is simulated from the start of the scenario, so that its first sync has the
history of the part before; only its own syncs are counted. The search also scores a candidate on *folds*, equally long
pieces of the first part, to see whether it is good in all of them. A new score: a sum in `_Totals` (a fold is the
difference of two), set in `_totals_of_candidate`, and its attribute of Scores in `_scores_of_totals`.
"""

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.core.model import spec as core_spec
from podscaler.simulation import batch
from podscaler.simulation.batch import BatchResult, Measures
from podscaler.simulation.model.scenario import SimulationScenario
from podscaler.simulation.search.folds import EvaluateFolds, FoldedScores
from podscaler.simulation.search.scores import Scores
from podscaler.simulation.search.search import Evaluate

_HOUR_MS = 3_600_000

FOLDS = 6
"""The number of folds of a part that is long enough."""
LEAST_SYNCS = 20
"""The least number of syncs of a fold."""


class ScoredPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a scenario.

    Attributes:
        scenario: from its start to the end of the part.
        from_ms: the first instant that counts; syncs before it are simulated for their history.
        needed: for each sync of `scenario` the pods that the load needs.
        slo_ms: the mean response time that is not to be exceeded; None if there is none.
    """

    scenario: SimulationScenario
    from_ms: int
    needed: Sequence[int]
    slo_ms: float | None = None


def split(whole: ScoredPart, share: float) -> tuple[ScoredPart, ScoredPart]:
    """The first part, with that share of the syncs that count, and the later one.

    Args:
        share: above 0 and below 1.

    Raises ValueError if one of the parts has no sync.
    """
    uncounted_syncs = _count_uncounted_syncs(whole)
    counted_syncs = len(whole.needed) - uncounted_syncs
    first_syncs = round(counted_syncs * share)
    if not 0 < first_syncs < counted_syncs:
        raise ValueError(f"a load of {counted_syncs} syncs cannot be divided at {share:.0%}")
    return (
        _shorten(whole, uncounted_syncs + first_syncs),
        msgspec.structs.replace(whole, from_ms=_sync_at_ms(whole.scenario, uncounted_syncs + first_syncs)),
    )


def _shorten(part: ScoredPart, syncs: int) -> ScoredPart:
    """The part shortened to its first `syncs` syncs, which are counted from the start of the scenario."""
    shortened_scenario = msgspec.structs.replace(part.scenario, duration_ms=_sync_at_ms(part.scenario, syncs) - 1)
    return msgspec.structs.replace(part, scenario=shortened_scenario, needed=part.needed[:syncs])


def _count_uncounted_syncs(part: ScoredPart) -> int:
    """How many syncs are before the first instant that counts."""
    return sum(_sync_at_ms(part.scenario, sync) < part.from_ms for sync in range(len(part.needed)))


def _sync_at_ms(scenario: SimulationScenario, sync: int) -> int:
    """The instant of a sync by its number from 0, in ms since the start of the scenario."""
    return scenario.first_sync_ms + sync * scenario.sync_period_ms


def evaluator(part: ScoredPart, on_fallback: Callable[[str], None]) -> Evaluate:
    """A function that scores specs on a part, with the batch engine where it covers them.

    Args:
        on_fallback: called with the reason each time the exact engine is used for a candidate.
    """

    def evaluate(specs: Sequence[HorizontalPodAutoscalerSpec]) -> Sequence[Scores]:
        return [_scores_of_totals(totals) for totals in _evaluate_totals(part, specs, on_fallback)]

    return evaluate


def fold_evaluator(part: ScoredPart, folds: int, on_fallback: Callable[[str], None]) -> EvaluateFolds:
    """A function that scores specs on a part and on its folds, which are equally long.

    Each fold has the history of those before, so candidates are simulated from the start to the end of each.

    Args:
        folds: how many; 1: the part is not divided.
        on_fallback: as for `evaluator`.
    """
    if folds < 2:
        evaluate_whole = evaluator(part, on_fallback)
        return lambda specs: [FoldedScores(scores) for scores in evaluate_whole(specs)]
    uncounted_syncs = _count_uncounted_syncs(part)
    counted_syncs = len(part.needed) - uncounted_syncs
    parts_to_fold_ends = [
        _shorten(part, uncounted_syncs + round(counted_syncs * fold / folds)) for fold in range(1, folds + 1)
    ]

    def evaluate(specs: Sequence[HorizontalPodAutoscalerSpec]) -> Sequence[FoldedScores]:
        totals_to_fold_ends = [
            _evaluate_totals(part_to_fold_end, specs, on_fallback) for part_to_fold_end in parts_to_fold_ends
        ]
        return [_score_folds([totals[index] for totals in totals_to_fold_ends]) for index in range(len(specs))]

    return evaluate


def is_constant(part: ScoredPart) -> bool:
    """Whether the load of a part always needs the same number of pods."""
    return len(set(part.needed[_count_uncounted_syncs(part) :])) <= 1


def fold_count(part: ScoredPart) -> int:
    """How many folds a part has: FOLDS, fewer where it is short, and 1 where only the exact engine can simulate it.

    The exact engine is too slow to simulate a candidate once for each fold.
    """
    try:
        batch.compile_scenario(part.scenario)
    except batch.NotCovered:
        return 1
    return max(min(FOLDS, (len(part.needed) - _count_uncounted_syncs(part)) // LEAST_SYNCS), 1)


class _Totals(NamedTuple):
    """The sums of one candidate over the syncs that count; those of a fold are a difference of two.

    Attributes:
        syncs: how many there were.
        pod_ms: the lifetimes of all pods.
        under_syncs, over_syncs: at how many there were too few or too many pods.
        under, over: as in `podscaler.simulation.batch`'s Deviations.
        slo_missed_work, lost_work, arrived_work: work, in the unit of BatchResult.
        scale_changes: how often the count of pods changed.
    """

    syncs: float
    pod_ms: float
    under_syncs: float
    under: float
    over_syncs: float
    over: float
    slo_missed_work: float
    lost_work: float
    arrived_work: float
    scale_changes: float


def _evaluate_totals(
    part: ScoredPart, specs: Sequence[HorizontalPodAutoscalerSpec], on_fallback: Callable[[str], None]
) -> list[_Totals]:
    """The totals of each candidate over a part of the scenario; `on_fallback` gets why one was simulated exactly."""
    (autoscaler,) = part.scenario.autoscalers
    present_spec = autoscaler.spec
    emulation = part.scenario.settings.emulation
    candidates = [core_spec.parse(present_spec.namespace, present_spec.name, spec, emulation) for spec in specs]
    measures = Measures(keep_timeline=False, needed=part.needed, slo_ms=part.slo_ms, counted_from_ms=part.from_ms)
    result = batch.evaluate(part.scenario, candidates, measures)
    for reason in result.fallbacks.values():
        on_fallback(reason)
    return [_totals_of_candidate(result, index) for index in range(len(specs))]


def _totals_of_candidate(result: BatchResult, index: int) -> _Totals:
    """The totals of one candidate."""
    deviations = result.deviations
    assert deviations is not None, "the needed pods were given"
    return _Totals(
        syncs=float(result.syncs),
        pod_ms=float(result.pod_ms[index]),
        under_syncs=float(deviations.under_syncs[index]),
        under=float(deviations.under[index]),
        over_syncs=float(deviations.over_syncs[index]),
        over=float(deviations.over[index]),
        slo_missed_work=float(result.slo_missed_work[index]),
        lost_work=float(result.lost_work[index]),
        arrived_work=float(result.arrived_work[index]),
        scale_changes=float(result.scale_ups[index] + result.scale_downs[index]),
    )


def _score_folds(totals_to_fold_ends: Sequence[_Totals]) -> FoldedScores:
    """The scores of the whole part and of each fold.

    Args:
        totals_to_fold_ends: from the start of the part to the end of each fold; a fold is the difference of two.
    """
    neighbors = itertools.pairwise(totals_to_fold_ends)
    later_fold_totals = [_Totals(*map(operator.sub, longer, shorter)) for shorter, longer in neighbors]
    return FoldedScores(
        _scores_of_totals(totals_to_fold_ends[-1]),
        tuple([_scores_of_totals(beginning) for beginning in (totals_to_fold_ends[0], *later_fold_totals)]),
    )


def _scores_of_totals(totals: _Totals) -> Scores:
    """The scores: shares of time per counted sync, and shares of work per arrived work, in percent."""
    per_sync, per_work = 100 / max(totals.syncs, 1), 100 / max(totals.arrived_work, 1)
    return Scores(
        pod_hours=totals.pod_ms / _HOUR_MS,
        under_provisioned_pct=totals.under_syncs * per_sync,
        under_amount_pct=totals.under * per_sync,
        over_provisioned_pct=totals.over_syncs * per_sync,
        over_amount_pct=totals.over * per_sync,
        slo_missed_pct=totals.slo_missed_work * per_work,
        lost_pct=totals.lost_work * per_work,
        scale_changes=totals.scale_changes,
    )
