"""Finds a spec that meets goals on the first part of a load, and judges it on the later part.

Called by `podscaler tune`. Theory of operation:

1. Optuna suggests candidates (TPE, several objectives), more than half of them as variations of the best ones so far,
   of which the present spec is the first. They are evaluated side by side, in batches, on the first part and its
   folds. An objective is the change of a measure from the present spec plus one standard error over the folds
   (`folds`), so that a gain that hangs on one fold counts less. Limits are constraints: a candidate that keeps them
   is better than any that does not.
2. Of the candidates that keep all limits with a margin (MARGIN), and are not worse than the present spec where the
   goals ask for that, the one with the smallest sum of objectives is chosen; its changes whose gain is within the
   noise of the folds are undone. The front of all that are not worse than another in every objective is kept for the
   report.
3. Only the chosen candidate and the present spec are evaluated on the later part. It is recommended if it meets the
   goals there, and is better there than the present spec. No second candidate is tried there: choosing among several
   by that part would make it part of the search.

Invariant: equal seeds and evaluations give equal results.

Source: T. Akiba et al., Optuna (KDD 2019); the tree-structured Parzen estimator of J. Bergstra et al. (NIPS 2011).
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import optuna

from podscaler.simulation.search import folds, recommendation
from podscaler.simulation.search.folds import EvaluateFolds, FoldedScores
from podscaler.simulation.search.goals import Goals, Limit
from podscaler.simulation.search.scores import Scores, score_text
from podscaler.simulation.search.space import SearchSpace, WireSpec

MARGIN = 0.8
"""The share of a limit that the search uses, since the later part of a load differs from the first one.

`_reason_for_none` states the rest in words.
"""

NEGLIGIBLE = 0.002
"""A change of the spec that makes no objective smaller by more than this share is undone."""

VARIED_SHARE = 0.6
"""The share of the candidates that vary the best ones so far, of which the present spec is the first."""

ELITE_SIZE = 8
"""How many of the best candidates are varied."""

BATCH_SIZE = 25
"""How many candidates are suggested before the next evaluation."""

Evaluate = Callable[[Sequence[WireSpec]], Sequence[Scores]]
"""The scores of specs on one part of the load, in order."""


class TunedCandidate(msgspec.Struct, frozen=True):
    """One spec that was tried, and its scores on the first part."""

    spec: WireSpec
    folded: FoldedScores

    @property
    def scores(self) -> Scores:
        """On all of the first part."""
        return self.folded.whole


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search.

    Attributes:
        present, present_later: scores of the present spec on both parts.
        chosen, chosen_later: the best candidate, and its scores on the later part; None: none keeps all limits.
        front: candidates of which none is worse than another in all objectives, by the first objective.
        refusal: why the chosen candidate is not recommended; empty if it is recommended.
        trials: how many candidates were evaluated.
        is_interrupted: whether the search ended early, by Ctrl-C.
    """

    present: Scores
    present_later: Scores
    chosen: TunedCandidate | None
    chosen_later: Scores | None
    front: tuple[TunedCandidate, ...]
    refusal: str
    trials: int
    is_interrupted: bool = False


class SearchBudget(msgspec.Struct, frozen=True):
    """How many candidates are tried, and the seed of the suggestions."""

    trials: int
    seed: int


def search(
    space: SearchSpace,
    goals: Goals,
    first_part: EvaluateFolds,
    later_part: Evaluate,
    budget: SearchBudget,
    on_progress: Callable[[int], None],
) -> SearchResult:
    """The result of a search; Ctrl-C ends it with what was found until then.

    Args:
        space: the specs to try, with the present one.
        first_part: evaluates specs on the part of the load that the search optimizes for.
        later_part: evaluates specs on the part of the load that the search does not use.
        on_progress: called with the number of candidates that have been evaluated, after each batch.
    """
    (present_scores,) = first_part([space.present])
    standard = _FirstPartStandard(_with_margin(goals), present_scores)
    tried_candidates: list[TunedCandidate] = []
    is_interrupted = False
    try:
        for batch in _evaluate_batches(space, standard, first_part, budget):
            tried_candidates.extend(batch)
            on_progress(len(tried_candidates))
    except KeyboardInterrupt:
        is_interrupted = True
    chosen = _choose(tried_candidates, standard)
    if chosen is not None:
        chosen = _undo_noise(chosen, space.present, standard, first_part)
    chosen_later: Scores | None = None
    if chosen is None:
        (present_later,) = later_part([space.present])
        refusal = _reason_for_none(tried_candidates, standard, goals)
    else:
        present_later, chosen_later = later_part([space.present, chosen.spec])
        refusal = _reason_to_refuse(goals, present_later, chosen_later)
    return SearchResult(
        present=present_scores.whole,
        present_later=present_later,
        chosen=chosen,
        chosen_later=chosen_later,
        front=_pareto_front(tried_candidates, goals),
        refusal=refusal,
        trials=len(tried_candidates),
        is_interrupted=is_interrupted,
    )


