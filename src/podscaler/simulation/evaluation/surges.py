"""Finds surges of a demand, and how long a supply took to follow each.

A surge begins where the needed pods are at least 1.5 times the least of the 5 minutes before. The reaction ends at the
first sample from then on at which the supply is at least what is needed then. A surge ends the search window: the next
one is measured against what was needed since it began.

Called by `podscaler.simulation.evaluation.comparison`.
"""

import statistics
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

GROWTH = 1.5
WINDOW_MS = 300_000


class Reaction(msgspec.Struct, frozen=True):
    """A surge, and the reaction to it.

    Attributes:
        at_ms: when the surge began.
        before, needed: the needed pods before it and when it began.
        reaction_ms: until the supply sufficed, 0 if it did at once; None if it did not before the end.
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


def reactions(at_ms: Sequence[int], needed: Sequence[int], supplied: Sequence[int]) -> tuple[Reaction, ...]:
    """The reaction to each surge, in order.

    Args:
        at_ms: the increasing instants of the samples; the others have one element for each.
    """
    return tuple(
        [
            Reaction(at_ms[index], before, needed[index], _reaction_ms(index, at_ms, needed, supplied))
            for index, before in _surges(at_ms, needed)
        ]
    )


def _surges(at_ms: Sequence[int], needed: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The index of each surge's first sample, and the least need before it."""
    least: deque[tuple[int, int]] = deque()  # (instant, need) with rising needs: the first is the least of the window
    for index, need in enumerate(needed):
        while least and least[0][0] < at_ms[index] - WINDOW_MS:
            least.popleft()
        if least and need >= GROWTH * least[0][1] and need > least[0][1]:
            yield index, least[0][1]
            least.clear()
        while least and least[-1][1] >= need:
            least.pop()
        least.append((at_ms[index], need))


def _reaction_ms(begun: int, at_ms: Sequence[int], needed: Sequence[int], supplied: Sequence[int]) -> int | None:
    for index in range(begun, len(needed)):
        if supplied[index] >= needed[index]:
            return at_ms[index] - at_ms[begun]
    return None


def summary(surge_reactions: Sequence[Reaction], end_ms: int) -> ReactionSummary:
    """The median and the worst reaction, where the samples end at `end_ms`."""
    if not surge_reactions:
        return ReactionSummary(0, None, None)
    durations = [
        end_ms - surge_reaction.at_ms if surge_reaction.reaction_ms is None else surge_reaction.reaction_ms
        for surge_reaction in surge_reactions
    ]
    unfinished = sum(surge_reaction.reaction_ms is None for surge_reaction in surge_reactions)
    return ReactionSummary(len(surge_reactions), statistics.median(durations), max(durations), unfinished)
