"""All series by what queries ask for: namespace, kind of what is described, and the metric's name.

Filled by `config_maps`, asked by `lookup` and `apis`. A change costs as much as the ConfigMap has entries; a query
finds its series without looking at others.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from podscaler.controlplane.metrics.custom.series import Series

Owner = tuple[str, str]
"""Namespace and name of a ConfigMap."""

Listed = tuple[str, str]
"""What discovery lists: the `Resource.key` of what is described (`""` for external metrics), and the metric's name."""


class MetricIndex:
    """See the module. `generation` rises whenever `listed` changes."""

    def __init__(self) -> None:
        self.generation = 0
        self._owned: dict[Owner, Sequence[Series]] = {}
        self._found: dict[tuple[str, Listed], dict[str, list[Series]]] = {}
        self._listed: Counter[Listed] = Counter()

    @property
    def owners(self) -> Iterable[Owner]:
        """The ConfigMaps that have series."""
        return tuple(self._owned)

    @property
    def listed(self) -> Sequence[Listed]:
        """Every metric of any namespace, in order."""
        return sorted(self._listed)

    def put(self, owner: Owner, series: Sequence[Series]) -> None:
        """These are now the series of a ConfigMap, instead of those that it had."""
        touched = {_listed(each) for each in (*self._owned.get(owner, ()), *series)}
        before = touched & self._listed.keys()
        self._remove(owner)
        if series:
            self._add(owner, series)
        if touched & self._listed.keys() != before:
            self.generation += 1

    def find(self, namespace: str, subject: str, metric: str) -> Sequence[Series]:
        """The series of a metric, by their ConfigMaps' names, then as they stand there; empty where it is unknown."""
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