class _FirstPartStandard(NamedTuple):
    """What candidates are compared with on the first part: the goals with margin, and the present spec's scores."""

    goals: Goals
    present: FoldedScores

    def objectives(self, candidate: FoldedScores) -> tuple[float, ...]:
        """Cautious changes from the present spec, in the order of the goals; below 0 is better."""
        return tuple([folds.change(measure, candidate, self.present).cautious for measure in self.goals.minimize])

    def excesses(self, candidate: FoldedScores) -> Mapping[str, float]:
        """By how much the candidate exceeds each limit and each measure of the present spec; 0 or less: it does not."""
        limits = {str(limit): limit.excess(candidate.whole) for limit in self.goals.limits}
        changes = {measure: folds.change(measure, candidate, self.present).cautious for measure in self.goals.not_worse}
        return limits | {name: cautious - folds.SAME / 2 for name, cautious in changes.items()}

    def is_met(self, candidate: FoldedScores) -> bool:
        """Whether the candidate keeps all limits, and is not worse where it must not be."""
        return all(excess <= 0 for excess in self.excesses(candidate).values())

    def is_better(self, candidate: FoldedScores) -> bool:
        """Whether an objective is better by more than noise, or the present spec does not meet the goals."""
        return not self.is_met(self.present) or min(self.objectives(candidate)) < -folds.SAME


