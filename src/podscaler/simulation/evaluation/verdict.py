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
"""The number of equal parts of the time whose differences give the standard error; a rest of syncs is in none."""

_NOISE_ERRORS = 2
"""A difference of at most this many standard errors is noise."""

_NOISE_RATIO = 0.01
"""A difference of at most this share of the present value is noise."""


class Difference(msgspec.Struct, frozen=True):
    """A measure of the present spec and of a candidate; less is better.

    Attributes:
        is_noise: whether the difference is within the noise, and does not count.
    """

    present: float
    candidate: float
    is_noise: bool

    @property
    def sign(self) -> int:
        """-1: the candidate is better, 1: it is worse, 0: neither."""
        if self.is_noise:
            return 0
        return 1 if self.candidate > self.present else -1

    @property
    def ratio(self) -> float:
        """The candidate's value divided by the present one; 1 for noise, infinity if the present value is 0."""
        if self.is_noise:
            return 1.0
        return self.candidate / self.present if self.present else math.inf


class Differences(msgspec.Struct, frozen=True):
    """The two differences of one candidate.

    Attributes:
        name: of the candidate.
        supplied: in pod-hours.
        missing: in needed pods that were not ready.
        speedup: the elastic speedup against the present spec; 0 if it is undefined.
    """

    name: str
    supplied: Difference
    missing: Difference
    speedup: float


def sentence(comparison: CandidateComparison) -> str:
    """The sentence; candidates that are not attainable, such as hindsight, are left out."""
    present_result, *other_results = comparison.results
    differences = [
        _differences(comparison, present_result, other_result)
        for other_result in other_results
        if other_result.is_attainable
    ]
    if not differences:
        return "There is no candidate besides the present spec."
    better_differences = [
        difference for difference in differences if min(_signs(difference)) < 0 and max(_signs(difference)) <= 0
    ]
    if better_differences:
        best_difference = min(better_differences, key=lambda difference: (_cost_ratio(difference), -difference.speedup))
        return f"{best_difference.name} is better than the present spec: {_describe_both(best_difference)}."
    mixed_differences = [
        difference for difference in differences if min(_signs(difference)) < 0 < max(_signs(difference))
    ]
    if mixed_differences:
        best_difference = min(
            mixed_differences,
            key=lambda difference: (-difference.speedup, difference.missing.candidate, _cost_ratio(difference)),
        )
        description = _describe_both(best_difference)
        return (
            "No candidate is better in both measures; compared to the present spec, "
            f"{best_difference.name} has {description}."
        )
    if all(max(_signs(difference)) > 0 for difference in differences):
        return "No candidate is better than the present spec: each has more pod-hours or more missing pods."
    return "No candidate is better than the present spec: the differences are within the noise of this load."


def _signs(differences: Differences) -> tuple[int, int]:
    """The signs of both measures: -1 where the candidate is better, 1 where it is worse."""
    return differences.supplied.sign, differences.missing.sign


def _cost_ratio(differences: Differences) -> float:
    """The sum of both measures' ratios, so that the greatest gain comes first."""
    return differences.missing.ratio + differences.supplied.ratio


def _differences(
    comparison: CandidateComparison, present_result: CandidateResult, other: CandidateResult
) -> Differences:
    """The differences of a candidate from the present spec; the noise of pod-hours is that of the ready pods."""
    needed = comparison.needed
    supplied = _difference(present_result.run.ready, other.run.ready)
    supplied = msgspec.structs.replace(supplied, present=present_result.pod_hours, candidate=other.pod_hours)
    missing_difference = _difference(
        _missing_pods(needed, present_result.run.ready), _missing_pods(needed, other.run.ready)
    )
    return Differences(other.name, supplied, missing_difference, other.speedup or 0.0)


def _missing_pods(needed: Sequence[int], ready: Sequence[int]) -> list[int]:
    return [max(need - supply, 0) for need, supply in zip(needed, ready, strict=True)]


def _difference(present_values: Sequence[int], candidate_values: Sequence[int]) -> Difference:
    """The difference of the sums of two equally long series of pods, one element for each sync."""
    present_sum, candidate_sum = sum(present_values), sum(candidate_values)
    changes = [
        later - earlier for earlier, later in zip(_part_sums(present_values), _part_sums(candidate_values), strict=True)
    ]
    error = statistics.stdev(changes) * math.sqrt(len(changes)) if len(changes) > 1 else 0.0  # of the sum of all parts
    is_noise = abs(candidate_sum - present_sum) <= max(_NOISE_ERRORS * error, _NOISE_RATIO * present_sum)
    return Difference(present_sum, candidate_sum, is_noise)


def _part_sums(values: Sequence[int]) -> list[float]:
    """The sums of PARTS equal parts, without a rest of values at the end; the values themselves if there are fewer."""
    size = max(len(values) // PARTS, 1)
    return [math.fsum(values[begin : begin + size]) for begin in range(0, size * min(PARTS, len(values)), size)]


def _describe_both(differences: Differences) -> str:
    phrases = [_describe(differences.supplied, "pod-hours"), _describe(differences.missing, "missing pods")]
    return " and ".join(phrases)


def _describe(difference: Difference, measure: str) -> str:
    """A measure in words, such as `12% fewer pod-hours`."""
    if difference.is_noise:
        return f"equally many {measure}"
    if not difference.candidate:
        return f"no {measure}"
    direction = "more" if difference.candidate > difference.present else "fewer"
    if not difference.present:
        return f"{measure} where there were none"
    return f"{abs(difference.candidate / difference.present - 1):.0%} {direction} {measure}"
