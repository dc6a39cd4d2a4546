"""Finds surges of a demand, and measures how long the supply of pods took to follow each.

A surge begins where the needed pods are at least GROWTH times the least of WINDOW_MS before. The reaction ends at the
first sample, from the surge on, whose supply covers that sample's need. A surge ends the search window: the next one is
measured against what was needed since it began.

Called by `podscaler.simulation.evaluation.comparison`.
"""

import statistics
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

GROWTH = 1.5
"""A surge begins where the need is this many times the least need of the window before."""

WINDOW_MS = 300_000
"""The time in which the least need before a surge is searched."""


class Reaction(msgspec.Struct, frozen=True):
    """A surge, and the reaction to it.

    Attributes:
        at_ms: when the surge began.
        before, needed: the least need of the window before it, and the needed pods when it began.
        reaction_ms: the time until the supply sufficed, 0 if it did at once; None if it did not before the end.
    """

    at_ms: int
    before: int
    needed: int
    reaction_ms: int | None


class ReactionSummary(msgspec.Struct, frozen=True):
    """Reactions to several surges; one that did not end counts until the end of the samples.

    Attributes:
        surges: how many there were.
        median_ms, worst_ms: None if there was no surge.
        unfinished: how many did not end before the samples did.
    """

    surges: int
    median_ms: float | None
    worst_ms: int | None
    unfinished: int = 0


class _Need(NamedTuple):
    """The pods that were needed at an instant."""

    at_ms: int
    pods: int


def reactions(at_ms: Sequence[int], needed: Sequence[int], supplied: Sequence[int]) -> tuple[Reaction, ...]:
    """The reaction to each surge, in order.

    Args:
        at_ms: the increasing instants of the samples.
        needed, supplied: pods, with one element for each sample.
    """
    return tuple(
        [
            Reaction(at_ms[index], needed_before, needed[index], _reaction_ms(index, at_ms, needed, supplied))
            for index, needed_before in _find_surges(at_ms, needed)
        ]
    )


def _find_surges(at_ms: Sequence[int], needed: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The index of each surge's first sample, and the least need before it."""
    window_minima: deque[_Need] = deque()  # with rising needs, so that the first one is the least of the window
    for index, needed_pods in enumerate(needed):
        while window_minima and window_minima[0].at_ms < at_ms[index] - WINDOW_MS:
            window_minima.popleft()
        if window_minima:
            least_pods = window_minima[0].pods
            if needed_pods >= GROWTH * least_pods and needed_pods > least_pods:  # 0 is no growth of 0
                yield index, least_pods
                window_minima.clear()
        while window_minima and window_minima[-1].pods >= needed_pods:
            window_minima.pop()
        window_minima.append(_Need(at_ms[index], needed_pods))


def _reaction_ms(surge_index: int, at_ms: Sequence[int], needed: Sequence[int], supplied: Sequence[int]) -> int | None:
    """The time from a surge until the supply is at least what is needed; None if it never is.

    Args:
        surge_index: of the first sample of the surge.
    """
    for index in range(surge_index, len(needed)):
        if supplied[index] >= needed[index]:
            return at_ms[index] - at_ms[surge_index]
    return None


def summary(surge_reactions: Sequence[Reaction], end_ms: int) -> ReactionSummary:
    """The median and the worst reaction, where the last sample is at `end_ms`."""
    if not surge_reactions:
        return ReactionSummary(0, None, None)
    durations = [
        end_ms - surge_reaction.at_ms if surge_reaction.reaction_ms is None else surge_reaction.reaction_ms
        for surge_reaction in surge_reactions
    ]
    unfinished = sum(surge_reaction.reaction_ms is None for surge_reaction in surge_reactions)
    return ReactionSummary(len(surge_reactions), statistics.median(durations), max(durations), unfinished)
