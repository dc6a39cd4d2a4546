"""The series of Prometheus, without values: names with the names of their labels.

`adapter.prometheus` makes them from responses of /api/v1/series; a RuleNaming derives metrics from them.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

NAME_LABEL = "__name__"


class SeriesKind(NamedTuple):
    """A kind of series: all series of one name that have labels of the same names."""

    name: str
    labels: frozenset[str]


def distinct(found: Iterable[Mapping[str, str]]) -> list[SeriesKind]:
    """The kinds of series among labels, in the order of the last series of each."""
    kinds: dict[SeriesKind, None] = {}
    for labels in found:
        kind = SeriesKind(labels.get(NAME_LABEL, ""), frozenset(labels) - {NAME_LABEL})
        kinds.pop(kind, None)
        kinds[kind] = None
    return list(kinds)
