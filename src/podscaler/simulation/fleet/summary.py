"""Sums up the files of results: one row for each candidate over all autoscalers of a fleet.

Called by `podscaler backtest --fleet`. The files are read lazily, and in the streaming engine of polars.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import polars

from podscaler.simulation.fleet import result_files


class CandidateSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate over all autoscalers that could be judged.

    Attributes:
        autoscalers: the number of autoscalers.
        pod_hours, needed_pod_hours, scale_changes: sums.
        under_timeshare_pct, under_accuracy_pct, over_accuracy_pct: means.
        worst_under_timeshare_pct: the 95th percentile.
        better, worse: autoscalers with fewer pod-hours and no more missing pods (theta_U) than under the present spec,
            by more than a hundredth; and those with more missing pods and no fewer pod-hours.
    """

    candidate: str
    autoscalers: int
    pod_hours: float
    needed_pod_hours: float
    under_timeshare_pct: float
    worst_under_timeshare_pct: float
    under_accuracy_pct: float
    over_accuracy_pct: float
    scale_changes: int
    better: int
    worse: int


class FleetSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a fleet.

    Attributes:
        candidates: in the order of their pod-hours, the present spec first.
        errors: how many autoscalers could not be judged, by the reason; the most frequent first, ten at most.
        failed: how many autoscalers could not be judged.
    """

    candidates: tuple[CandidateSummary, ...]
    errors: tuple[tuple[str, int], ...]
    failed: int


_MARGIN = 0.01
"""The share by which a measure must differ to count as better or worse."""

_ERRORS_MAX = 10


def summarize(folder: Path, names: Iterable[str], present_name: str) -> FleetSummary:
    """The summary of the files of the partitions with these names, which exist.

    Args:
        folder: the output folder of the run.
        present_name: the name of the first candidate.
    """
    paths = [result_files.path_of(folder, name) for name in names]
    rows = polars.scan_parquet(paths)
    column = polars.col
    judged_rows = rows.filter(column("error") == "")
    present_rows = judged_rows.filter(column("candidate") == present_name).select(
        "autoscaler", present_hours=column("pod_hours"), present_under=column("under_accuracy_pct")
    )
    pod_hours, under_accuracy = column("pod_hours"), column("under_accuracy_pct")
    has_fewer_hours = pod_hours < column("present_hours") * (1 - _MARGIN)
    has_more_missing = under_accuracy > column("present_under") * (1 + _MARGIN)
    candidate_rows = (
        judged_rows.join(present_rows, on="autoscaler")
        .group_by("candidate")
        .agg(
            autoscalers=polars.len(),
            pod_hours=pod_hours.sum(),
            needed_pod_hours=column("needed_pod_hours").sum(),
            under_timeshare_pct=column("under_timeshare_pct").mean(),
            worst_under_timeshare_pct=column("under_timeshare_pct").quantile(0.95),
            under_accuracy_pct=under_accuracy.mean(),
            over_accuracy_pct=column("over_accuracy_pct").mean(),
            scale_changes=column("scale_changes").sum(),
            better=(has_fewer_hours & ~has_more_missing).sum(),
            worse=(~has_fewer_hours & has_more_missing).sum(),
        )
        .sort(column("candidate") != present_name, "pod_hours", "candidate")
        .collect(engine="streaming")
    )
    failed_rows = rows.filter(column("error") != "")
    error_counts = (
        failed_rows.group_by("error").len().sort("len", "error", descending=[True, False]).collect(engine="streaming")
    )
    return FleetSummary(
        candidates=tuple([CandidateSummary(**row) for row in candidate_rows.to_dicts()]),
        errors=tuple(error_counts.head(_ERRORS_MAX).rows()),
        failed=int(error_counts["len"].sum()),
    )
