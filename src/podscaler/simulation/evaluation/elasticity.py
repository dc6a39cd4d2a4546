"""Computes the SPEC Research Group's elasticity metrics over the pods that were needed and those that were supplied.

Pure functions over samples at equal distances: element t of `needed` is d_t, element t of `supplied` is s_t. Accuracy
is normalised by the demand (in pods per needed pod), not in absolute resource units as in early BUNGEE papers.

    needed    2 2 4 4       theta_U = 100/4 * (0 + 0 + 2/4 + 0) = 12.5     tau_U = 100/4 * 1 = 25
    supplied  2 3 2 4       theta_O = 100/4 * (0 + 1/2 + 0 + 0) = 12.5     tau_O = 100/4 * 1 = 25

A sample with d_t = 0 has no normalised accuracy: it is left out of both thetas, and counted as undefined.

Called by `comparison`; `podscaler.simulation.batch` and `podscaler.simulation.fleet.candidate_rows` compute the same
from sums. A new metric: a field of Elasticity, and its value there, too.

Source: docs/spec/scenarios.md (How well an autoscaler follows demand); SPEC-RG-2016-01, Ready for Rain?;
A. Ilyushkin et al., ICPE 2017.
"""

import itertools
import math
from collections.abc import Sequence

import msgspec


class Elasticity(msgspec.Struct, frozen=True, kw_only=True):
    """How well a supply followed a demand; 0 is perfect for every metric.

    Attributes:
        under_accuracy_pct: theta_U, the missing pods in percent of the needed ones, on average over time; None: no
            sample needed a pod.
        over_accuracy_pct: theta_O, likewise the surplus pods.
        under_timeshare_pct: tau_U, the share of time with missing pods.
        over_timeshare_pct: tau_O, likewise with surplus pods.
        instability_pct: the share of time in which supply and demand changed in different directions; None if there is
            only one sample.
        jitter: changes of the supply minus changes of the demand, for each sample; above 0 the supply oscillates, below
            0 it is inelastic.
        samples: T, the number of samples.
        undefined_samples: those without demand, which have no normalised accuracy.
    """

    under_accuracy_pct: float | None
    over_accuracy_pct: float | None
    under_timeshare_pct: float
    over_timeshare_pct: float
    instability_pct: float | None
    jitter: float
    samples: int
    undefined_samples: int = 0


def elasticity(needed: Sequence[int], supplied: Sequence[int]) -> Elasticity:
    """The metrics of a supply.

    Args:
        needed, supplied: pods at equal distances in time, equally many, at least one.

    Raises ValueError for sequences that are empty or of different lengths, and for negative counts.
    """
    samples = len(needed)
    if not samples or samples != len(supplied):
        raise ValueError(
            f"the metrics compare equally many samples, at least one; there are {samples} needed and "
            f"{len(supplied)} supplied"
        )
    if min(needed) < 0 or min(supplied) < 0:
        raise ValueError("a number of pods must not be negative")
    pairs = list(zip(needed, supplied, strict=True))
    return Elasticity(
        under_accuracy_pct=_accuracy_pct([(need, need - supply) for need, supply in pairs]),
        over_accuracy_pct=_accuracy_pct([(need, supply - need) for need, supply in pairs]),
        under_timeshare_pct=100 * sum(need > supply for need, supply in pairs) / samples,
        over_timeshare_pct=100 * sum(supply > need for need, supply in pairs) / samples,
        instability_pct=_instability_pct(needed, supplied),
        jitter=(_change_count(supplied) - _change_count(needed)) / samples,
        samples=samples,
        undefined_samples=sum(not need for need in needed),
    )


def _accuracy_pct(deviations: Sequence[tuple[int, int]]) -> float | None:
    """100/T times the sum of the positive deviations, each divided by the need; None if nothing was ever needed."""
    shares = [max(deviation, 0) / need for need, deviation in deviations if need]
    return 100 * math.fsum(shares) / len(shares) if shares else None


def _instability_pct(needed: Sequence[int], supplied: Sequence[int]) -> float | None:
    """The share of the changes in which demand and supply have different signs; None for a single sample."""
    sign_pairs = list(zip(_change_signs(needed), _change_signs(supplied), strict=True))
    if not sign_pairs:
        return None
    return 100 * sum(demand != supply for demand, supply in sign_pairs) / len(sign_pairs)


def _change_signs(counts: Sequence[int]) -> list[int]:
    """The sign of each change from one sample to the next."""
    return [(later > earlier) - (later < earlier) for earlier, later in itertools.pairwise(counts)]


def _change_count(counts: Sequence[int]) -> int:
    return sum(later != earlier for earlier, later in itertools.pairwise(counts))


def elastic_speedup(baseline: Elasticity, candidate: Elasticity) -> float | None:
    """The geometric mean of the four ratios baseline / candidate of accuracies and timeshares; above 1 is a gain.

    None if it says nothing, since a metric of either is 0 or undefined.
    """
    product = 1.0
    for baseline_metric, candidate_metric in zip(
        _accuracies_and_timeshares(baseline), _accuracies_and_timeshares(candidate), strict=True
    ):
        if not baseline_metric or not candidate_metric:
            return None
        product *= baseline_metric / candidate_metric
    return float(product**0.25)


def _accuracies_and_timeshares(metrics: Elasticity) -> tuple[float | None, ...]:
    """theta_U, theta_O, tau_U and tau_O, in this order."""
    return (
        metrics.under_accuracy_pct,
        metrics.over_accuracy_pct,
        metrics.under_timeshare_pct,
        metrics.over_timeshare_pct,
    )


def deviation(metrics: Elasticity, order: int = 2) -> float | None:
    """The auto-scaling deviation: the Minkowski distance of (thetas, taus, instability) from 0, in percent.

    Args:
        order: of the distance, 1 or more; 2 is the Euclidean distance.

    None: one of the five is undefined. Raises ValueError for an order below 1. No command shows it.
    """
    if order < 1:
        raise ValueError("the order of a Minkowski distance is 1 or more")
    metric_values = (*_accuracies_and_timeshares(metrics), metrics.instability_pct)
    sum_of_powers = 0.0
    for metric_value in metric_values:
        if metric_value is None:
            return None
        sum_of_powers += float(metric_value**order)
    return float(sum_of_powers ** (1 / order))
