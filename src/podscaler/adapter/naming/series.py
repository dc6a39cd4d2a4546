"""Defines a kind of Prometheus' series: the name of series together with the names of their labels, without values.

`providers.metric_relisting` makes them from responses of /api/v1/series; a RuleNaming derives metrics from them. The
series `up{pod="a"}` and `up{pod="b"}` are of one kind: `up` with the label `pod`.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

NAME_LABEL = "__name__"


class SeriesKind(NamedTuple):
    """A kind of series: all series of one name that have labels of the same names."""

    name: str
    labels: frozenset[str]


def distinct(series: Iterable[Mapping[str, str]]) -> list[SeriesKind]:
    """The kinds of series (each by its labels), in the order of the last series of each kind.

    The order decides where several kinds give one metric: then the last one counts (`providers.metric_registry`).
    """
    kinds: dict[SeriesKind, None] = {}
    for labels in series:
        kind = SeriesKind(labels.get(NAME_LABEL, ""), frozenset(labels) - {NAME_LABEL})
        kinds.pop(kind, None)
        kinds[kind] = None
    return list(kinds)
