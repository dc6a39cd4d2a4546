"""The index of all series by namespace, described kind and metric name.

There are two: `config_maps` fills one, `scraped.scraper` the other; `lookup` and `apis` read both. The cost of an
update is proportional to the series of its owner, that of a query to the series that it returns.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from podscaler.controlplane.metrics.custom.series import Series

Owner = tuple[str, str]
"""Namespace and name of the ConfigMap or scraped pod that the series come from."""

Listed = tuple[str, str]
"""A metric in the discovery: the `Resource.key` of the described kind (`""` for external metrics), and its name."""


class MetricIndex:
    """Series by namespace, described kind and metric name. `generation` increases whenever `listed` changes."""

    def __init__(self) -> None:
        self.generation = 0
        self._owned: dict[Owner, Sequence[Series]] = {}
        self._found: dict[tuple[str, Listed], dict[str, list[Series]]] = {}
        self._listed: Counter[Listed] = Counter()

    @property
    def owners(self) -> Iterable[Owner]:
        """The owners that have series."""
        return tuple(self._owned)

    @property
    def listed(self) -> Sequence[Listed]:
        """The metrics of all namespaces, sorted."""
        return sorted(self._listed)

    def put(self, owner: Owner, series: Sequence[Series]) -> None:
        """Replace all series of an owner; an empty sequence removes it."""
        touched = {_listed(each) for each in (*self._owned.get(owner, ()), *series)}
        before = touched & self._listed.keys()
        self._remove(owner)
        if series:
            self._add(owner, series)
        if touched & self._listed.keys() != before:
            self.generation += 1

    def find(self, namespace: str, subject: str, metric: str) -> Sequence[Series]:
        """The series of a metric by the owner's name, then in the order of `put`; empty for an unknown metric."""
        owned = self._found.get((namespace, (subject, metric)), {})
        return [each for name in sorted(owned) for each in owned[name]]

    def _add(self, owner: Owner, series: Sequence[Series]) -> None:
        namespace, name = owner
        self._owned[owner] = series
        for each in series:
            listed = _listed(each)
            self._found.setdefault((namespace, listed), {}).setdefault(name, []).append(each)
            self._listed[listed] += 1

    def _remove(self, owner: Owner) -> None:
        namespace, name = owner
        for each in self._owned.pop(owner, ()):
            listed = _listed(each)
            owners = self._found.get((namespace, listed), {})
            owners.pop(name, None)
            if not owners:
                self._found.pop((namespace, listed), None)
            self._listed[listed] -= 1
            if not self._listed[listed]:
                del self._listed[listed]


def _listed(series: Series) -> Listed:
    return series.subject.key, series.metric
