"""Parses the goals of a search: limits that a spec must keep (`under-provisioned<1%`), and measures to minimize.

Called by `podscaler tune` with the values of `--slo` and `--minimize`.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches

import msgspec

from podscaler.base.errors import UsageError
from podscaler.simulation.search.scores import MEASURES, Scores, score_value

_LIMIT = re.compile(r"(?P<measure>[a-z-]+)\s*<=?\s*(?P<number>[0-9]+(\.[0-9]+)?)\s*(?P<unit>%|h)?")
"""Matches `under-provisioned<1%`, `pod-hours <= 120 h`, `scale-changes<40`."""

DEFAULT_OBJECTIVES = ("pod-hours", "under-amount")


class Limit(msgspec.Struct, frozen=True):
    """The highest allowed value of a measure."""

    measure: str
    highest: float

    def excess(self, scores: Scores) -> float:
        """By how much the scores exceed the limit; 0 or less: they keep it, since a value equal to it does."""
        return score_value(scores, self.measure) - self.highest

    def __str__(self) -> str:
        return f"{self.measure}<{self.highest:g}{MEASURES[self.measure].unit}"


class Goals(msgspec.Struct, frozen=True):
    """What a search is for.

    Attributes:
        limits: what a recommended spec keeps.
        minimize: the names of the measures to make small, at least one.
        not_worse: the names of measures in which a recommended spec is not worse than the present one.
    """

    limits: tuple[Limit, ...]
    minimize: tuple[str, ...]
    not_worse: tuple[str, ...] = ()

    def are_met(self, scores: Scores) -> bool:
        """Whether the scores keep all limits."""
        return all(limit.excess(scores) <= 0 for limit in self.limits)

    def objectives(self, scores: Scores) -> tuple[float, ...]:
        """The values to make small, in order."""
        return tuple([score_value(scores, measure) for measure in self.minimize])


def parse(limits: Sequence[str], minimize: Sequence[str], *, has_slo: bool = False) -> Goals:
    """The goals of texts such as `under-provisioned<1%` and `pod-hours`. Raises UsageError naming the text.

    Without a limit, a spec must not be worse than the present one in what is minimized, in missing pods and in missed
    response times: the fewest pods alone would be one pod.

    Args:
        has_slo: whether there is a response time to meet.
    """
    minimized_measures = tuple(
        [_check_measure(goal_text, goal_text) for goal_text in dict.fromkeys(minimize or DEFAULT_OBJECTIVES)]
    )
    if limits:
        return Goals(tuple([_parse_limit(goal_text) for goal_text in limits]), minimized_measures)
    measures_not_worse = (*minimized_measures, "under-amount", *(("slo-missed",) if has_slo else ()))
    return Goals((), minimized_measures, tuple(dict.fromkeys(measures_not_worse)))


def _parse_limit(limit_text: str) -> Limit:
    """The limit of a text such as `under-provisioned<1%`. Raises UsageError."""
    limit_match = _LIMIT.fullmatch(limit_text.strip())
    if limit_match is None:
        raise UsageError(f'"{limit_text}" is not a limit such as under-provisioned<1% or scale-changes<40')
    measure = _check_measure(limit_match["measure"], limit_text)
    if limit_match["unit"] and limit_match["unit"] != MEASURES[measure].unit:
        raise UsageError(
            f'"{limit_text}": {measure} is in {MEASURES[measure].unit or "whole numbers"}, not in {limit_match["unit"]}'
        )
    return Limit(measure, float(limit_match["number"]))


def _check_measure(name: str, goal_text: str) -> str:
    """The name itself. Raises UsageError, which names the text of the goal, if there is no such measure."""
    if name in MEASURES:
        return name
    close_names = get_close_matches(name, MEASURES, n=1)
    hint = f"; did you mean {close_names[0]}?" if close_names else ""
    raise UsageError(f'"{goal_text}": there is no measure {name}{hint} (there are {", ".join(MEASURES)})')
