"""Compares a candidate with the present spec on consecutive parts of a load (folds), to separate gains from noise.

A sum over all of a load may hang on one surge of it. The change of a measure is therefore the mean of the differences
of all folds, with its standard error; a search uses `RelativeChange.cautious`, which adds one standard error. On a load
without folds the error is 0.

Called by `search`; `scoring` evaluates the folds. Invariant: the folds of both are the same parts of the same load.

Source: blocked cross-validation, as in C. Bergmeir, J. M. Benítez: On the use of cross-validation for time series
predictor evaluation (2012). Differs: candidates are not fitted to the other folds; the folds only measure how much
the gain varies.
"""

import math
import statistics
from collections.abc import Callable, Sequence

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.simulation.search.scores import MEASURES, Scores, score_value

_LEAST_SCALES = {"%": 0.1, "h": 0.01, "": 1.0}
"""By the unit of a measure: the least value by which a change is divided, so that a share of nearly 0 is not huge."""

SAME = 0.01
"""A change by less than this share does not count, as in `podscaler.simulation.evaluation.verdict`."""


class FoldedScores(msgspec.Struct, frozen=True):
    """The scores of a spec on a part of a load and on its folds.

    Attributes:
        folds: in their order; empty if the part was not divided.
    """

    whole: Scores
    folds: tuple[Scores, ...] = ()


EvaluateFolds = Callable[[Sequence[HorizontalPodAutoscalerSpec]], Sequence[FoldedScores]]
"""The scores of specs on the part that a search sees, in order."""


class RelativeChange(msgspec.Struct, frozen=True):
    """How a measure differs from another spec's, as a share of that one's value; below 0 is better.

    Attributes:
        mean: over the folds.
        error: the standard error of the mean.
    """

    mean: float
    error: float

    @property
    def cautious(self) -> float:
        """The change if the gain is one standard error smaller."""
        return self.mean + self.error


def change(measure: str, candidate: FoldedScores, other: FoldedScores) -> RelativeChange:
    """The change of a measure from `other` to `candidate`."""
    other_values = [score_value(scores, measure) for scores in other.folds or (other.whole,)]
    candidate_values = [score_value(scores, measure) for scores in candidate.folds or (candidate.whole,)]
    differences = [new - old for new, old in zip(candidate_values, other_values, strict=True)]
    scale = max(statistics.fmean(other_values), _LEAST_SCALES[MEASURES[measure].unit])
    error = statistics.stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else 0.0
    return RelativeChange(statistics.fmean(differences) / scale, error / scale)


def is_worse(measure: str, candidate: Scores, other: Scores) -> bool:
    """Whether a measure is larger by more than the share SAME, on a part without folds."""
    return change(measure, FoldedScores(candidate), FoldedScores(other)).mean > SAME
