"""Defines the measures by which candidates are scored, and formats each.

`goals` names measures, and `scoring` computes them. A new measure: an entry of MEASURES, an attribute of Scores, and
its value in `scoring`.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """The measures of one candidate on one part of a load; less is better for all of them.

    Attributes:
        pod_hours: the sum of all pods' lifetimes, in hours.
        under_provisioned_pct: share of the time with fewer ready pods than needed, in percent.
        under_amount_pct: how many of the needed pods are missing on average, in percent.
        over_provisioned_pct, over_amount_pct: likewise with more ready pods than needed.
        slo_missed_pct: share of the work that arrived before syncs at which the mean response time was above the SLO or
            no pod was ready, in percent.
        lost_pct: share of the work that was lost, in percent.
        scale_changes: how often the replicas changed.
    """

    pod_hours: float
    under_provisioned_pct: float
    under_amount_pct: float
    over_provisioned_pct: float
    over_amount_pct: float
    slo_missed_pct: float
    lost_pct: float
    scale_changes: float


class Measure(NamedTuple):
    """A measure: its attribute of Scores, its unit in texts (`%`, `h` or none), and its meaning."""

    attribute: str
    unit: str
    meaning: str


MEASURES: Mapping[str, Measure] = {
    "pod-hours": Measure("pod_hours", "h", "pods times hours"),
    "under-provisioned": Measure("under_provisioned_pct", "%", "time with too few ready pods"),
    "under-amount": Measure("under_amount_pct", "%", "missing pods, of those needed"),
    "over-provisioned": Measure("over_provisioned_pct", "%", "time with more ready pods than needed"),
    "over-amount": Measure("over_amount_pct", "%", "surplus pods, of those needed"),
    "slo-missed": Measure("slo_missed_pct", "%", "requests that were too slow or lost"),
    "lost": Measure("lost_pct", "%", "work that was lost"),
    "scale-changes": Measure("scale_changes", "", "changes of the replicas"),
}


def score_value(scores: Scores, measure: str) -> float:
    """The value of a measure by its name in goals."""
    number: float = getattr(scores, MEASURES[measure].attribute)
    return number


def score_text(scores: Scores, measure: str) -> str:
    """The value with its unit, such as `0.42 %`."""
    unit = MEASURES[measure].unit
    return f"{score_value(scores, measure):,.2f} {unit}".rstrip() if unit else f"{score_value(scores, measure):,.0f}"
