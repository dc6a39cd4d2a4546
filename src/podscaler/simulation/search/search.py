"""Finds a spec that meets goals on the first part of a load, and judges it on the later part.

Called by `podscaler tune`. Theory of operation:

1. Optuna suggests candidates (TPE, several objectives), in batches that are evaluated side by side on the first part.
   Limits are constraints: a candidate that keeps them is better than any that does not.
2. Of the candidates that keep all limits with a margin (MARGIN), the one with the smallest first objective is chosen;
   its changes that do not help are undone. The front of all that are not worse than another in every objective is kept
   for the report.
3. Only the chosen candidate and the present spec are evaluated on the later part. It is recommended if it keeps the
   limits there, and is better there than the present spec. No second candidate is tried there: choosing among several
   by that part would make it part of the search.

Invariant: equal seeds and evaluations give equal results.

Source: T. Akiba et al., Optuna (KDD 2019); the tree-structured Parzen estimator of J. Bergstra et al. (NIPS 2011).
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec
import optuna

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.simulation.search import recommendation
from podscaler.simulation.search.goals import Goals, Limit
from podscaler.simulation.search.scores import Scores
from podscaler.simulation.search.space import SearchSpace

MARGIN = 0.8
"""The share of a limit that the search uses, since the later part of a load differs from the first one."""

NEGLIGIBLE = 0.002
"""A change that makes an objective smaller by less than this share is left out of the recommendation."""

BATCH = 25
"""How many candidates are suggested before the next evaluation."""

Evaluate = Callable[[Sequence[HorizontalPodAutoscalerSpec]], Sequence[Scores]]
"""The scores of specs on one part of the load, in order."""


class TunedCandidate(msgspec.Struct, frozen=True):
    """One spec that was tried, and its scores on the first part."""

    spec: HorizontalPodAutoscalerSpec
    scores: Scores


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search.

    Attributes:
        present, present_later: scores of the present spec on both parts.
        chosen, chosen_later: the best candidate, and its scores on the later part; None: none keeps all limits.
        front: candidates of which none is worse than another in all objectives, by the first objective.
        refusal: why the chosen candidate is not recommended; empty: it is.
        trials: how many candidates were evaluated.
    """

    present: Scores
    present_later: Scores
    chosen: TunedCandidate | None
    chosen_later: Scores | None
    front: tuple[TunedCandidate, ...]
    refusal: str
    trials: int


class SearchBudget(msgspec.Struct, frozen=True):
    """How many candidates are tried, and the seed of the suggestions."""

    trials: int
    seed: int


def search(
    space: SearchSpace,
    goals: Goals,
    first_part: Evaluate,
    later_part: Evaluate,
    budget: SearchBudget,
    on_progress: Callable[[int], None],
) -> SearchResult:
    """The result of a search.

    Args:
        first_part, later_part: evaluate specs on the part that the search sees, and on the one that it does not.
        on_progress: called with the number of candidates that have been evaluated, after each batch.
    """
    (present,) = first_part([space.present])
    tried: list[TunedCandidate] = []
    for batch in _batches(space, goals, first_part, budget):
        tried.extend(batch)
        on_progress(len(tried))
    tight = _with_margin(goals)
    kept = [candidate for candidate in tried if tight.are_met(candidate.scores)]
    chosen = min(kept, key=lambda candidate: goals.objectives(candidate.scores), default=None)
    if chosen is not None:
        chosen = _simplified(chosen, space.present, tight, first_part)
    later = later_part([space.present] if chosen is None else [space.present, chosen.spec])
    chosen_later = None if chosen is None else later[1]
    return SearchResult(
        present=present,
        present_later=later[0],
        chosen=chosen,
        chosen_later=chosen_later,
        front=_front(tried, goals),
        refusal=_refusal(goals, later[0], chosen_later),
        trials=len(tried),
    )


def _batches(
    space: SearchSpace, goals: Goals, evaluate: Evaluate, budget: SearchBudget
) -> Iterator[list[TunedCandidate]]:
    """The candidates of the search in batches, evaluated."""
    tight = _with_margin(goals)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=budget.seed, n_startup_trials=4 * BATCH)
    study = optuna.create_study(directions=["minimize"] * len(goals.minimize), sampler=sampler)
    for done in range(0, budget.trials, BATCH):
        trials = [study.ask() for _ in range(min(BATCH, budget.trials - done))]
        specs = [space.suggest(trial) for trial in trials]
        evaluated = [TunedCandidate(*pair) for pair in zip(specs, evaluate(specs), strict=True)]
        for trial, candidate in zip(trials, evaluated, strict=True):
            for limit in tight.limits:
                trial.set_constraint(str(limit), limit.excess(candidate.scores))
            study.tell(trial, list(goals.objectives(candidate.scores)))
        yield evaluated


def _simplified(
    chosen: TunedCandidate, present: HorizontalPodAutoscalerSpec, goals: Goals, evaluate: Evaluate
) -> TunedCandidate:
    """The chosen candidate without the changes that do not help."""
    for group in recommendation.GROUPS:
        undone = recommendation.undone(group, present, chosen.spec)
        if undone is None:
            continue
        (scores,) = evaluate([undone])
        if goals.are_met(scores) and _is_as_good(goals.objectives(scores), goals.objectives(chosen.scores)):
            chosen = TunedCandidate(undone, scores)
    return chosen


def _is_as_good(objectives: tuple[float, ...], others: tuple[float, ...]) -> bool:
    """Whether no objective is larger by more than the share NEGLIGIBLE."""
    return all(own <= other * (1 + NEGLIGIBLE) for own, other in zip(objectives, others, strict=True))


def _with_margin(goals: Goals) -> Goals:
    limits = tuple([Limit(limit.measure, limit.highest * MARGIN) for limit in goals.limits])
    return msgspec.structs.replace(goals, limits=limits)


def _front(tried: Sequence[TunedCandidate], goals: Goals) -> tuple[TunedCandidate, ...]:
    """The candidates that keep the limits and are not worse than another one in all objectives."""
    kept = [candidate for candidate in reversed(tried) if goals.are_met(candidate.scores)]
    by_objectives = {goals.objectives(candidate.scores): candidate for candidate in kept}
    front: list[TunedCandidate] = []
    for objectives in sorted(by_objectives):
        if not any(_dominates(goals.objectives(other.scores), objectives) for other in front):
            front.append(by_objectives[objectives])
    return tuple(front)


def _dominates(other: tuple[float, ...], objectives: tuple[float, ...]) -> bool:
    return other != objectives and all(a <= b for a, b in zip(other, objectives, strict=True))


def _refusal(goals: Goals, present: Scores, chosen: Scores | None) -> str:
    """Why a candidate with those scores on the later part is not recommended; empty: it is."""
    if chosen is None:
        limits = " and ".join(map(str, goals.limits))
        return f"no candidate keeps {limits} on the first part with a margin of a fifth"
    for limit in goals.limits:
        if limit.excess(chosen) > 0:
            return f"on the later part it does not keep {limit}: {limit.highest + limit.excess(chosen):.2f}"
    if goals.are_met(present) and goals.objectives(chosen) >= goals.objectives(present):
        return f"on the later part it is not better than the present spec in {goals.minimize[0]}"
    return ""
