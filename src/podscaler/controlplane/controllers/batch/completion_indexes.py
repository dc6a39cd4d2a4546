"""Completion indexes of an Indexed Job as text, as in `status.completedIndexes` and in success policies.

`1,3-5,7` stands for {1, 3, 4, 5, 7}. The controller and its policies call it. Source: batch/v1 JobStatus.
"""

from collections.abc import Iterable


def parse_indexes(text: str, completions: int) -> frozenset[int]:
    """The indexes below `completions` that a text names; intervals that are not numbers are ignored."""
    indexes: set[int] = set()
    for interval in filter(None, text.split(",")):
        first, _, last = interval.partition("-")
        try:
            low, high = int(first), int(last or first)
        except ValueError:
            continue
        indexes.update(range(low, min(high, completions - 1) + 1))
    return frozenset(indexes)


def text(indexes: Iterable[int]) -> str:
    """The text of a set of indexes: neighbours as `1,2`, three and more in a row as `1-3`; empty without any."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(_run_text(first, last) for first, last in runs)


def _run_text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
