"""Formats one sentence on which candidate is better than the present spec, and by how much.

Two measures decide: pod-hours, and the needed pods that were missing. A difference counts where it is more than
the noise: two standard errors of the differences in ten equal parts of the time, and one hundredth of the value. A
candidate is better where one measure is better and the other is not worse.

Called by `podscaler backtest`.
"""

import math
import statistics
from collections.abc import Sequence

import msgspec

from podscaler.simulation.evaluation.comparison import CandidateComparison, CandidateResult

PARTS = 10
_ERRORS = 2
_LEAST_RATIO = 0.01


class Difference(msgspec.Struct, frozen=True):
    """A measure of the present spec and of a candidate; less is better.

    Attributes:
        is_noise: whether the difference does not count.
    """

    present: float
    candidate: float
    is_noise: bool

    @property
    def sign(self) -> int:
        """-1: the candidate is better, 1: it is worse, 0: neither."""
        return 0 if self.is_noise else (1 if self.candidate > self.present else -1)


class Differences(msgspec.Struct, frozen=True):
    """The two differences of one candidate."""

    name: str
    supplied: Difference
    missing: Difference
    speedup: float


def sentence(comparison: CandidateComparison) -> str:
    """The sentence; hindsight is no candidate for it."""
    present_result, *other_results = comparison.results
    differences = [
        _differences(comparison, present_result, other_result)
        for other_result in other_results
        if other_result.is_attainable
    ]
    if not differences:
        return "There is no candidate besides the present spec."
    better = [difference for difference in differences if min(_signs(difference)) < 0 and max(_signs(difference)) <= 0]
    if better:
        best_difference = min(better, key=lambda difference: (_cost(difference), -difference.speedup))
        return f"{best_difference.name} is better than the present spec: {_words(best_difference)}."
    mixed = [difference for difference in differences if min(_signs(difference)) < 0 < max(_signs(difference))]
    if mixed:
        first = min(
            mixed, key=lambda difference: (-difference.speedup, difference.missing.candidate, _cost(difference))
        )
        return (
            f"No candidate is better in both measures; compared to the present spec, {first.name} has {_words(first)}."
        )
    if all(max(_signs(difference)) > 0 for difference in differences):
        return "No candidate is better than the present spec: each has more pod-hours or more missing pods."
    return "No candidate is better than the present spec: the differences are within the noise of this load."


def _signs(differences: Differences) -> tuple[int, int]:
    return differences.supplied.sign, differences.missing.sign


def _cost(differences: Differences) -> float:
    """The sum of both measures' ratios, so that the greatest gain comes first."""
    return sum(
        1.0 if difference.is_noise else (difference.candidate / difference.present if difference.present else math.inf)
        for difference in (differences.missing, differences.supplied)
    )


def _differences(
    comparison: CandidateComparison, present_result: CandidateResult, other: CandidateResult
) -> Differences:
    needed = comparison.needed
    supplied = _difference(present_result.run.ready, other.run.ready)
    supplied = msgspec.structs.replace(supplied, present=present_result.pod_hours, candidate=other.pod_hours)
    missing_difference = _difference(
        _missing_pods(needed, present_result.run.ready), _missing_pods(needed, other.run.ready)
    )
    return Differences(other.name, supplied, missing_difference, other.speedup or 0.0)


def _missing_pods(needed: Sequence[int], ready: Sequence[int]) -> list[int]:
    return [max(need - supply, 0) for need, supply in zip(needed, ready, strict=True)]


def _difference(present_values: Sequence[int], candidate: Sequence[int]) -> Difference:
    before, after = sum(present_values), sum(candidate)
    changes = [later - earlier for earlier, later in zip(_parts(present_values), _parts(candidate), strict=True)]
    error = statistics.stdev(changes) * math.sqrt(len(changes)) if len(changes) > 1 else 0.0
    is_noise = abs(after - before) <= max(_ERRORS * error, _LEAST_RATIO * before)
    return Difference(before, after, is_noise)


def _parts(values: Sequence[int]) -> list[float]:
    """The sums of ten equal parts, or of all values where there are fewer."""
    size = max(len(values) // PARTS, 1)
    return [math.fsum(values[begin : begin + size]) for begin in range(0, size * min(PARTS, len(values)), size)]


def _words(differences: Differences) -> str:
    parts = [_phrase(differences.supplied, "pod-hours"), _phrase(differences.missing, "missing pods")]
    return " and ".join(parts)


def _phrase(difference: Difference, measure: str) -> str:
    if difference.is_noise:
        return f"equally many {measure}"
    if not difference.candidate:
        return f"no {measure}"
    way = "more" if difference.candidate > difference.present else "fewer"
    if not difference.present:
        return f"{measure} where there were none"
    return f"{abs(difference.candidate / difference.present - 1):.0%} {way} {measure}"
