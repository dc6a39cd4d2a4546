"""The index of all series by namespace, described kind and metric name.

There are two: `config_maps` fills one, `metrics.scraped.scraper` the other; `lookup` and `apis` read both. The cost of
an update is proportional to the series of its owner, that of a query to the series that it returns.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from podscaler.controlplane.metrics.custom.series import Series

Owner = tuple[str, str]
"""Namespace and name of the ConfigMap or scraped pod that the series come from."""

MetricInDiscovery = tuple[str, str]
"""A metric in the discovery: the `Resource.key` of the described kind (`""` for external metrics), and its name."""


class MetricIndex:
    """Series by namespace, described kind and metric name.

    Attributes:
        generation: increases whenever `listed` changes.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._by_owner: dict[Owner, Sequence[Series]] = {}
        # by namespace and metric, then by the owner's name
        self._by_metric: dict[tuple[str, MetricInDiscovery], dict[str, list[Series]]] = {}
        self._series_counts: Counter[MetricInDiscovery] = Counter()

    @property
    def owners(self) -> Iterable[Owner]:
        """The owners that have series."""
        return tuple(self._by_owner)

    @property
    def listed(self) -> Sequence[MetricInDiscovery]:
        """The metrics of all namespaces, sorted."""
        return sorted(self._series_counts)

    def put(self, owner: Owner, series: Sequence[Series]) -> None:
        """Replace all series of an owner; an empty sequence removes it."""
        touched_metrics = {_in_discovery(changed) for changed in (*self._by_owner.get(owner, ()), *series)}
        listed_before = touched_metrics & self._series_counts.keys()
        self._remove_series(owner)
        if series:
            self._add_series(owner, series)
        if touched_metrics & self._series_counts.keys() != listed_before:
            self.generation += 1

    def find(self, namespace: str, kind: str, metric: str) -> Sequence[Series]:
        """The series of a metric, sorted by the owner's name, then in the order of `put`; empty for an unknown metric.

        Args:
            namespace: the namespace of the owners.
            kind: the `Resource.key` of the described kind, such as `pods`; empty for external metrics.
            metric: the metric's name.
        """
        by_owner = self._by_metric.get((namespace, (kind, metric)), {})
        return [series for name in sorted(by_owner) for series in by_owner[name]]

    def _add_series(self, owner: Owner, series: Sequence[Series]) -> None:
        """Add the series of an owner without any."""
        namespace, name = owner
        self._by_owner[owner] = series
        for one_series in series:
            metric = _in_discovery(one_series)
            self._by_metric.setdefault((namespace, metric), {}).setdefault(name, []).append(one_series)
            self._series_counts[metric] += 1

    def _remove_series(self, owner: Owner) -> None:
        """Remove the series of an owner, if it has any."""
        namespace, name = owner
        for one_series in self._by_owner.pop(owner, ()):
            metric = _in_discovery(one_series)
            owners = self._by_metric.get((namespace, metric), {})
            owners.pop(name, None)
            if not owners:
                self._by_metric.pop((namespace, metric), None)
            self._series_counts[metric] -= 1
            if not self._series_counts[metric]:
                del self._series_counts[metric]


def _in_discovery(series: Series) -> MetricInDiscovery:
    return series.subject.key, series.metric
