"""Prints the result of a search: scores on both parts, the changes with their effects, and the manifest.

Called by `podscaler.cli.tune.tune`, and for parts by `tune_search` and `tune_report`. The load is divided in two: the
search sees its *first part* alone; the *later part* shows whether the result holds. A new figure goes into `table` and
`as_json`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from podscaler.simulation.search import recommendation, scores
from podscaler.simulation.search.goals import Goals
from podscaler.simulation.search.recommendation import FieldChange
from podscaler.simulation.search.scores import MEASURES, Scores
from podscaler.simulation.search.search import SearchResult

FRONT_SHOWN_MAX = 10
EFFECT_MEASURES_MAX = 4
"""How many measures a sentence about an effect has."""
USUAL_MEASURES = ("pod-hours", "under-provisioned", "over-provisioned", "lost", "scale-changes")
"""The columns of the table after the measures of the goals."""


class TunedAutoscaler(msgspec.Struct, frozen=True, kw_only=True):
    """What is printed.

    Attributes:
        name: `namespace/name`.
        goals: the measures to minimize and their limits.
        result: of the search.
        changes: of the chosen spec; empty if there is none.
        effects: sentences on what each group of changes does on the first part.
        manifest: the recommended autoscaler; None if no change is recommended.
        remarks: sentences about the load and the engine.
    """

    name: str
    goals: Goals
    result: SearchResult
    changes: tuple[FieldChange, ...]
    effects: tuple[str, ...]
    manifest: Mapping[str, Any] | None
    remarks: tuple[str, ...]


def table(tuned: TunedAutoscaler) -> Iterator[str]:
    """The lines of the table."""
    search_result, measures = tuned.result, measures_of(tuned.goals)
    interruption = "; the search was interrupted" if search_result.is_interrupted else ""
    yield f"{tuned.name}: {search_result.trials} candidates tried on the first part of the load{interruption}"
    yield ""
    yield from _aligned(score_rows(tuned, measures))
    yield from _front_lines(tuned, measures)
    if tuned.changes:
        yield from ("", "Changes:", *(f"  {change}" for change in tuned.changes))
    if tuned.effects:
        yield from ("", "Their effects on the first part:", *(f"  {effect}" for effect in tuned.effects))
    for remark in tuned.remarks:
        yield from ("", remark)
    yield ""
    yield verdict(tuned)


def score_rows(tuned: TunedAutoscaler, measures: Sequence[str]) -> list[list[str]]:
    """The names of the measures, then the scores of the present spec and of the candidate on both parts."""
    search_result = tuned.result
    rows = [["", *measures], ["present, first part", *_score_texts(search_result.present, measures)]]
    if search_result.chosen is not None and search_result.chosen_later is not None:
        rows.append(["candidate, first part", *_score_texts(search_result.chosen.scores, measures)])
        rows.append(["present, later part", *_score_texts(search_result.present_later, measures)])
        rows.append(["candidate, later part", *_score_texts(search_result.chosen_later, measures)])
    else:
        rows.append(["present, later part", *_score_texts(search_result.present_later, measures)])
    return rows


def verdict(tuned: TunedAutoscaler) -> str:
    """One sentence: what is recommended, or why nothing is."""
    search_result = tuned.result
    if search_result.refusal:
        return f"No recommendation: {search_result.refusal}."
    assert search_result.chosen_later is not None, "a candidate is chosen unless there is a refusal"
    improvements = []
    for measure in tuned.goals.minimize:
        chosen_score = scores.score_text(search_result.chosen_later, measure)
        present_score = scores.score_text(search_result.present_later, measure)
        improvements.append(f"{measure} {chosen_score} instead of {present_score}")
    limits = " and ".join(map(str, tuned.goals.limits))
    measures_not_worse = [measure for measure in tuned.goals.not_worse if measure not in tuned.goals.minimize]
    kept_text = ""
    if limits:
        kept_text = f" and keeps {limits}"
    elif measures_not_worse:
        kept_text = f", and it is not worse in {', '.join(measures_not_worse)}"
    return f"Recommended: on the later part, which the search did not see, it has {', '.join(improvements)}{kept_text}."


def as_json(tuned: TunedAutoscaler) -> Mapping[str, Any]:
    """All figures as JSON-ready data."""
    search_result = tuned.result
    return {
        "autoscaler": tuned.name,
        "goals": {
            "limits": [str(limit) for limit in tuned.goals.limits],
            "minimize": list(tuned.goals.minimize),
            "not_worse": list(tuned.goals.not_worse),
        },
        "trials": search_result.trials,
        "interrupted": search_result.is_interrupted,
        "present": {"first": _score_values(search_result.present), "later": _score_values(search_result.present_later)},
        "candidate": _candidate_fields(search_result),
        "front": [
            {"spec": msgspec.to_builtins(candidate.spec), "first": _score_values(candidate.scores)}
            for candidate in search_result.front
        ],
        "changes": [{"path": change.path, "before": change.before, "after": change.after} for change in tuned.changes],
        "effects": list(tuned.effects),
        "remarks": list(tuned.remarks),
        "recommended": tuned.manifest,
        "verdict": verdict(tuned),
    }


def _candidate_fields(search_result: SearchResult) -> Mapping[str, Any] | None:
    """The chosen spec with its scores on both parts; None if none was chosen."""
    if search_result.chosen is None or search_result.chosen_later is None:
        return None
    return {
        "first": _score_values(search_result.chosen.scores),
        "later": _score_values(search_result.chosen_later),
        "spec": msgspec.to_builtins(search_result.chosen.spec),
    }


def manifest_text(tuned: TunedAutoscaler) -> str:
    """The recommended manifest as YAML, with the reasons as comments. Raises ValueError if nothing is recommended."""
    if tuned.manifest is None:
        raise ValueError("nothing is recommended")
    lines = [verdict(tuned), *(str(change) for change in tuned.changes), *tuned.effects]
    comments = "".join(f"# {line}\n" for line in lines)
    manifest_yaml: str = yaml.safe_dump(dict(tuned.manifest), sort_keys=False)
    return comments + manifest_yaml


def measures_of(goals: Goals) -> Sequence[str]:
    """The measures of the goals first, then the usual ones."""
    return tuple(dict.fromkeys([*goals.minimize, *(limit.measure for limit in goals.limits), *USUAL_MEASURES]))


def _score_values(candidate_scores: Scores) -> Mapping[str, float]:
    return {measure: round(scores.score_value(candidate_scores, measure), 4) for measure in MEASURES}


def _score_texts(candidate_scores: Scores, measures: Sequence[str]) -> Sequence[str]:
    return [scores.score_text(candidate_scores, measure) for measure in measures]


def _front_lines(tuned: TunedAutoscaler, measures: Sequence[str]) -> Iterator[str]:
    """Lines about the Pareto front of several minimized measures, FRONT_SHOWN_MAX candidates of it at most."""
    front = tuned.result.front
    if len(tuned.goals.minimize) < 2 or len(front) < 2:
        return
    step = math.ceil(len(front) / FRONT_SHOWN_MAX)
    shown_candidates = front[::step]
    yield from (
        "",
        f"No candidate is better in all of {', '.join(tuned.goals.minimize)} (first part, {len(front)} of them):",
    )
    yield from _aligned(
        [
            ["", *measures],
            *(["", *_score_texts(shown_candidate.scores, measures)] for shown_candidate in shown_candidates),
        ]
    )


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows as lines: names aligned to the left, figures to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        name = row[0].ljust(widths[0])
        yield "  ".join([name, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]).rstrip()


def effects(chosen: Scores, without: Mapping[str, Scores], goals: Goals) -> tuple[str, ...]:
    """The sentences on what each group of changes does.

    Args:
        chosen: the scores of the chosen spec on the first part.
        without: for each group of changes the scores of the chosen spec without it.
        goals: their measures come first.
    """
    goal_measures = [*goals.minimize, *(limit.measure for limit in goals.limits)]
    measures = recommendation.all_measures(goal_measures)[:EFFECT_MEASURES_MAX]
    return tuple(
        [recommendation.effect(group, chosen, scores_without, measures) for group, scores_without in without.items()]
    )
