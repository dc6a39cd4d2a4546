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
    for interval_text in filter(None, indexes_text.split(",")):
        low_text, _, high_text = interval_text.partition("-")
        try:
            low, high = int(low_text), int(high_text or low_text)
        except ValueError:
            continue
        intervals.append(range(low, min(high, completions - 1) + 1))
    return intervals


def count_within(indexes: Iterable[int], intervals: Sequence[range]) -> int:
    """How many indexes are in `intervals`, which are in order and do not overlap (validation rejects others)."""
    starts = [interval.start for interval in intervals]
    count = 0
    for index in indexes:
        last_started = bisect_right(starts, index) - 1  # the only interval that can have the index; -1: none can
        if last_started >= 0 and index in intervals[last_started]:
            count += 1
    return count


def parse_indexes(indexes_text: str, completions: int) -> frozenset[int]:
    """The indexes below `completions` that `indexes_text`, of a Job's status, names: as many as had a pod."""
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
