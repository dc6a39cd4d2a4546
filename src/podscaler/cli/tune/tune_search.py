"""Runs the search of `podscaler tune`, and explains its choice: what changes, and what each change does.

Called by `podscaler.cli.tune.tune`. `podscaler.simulation.search` searches on the first part of the load, and judges
its choice on the later part; `podscaler.cli.tune.tune_output` has the sentences and tables of the result. A further
sentence about the run goes into `_remarks`, a further kind of change into `recommendation.GROUPS`.
"""

from collections.abc import Callable

import msgspec

from podscaler.base.errors import UsageError
from podscaler.cli.tune import tune_output
from podscaler.cli.tune.tune_output import TunedAutoscaler
from podscaler.cli.tune.tune_source import TuneSource
from podscaler.simulation.search import recommendation, scoring, search
from podscaler.simulation.search.goals import Goals
from podscaler.simulation.search.scoring import ScoredPart
from podscaler.simulation.search.search import Evaluate, SearchBudget, SearchResult
from podscaler.simulation.search.space import SearchSpace

_UCORES_PER_MILLICORE = 1000
_CONSTANT_NEED = (
    "the later part of the load always needs the same number of pods, so that it does not show whether the candidate "
    "follows a change; choose another part with --from, --to or --train"
)


def tune(
    source: TuneSource,
    space: SearchSpace,
    goals: Goals,
    budget: SearchBudget,
    *,
    share: float,
    on_progress: Callable[[int], None],
) -> TunedAutoscaler:
    """The result of the search; it has a refusal if no change is recommended.

    Raises UsageError if the load cannot be divided.

    Args:
        source: the load, the autoscaler and the needed pods.
        space: the specs that may be tried.
        goals: the measures to minimize and their limits.
        budget: how many candidates are tried.
        share: the share of the load that is its first part, between 0 and 1.
        on_progress: called with the number of candidates that were tried.
    """
    exact_reasons: dict[str, None] = {}  # why the exact engine ran, each reason once, in order

    def note_exact(reason: str) -> None:
        exact_reasons[reason] = None

    try:
        whole_load = ScoredPart(
            scenario=source.scenario, from_ms=source.from_ms, needed=source.needed, slo_ms=source.slo_ms
        )
        first_part, later_part = scoring.split(whole_load, share)
    except ValueError as error:
        raise UsageError(str(error)) from None
    # on folds (pieces of equal length), so that a gain in one piece alone counts less
    score_on_first = scoring.fold_evaluator(first_part, scoring.fold_count(first_part), note_exact)
    score_on_later = scoring.evaluator(later_part, note_exact)
    search_result = search.search(space, goals, score_on_first, score_on_later, budget, on_progress)
    if search_result.chosen is not None and not search_result.refusal and scoring.is_constant(later_part):
        search_result = msgspec.structs.replace(search_result, refusal=_CONSTANT_NEED)
    (autoscaler,) = source.scenario.autoscalers
    spec, chosen = autoscaler.spec, search_result.chosen
    recommended = None
    if chosen is not None and not search_result.refusal:
        recommended = recommendation.manifest(spec.namespace, spec.name, chosen.spec)
    return TunedAutoscaler(
        name=spec.key,
        goals=goals,
        result=search_result,
        changes=() if chosen is None else recommendation.changes(space.present, chosen.spec),
        effects=_effects(space, search_result, scoring.evaluator(first_part, note_exact), goals),
        manifest=recommended,
        remarks=_remarks(source, list(exact_reasons)),
    )


def _effects(space: SearchSpace, search_result: SearchResult, evaluate: Evaluate, goals: Goals) -> tuple[str, ...]:
    """What each group of changes does: the scores of the chosen spec beside those without that group.

    `evaluate` scores on all of the first part, as `SearchResult.chosen.scores` are.
    """
    if search_result.chosen is None:
        return ()
    chosen = search_result.chosen.spec
    specs_without_group = {}
    for group in recommendation.GROUPS:
        spec = recommendation.undo_group(group, space.present, chosen)
        if spec is not None:
            specs_without_group[group] = spec
    without = {}
    if specs_without_group:
        scores_without_group = evaluate(list(specs_without_group.values()))
        without = dict(zip(specs_without_group, scores_without_group, strict=True))
    return tune_output.effects(search_result.chosen.scores, without, goals)


def _remarks(source: TuneSource, exact_reasons: list[str]) -> tuple[str, ...]:
    """Sentences about the load, its needed pods, and why the exact engine ran; no reasons: it did not."""
    capacity = source.capacity
    fewest_pods, most_pods = min(source.needed), max(source.needed)
    needed = (
        f"The load needs {fewest_pods} to {most_pods} pods of {capacity.ucores // _UCORES_PER_MILLICORE}m each "
        f"({capacity.basis}), "
        "whatever the autoscaler's target."
    )
    engine_sentences = [f"Simulated by the exact engine, which is slower: {reason}." for reason in exact_reasons]
    return (*source.sentences, needed, *engine_sentences)
