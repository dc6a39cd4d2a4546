"""Prints the result of a search: scores on both parts, the changes with their effects, and the manifest.

Called by `podscaler tune`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from podscaler.simulation.search import recommendation, scores
from podscaler.simulation.search.goals import Goals
from podscaler.simulation.search.recommendation import FieldChange
from podscaler.simulation.search.scores import MEASURES, Scores
from podscaler.simulation.search.search import SearchResult


class TunedAutoscaler(msgspec.Struct, frozen=True, kw_only=True):
    """What is printed.

    Attributes:
        name: `namespace/name`.
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
    result, measures = tuned.result, measures_of(tuned.goals)
    interruption = "; the search was interrupted" if result.is_interrupted else ""
    yield f"{tuned.name}: {result.trials} candidates tried on the first part of the load{interruption}"
    yield ""
    yield from _aligned(score_rows(tuned, measures))
    yield from _front(tuned, measures)
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
    result = tuned.result
    rows = [["", *measures], ["present, first part", *_texts(result.present, measures)]]
    if result.chosen is not None and result.chosen_later is not None:
        rows.append(["candidate, first part", *_texts(result.chosen.scores, measures)])
        rows.append(["present, later part", *_texts(result.present_later, measures)])
        rows.append(["candidate, later part", *_texts(result.chosen_later, measures)])
    else:
        rows.append(["present, later part", *_texts(result.present_later, measures)])
    return rows


def verdict(tuned: TunedAutoscaler) -> str:
    """One sentence: what is recommended, or why nothing is."""
    result = tuned.result
    if result.refusal:
        return f"No recommendation: {result.refusal}."
    assert result.chosen_later is not None, "a candidate is chosen unless there is a refusal"
    parts = [
        f"{measure} {scores.score_text(result.chosen_later, measure)} instead of "
        f"{scores.score_text(result.present_later, measure)}"
        for measure in tuned.goals.minimize
    ]
    limits = " and ".join(map(str, tuned.goals.limits))
    measures_not_worse = [measure for measure in tuned.goals.not_worse if measure not in tuned.goals.minimize]
    kept_text = (
        f" and keeps {limits}"
        if limits
        else f", and it is not worse in {', '.join(measures_not_worse)}"
        if measures_not_worse
        else ""
    )
    return f"Recommended: on the later part, which the search did not see, it has {', '.join(parts)}{kept_text}."


def as_json(tuned: TunedAutoscaler) -> Mapping[str, Any]:
    """All figures as JSON-ready data."""
    result = tuned.result
    return {
        "autoscaler": tuned.name,
        "goals": {
            "limits": [str(limit) for limit in tuned.goals.limits],
            "minimize": list(tuned.goals.minimize),
            "not_worse": list(tuned.goals.not_worse),
        },
        "trials": result.trials,
        "interrupted": result.is_interrupted,
        "present": {"first": _figures(result.present), "later": _figures(result.present_later)},
        "candidate": None
        if result.chosen is None or result.chosen_later is None
        else {
            "first": _figures(result.chosen.scores),
            "later": _figures(result.chosen_later),
            "spec": msgspec.to_builtins(result.chosen.spec),
        },
        "front": [{"spec": msgspec.to_builtins(each.spec), "first": _figures(each.scores)} for each in result.front],
        "changes": [{"path": change.path, "before": change.before, "after": change.after} for change in tuned.changes],
        "effects": list(tuned.effects),
        "remarks": list(tuned.remarks),
        "recommended": tuned.manifest,
        "verdict": verdict(tuned),
    }


def patch(tuned: TunedAutoscaler) -> str:
    """The manifest as YAML, with the reasons as comments. Raises ValueError if nothing is recommended."""
    if tuned.manifest is None:
        raise ValueError("nothing is recommended")
    lines = [verdict(tuned), *(str(change) for change in tuned.changes), *tuned.effects]
    comments = "".join(f"# {line}\n" for line in lines)
    text: str = yaml.safe_dump(dict(tuned.manifest), sort_keys=False)
    return comments + text


def measures_of(goals: Goals) -> Sequence[str]:
    """The measures of the goals first, then the usual ones."""
    usual = ("pod-hours", "under-provisioned", "over-provisioned", "lost", "scale-changes")
    return tuple(dict.fromkeys([*goals.minimize, *(limit.measure for limit in goals.limits), *usual]))


def _figures(each: Scores) -> Mapping[str, float]:
    return {measure: round(scores.score_value(each, measure), 4) for measure in MEASURES}


def _texts(each: Scores, measures: Sequence[str]) -> Sequence[str]:
    return [scores.score_text(each, measure) for measure in measures]


def _front(tuned: TunedAutoscaler, measures: Sequence[str]) -> Iterator[str]:
    """The front of several objectives, at most ten of it."""
    front = tuned.result.front
    if len(tuned.goals.minimize) < 2 or len(front) < 2:
        return
    step = max(-(-len(front) // 10), 1)
    shown_candidates = front[::step]
    yield from (
        "",
        f"No candidate is better in all of {', '.join(tuned.goals.minimize)} (first part, {len(front)} of them):",
    )
    yield from _aligned(
        [["", *measures], *(["", *_texts(shown_candidate.scores, measures)] for shown_candidate in shown_candidates)]
    )


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first = row[0].ljust(widths[0])
        yield "  ".join([first, *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]).rstrip()


def effects(chosen: Scores, without: Mapping[str, Scores], goals: Goals) -> tuple[str, ...]:
    """The sentences on what each group of changes does.

    Args:
        without: for each group of changes the scores without it.
    """
    measures = recommendation.all_measures([*goals.minimize, *(limit.measure for limit in goals.limits)])[:4]
    return tuple([recommendation.effect(group, chosen, each, measures) for group, each in without.items()])
