"""Completion indexes of an Indexed Job as text, as in `status.completedIndexes` and in success policies.

`1,3-5,7` stands for {1, 3, 4, 5, 7}. `job_view`, `failure_policy` and `pod_tracking` call it.

Source: batch/v1 JobStatus.
"""

from collections.abc import Iterable


def parse_indexes(indexes_text: str, completions: int) -> frozenset[int]:
    """The indexes below `completions` that `indexes_text` (as `1,3-5`) names; intervals of other text are ignored."""
    indexes: set[int] = set()
    for interval in filter(None, indexes_text.split(",")):
        low_text, _, high_text = interval.partition("-")
        try:
            low, high = int(low_text), int(high_text or low_text)
        except ValueError:
            continue
        indexes.update(range(low, min(high, completions - 1) + 1))
    return frozenset(indexes)


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