def _evaluate_batches(
    space: SearchSpace, standard: _FirstPartStandard, evaluate: EvaluateFolds, budget: SearchBudget
) -> Iterator[list[TunedCandidate]]:
    """The candidates that Optuna suggests, in batches of at most BATCH_SIZE, each with its scores on the first part.

    The objectives and excesses of a batch go back to the study, so that the next suggestions take them into account.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=budget.seed, n_startup_trials=2 * BATCH_SIZE)
    study = optuna.create_study(directions=["minimize"] * len(standard.goals.minimize), sampler=sampler)
    variation = _EliteVariation(space.present_values(), random.Random(budget.seed))
    for trials_done in range(0, budget.trials, BATCH_SIZE):
        batch_size = min(BATCH_SIZE, budget.trials - trials_done)
        for _ in range(round(batch_size * VARIED_SHARE)):
            study.enqueue_trial(dict(variation.values()))
        trials = [study.ask() for _ in range(batch_size)]
        specs = [space.suggest(trial) for trial in trials]
        evaluated = [TunedCandidate(spec, folded) for spec, folded in zip(specs, evaluate(specs), strict=True)]
        for trial, candidate in zip(trials, evaluated, strict=True):
            excesses = standard.excesses(candidate.folded)
            for name, excess in excesses.items():
                trial.set_constraint(name, excess)
            objectives = standard.objectives(candidate.folded)
            study.tell(trial, list(objectives))
            violation = sum(max(excess, 0) for excess in excesses.values())
            variation.add(trial.params, (violation, sum(objectives)))
        yield evaluated


class _RankedValues(NamedTuple):
    """The values of a candidate by the name of each suggestion; the smallest rank is the best.

    Attributes:
        rank: the sum of the excesses above limits, then the sum of the objectives; zeros for the present spec.
    """

    rank: tuple[float, float]
    values: Mapping[str, int | str]


class _EliteVariation:
    """Chooses values of good candidates, with one to three of them left open, for the suggester to fill in.

    Args:
        present_values: the values of the present spec, which is the first candidate.
    """

    def __init__(self, present_values: Mapping[str, int | str], generator: random.Random) -> None:
        self._best = [_RankedValues((0.0, 0.0), present_values)]
        self._generator = generator

    def add(self, values: Mapping[str, int | str], rank: tuple[float, float]) -> None:
        """Keep the values of a candidate if it is one of the best; `rank` as in `_RankedValues`."""
        if values not in [elite.values for elite in self._best]:
            ranked_values = [*self._best, _RankedValues(rank, dict(values))]
            self._best = sorted(ranked_values, key=lambda elite: elite.rank)[:ELITE_SIZE]

    def values(self) -> Mapping[str, int | str]:
        """The values of one of the best candidates, without those that the suggester is to choose."""
        values = self._generator.choice(self._best).values
        open_names = self._generator.sample(sorted(values), min(self._generator.randint(1, 3), len(values)))
        return {name: value for name, value in values.items() if name not in open_names}


def _choose(tried_candidates: Sequence[TunedCandidate], standard: _FirstPartStandard) -> TunedCandidate | None:
    """The candidate with the smallest sum of objectives of those that meet the goals and are better."""
    eligible = [
        candidate
        for candidate in tried_candidates
        if standard.is_met(candidate.folded) and standard.is_better(candidate.folded)
    ]
    return min(eligible, key=lambda candidate: sum(standard.objectives(candidate.folded)), default=None)


def _undo_noise(
    chosen: TunedCandidate,
    present_spec: WireSpec,
    standard: _FirstPartStandard,
    evaluate: EvaluateFolds,
) -> TunedCandidate:
    """The chosen candidate without the changes whose gain is within the noise, which are undone group by group."""
    for group in recommendation.GROUPS:
        undone_spec = recommendation.undo_group(group, present_spec, chosen.spec)
        if undone_spec is None:
            continue
        (folded,) = evaluate([undone_spec])
        if standard.is_met(folded) and standard.is_better(folded) and _is_as_good(folded, chosen.folded, standard):
            chosen = TunedCandidate(undone_spec, folded)
    return chosen


def _is_as_good(undone_scores: FoldedScores, chosen: FoldedScores, standard: _FirstPartStandard) -> bool:
    """Whether no objective is larger by more than its error and the share NEGLIGIBLE."""
    changes = [folds.change(measure, undone_scores, chosen) for measure in standard.goals.minimize]
    return all(change.mean <= max(change.error, NEGLIGIBLE) for change in changes)


def _with_margin(goals: Goals) -> Goals:
    """The goals with limits of the share MARGIN."""
    limits = tuple([Limit(limit.measure, limit.highest * MARGIN) for limit in goals.limits])
    return msgspec.structs.replace(goals, limits=limits)


def _pareto_front(tried_candidates: Sequence[TunedCandidate], goals: Goals) -> tuple[TunedCandidate, ...]:
    """The candidates that keep the limits and are not worse than another one in all objectives."""
    met_candidates = [candidate for candidate in reversed(tried_candidates) if goals.are_met(candidate.scores)]
    by_objectives = {goals.objectives(candidate.scores): candidate for candidate in met_candidates}
    front: list[TunedCandidate] = []
    for objectives in sorted(by_objectives):
        if not any(_dominates(goals.objectives(other.scores), objectives) for other in front):
            front.append(by_objectives[objectives])
    return tuple(front)


def _dominates(other: tuple[float, ...], objectives: tuple[float, ...]) -> bool:
    return other != objectives and all(
        other_value <= value for other_value, value in zip(other, objectives, strict=True)
    )


def _reason_for_none(tried_candidates: Sequence[TunedCandidate], standard: _FirstPartStandard, goals: Goals) -> str:
    """Why no candidate was chosen."""
    if not tried_candidates:
        return "the search was interrupted before a candidate was evaluated"
    limits = " and ".join(map(str, goals.limits))
    if limits and not any(standard.goals.are_met(candidate.scores) for candidate in tried_candidates):
        return f"no candidate keeps {limits} on the first part with a margin of a fifth"
    return "no candidate is better than the present spec on the first part by more than its noise"


def _reason_to_refuse(goals: Goals, present_scores: Scores, chosen_scores: Scores) -> str:
    """Why a candidate with those scores on the later part is not recommended; empty if it is recommended."""
    for limit in goals.limits:
        if limit.excess(chosen_scores) > 0:
            return f"on the later part it does not keep {limit}: {limit.highest + limit.excess(chosen_scores):.2f}"
    for measure in goals.not_worse:
        if folds.is_worse(measure, chosen_scores, present_scores):
            value_texts = f"{score_text(chosen_scores, measure)} instead of {score_text(present_scores, measure)}"
            return f"on the later part it is worse than the present spec in {measure}: {value_texts}"
    if goals.are_met(present_scores) and not any(
        folds.is_worse(measure, present_scores, chosen_scores) for measure in goals.minimize
    ):
        return f"on the later part it is not better than the present spec in {' or '.join(goals.minimize)}"
    return ""
