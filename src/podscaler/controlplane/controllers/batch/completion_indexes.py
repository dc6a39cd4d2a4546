"""Completion indexes of an Indexed Job as text, as in `status.completedIndexes` and in success policies.

`1,3-5,7` stands for {1, 3, 4, 5, 7}. `job_view`, `failure_policy` and `pod_tracking` call it.

Source: batch/v1 JobStatus.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain


def parse_intervals(indexes_text: str, completions: int) -> list[range]:
    """The intervals of indexes below `completions` that `indexes_text` (as `1,3-5`) names, in its order.

    Other text between commas is ignored. A success policy may name millions of indexes: they are not listed one by one.
    """
    intervals: list[range] = []
    for interval in filter(None, indexes_text.split(",")):
        low_text, _, high_text = interval.partition("-")
        try:
            low, high = int(low_text), int(high_text or low_text)
        except ValueError:
            continue
        intervals.append(range(low, min(high, completions - 1) + 1))
    return intervals


def count_within(indexes: Iterable[int], intervals: Sequence[range]) -> int:
    """How many indexes are in `intervals`, of which there is at least one; validation keeps them ordered and apart."""
    starts = [interval.start for interval in intervals]
    return sum(index in intervals[bisect_right(starts, index) - 1] for index in indexes if starts[0] <= index)


def parse_indexes(indexes_text: str, completions: int) -> frozenset[int]:
    """The indexes below `completions` that `indexes_text` names; for the status of a Job: each index has had a pod."""
    return frozenset(chain.from_iterable(parse_intervals(indexes_text, completions)))


def format_indexes(indexes: Iterable[int]) -> str:
    """The text of a set of indexes: neighbours as `1,2`, three and more in a row as `1-3`; empty without any."""
    runs: list[list[int]] = []  # the first and the last index of each run
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(_format_run(first, last) for first, last in runs)


def _format_run(first: int, last: int) -> str:
    """The text of the indexes `first` to `last`, both included."""
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
