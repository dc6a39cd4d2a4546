"""The values that a query of a metrics API gets: which objects, which series, how much of each.

Asked by `apis`. Only running pods have values, and only objects that exist are found by a selector. Series that
describe the same object add up, as the queries of Prometheus' adapter do.

Source: the custom metrics API server library (documentation and observed answers): unknown metrics and objects without
a value are 404; a selector that selects nothing gives an empty list.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from podscaler.api.machinery.quantity import ZERO, Quantity
from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import Clock
from podscaler.controlplane.metrics.custom import metrics_errors, schedule
from podscaler.controlplane.metrics.custom.index import MetricIndex
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.metrics.custom.series import OUTSIDE, PODS, NamedObject, Series
from podscaler.controlplane.metrics.resource.pods import PodFact
from podscaler.controlplane.registry.registry import Registry

RunningPods = Callable[[str], Mapping[str, PodFact]]
"""The running pods of a namespace, by name."""

NAMESPACES = "namespaces"


class PodAssociation(Protocol):
    """Which pods stand behind an object."""

    @property
    def kinds(self) -> Iterable[str]:
        """The `Resource.key` of what may be asked for."""
        ...

    def pods_behind(self, namespace: str, kind: str, name: str = "") -> Mapping[str, frozenset[str]]:
        """The running pods behind objects of a kind, by the objects' names; `name` empty: all of the namespace."""
        ...


@dataclass(frozen=True, slots=True)
class ScrapedMetrics:
    """Metrics that pods expose, for what no ConfigMap states.

    Attributes:
        index: series of pods, and of objects that labels name.
        association: over which pods the metrics of other objects are summed.
    """

    index: MetricIndex
    association: PodAssociation


@dataclass(frozen=True, slots=True)
class Value:
    """One value: of the object `name`, or of an external metric with `labels`."""

    name: str
    labels: Mapping[str, str]
    quantity: Quantity
    window_s: int | None


@dataclass(frozen=True, slots=True)
class _Current:
    """A series' value at the instant of the query, as each pod or object has it.

    Attributes:
        sharers: the names of the ready pods among which a total is shared; None where it is no total.
    """

    series: Series
    quantity: Quantity
    sharers: frozenset[str] | None

    def quantity_of(self, subject: str, name: str) -> Quantity:
        """What the object has: of a shared total nothing, if it is a pod that gets no share."""
        gets_none = subject == PODS and self.sharers is not None and name not in self.sharers
        return ZERO if gets_none else self.quantity


class _Sums:
    """The values of one metric of one kind of objects, added up for each object.

    Args:
        subject: the `Resource.key` of the kind.
        current: the values of all its series that were asked for.
    """

    def __init__(self, subject: str, current: Iterable[_Current]) -> None:
        self._subject = subject
        self._selecting: list[_Current] = []
        self._named: dict[str, list[_Current]] = {}
        for each in current:
            if isinstance(each.series.subject, NamedObject):
                self._named.setdefault(each.series.subject.name, []).append(each)
            else:
                self._selecting.append(each)

    @property
    def names(self) -> Iterable[str]:
        """The objects that are named."""
        return self._named.keys()

    def value_of(self, name: str, labels: Mapping[str, str]) -> Value | None:
        """The sum of what describes the object of that name and those labels, None where nothing does."""
        mine = self._named.get(name, [])
        mine = mine + [each for each in self._selecting if each.series.subject.describes(name, labels)]
        if not mine:
            return None
        quantity = mine[0].quantity_of(self._subject, name)
        for each in mine[1:]:
            quantity = quantity + each.quantity_of(self._subject, name)
        return Value(name, labels, quantity, mine[0].series.window_s)


class Lookup:
    """See the module.

    Args:
        index: the series.
        registry: for objects that are found by a selector.
        running_pods: the pods.
        clock: what time it is.
        kinds: the objects that may be described.
        scraped: what pods expose; None: nothing.
    """

    def __init__(
        self,
        index: MetricIndex,
        registry: Registry,
        running_pods: RunningPods,
        clock: Clock,
        *,
        kinds: DescribableKinds,
        scraped: ScrapedMetrics | None = None,
    ) -> None:
        self._index = index
        self._kinds = kinds
        self._scraped = scraped
        self._registry = registry
        self._running_pods = running_pods
        self._clock = clock

    def external(self, namespace: str, metric: str, selector: Selector) -> Sequence[Value]:
        """The values of an external metric whose labels `selector` picks. Raises StatusError 404."""
        series = self._series(namespace, OUTSIDE, metric)
        current = self._current(namespace, [each for each in series if selector.matches(each.labels)])
        return [Value("", each.series.labels, each.quantity, each.series.window_s) for each in current]

    def of_object(self, namespace: str, subject: str, name: str, *, metric: str, selector: Selector) -> Value:
        """The value for one object.

        Args:
            namespace: where the object is.
            subject: the `Resource.key` of its kind.
            name: its name.
            metric: the metric.
            selector: of the metric's labels.

        Raises:
            StatusError: 404.
        """
        sums = self._sums(namespace, subject, metric, selector=selector, name=name)
        labels = self._labels_of(namespace, subject, name)
        value = None if labels is None else sums.value_of(name, labels)
        if value is None:
            raise metrics_errors.no_value(metric, subject, name, selector)
        return value

    def of_objects(
        self, namespace: str, subject: str, objects: Selector, *, metric: str, selector: Selector
    ) -> Sequence[Value]:
        """The values for all objects that `objects` picks and that have one, by name; else as `of_object`."""
        sums = self._sums(namespace, subject, metric, selector=selector)
        found = self._described(namespace, subject, sums.names)
        values = (sums.value_of(name, found[name]) for name in sorted(found) if objects.matches(found[name]))
        return [value for value in values if value is not None]

    def _sums(self, namespace: str, subject: str, metric: str, *, selector: Selector, name: str = "") -> _Sums:
        series = self._series(namespace, subject, metric, name)
        current = self._current(namespace, [each for each in series if selector.matches(each.labels)])
        return _Sums(subject, current)

    def _series(self, namespace: str, subject: str, metric: str, name: str = "") -> Sequence[Series]:
        """The series of a metric: those stated, else those scraped. Raises StatusError 404 where there are none.

        Args:
            name: of the only object that is asked for; empty: all objects.
        """
        found = self._index.find(namespace, subject, metric)
        if not found and self._scraped is not None and subject != OUTSIDE:
            found = self._scraped.index.find(namespace, subject, metric)
            found = found or list(self._of_pods_behind(self._scraped, namespace, subject, metric=metric, name=name))
        if not found:
            raise metrics_errors.no_metric(metric, subject or NAMESPACES)
        return found

    def _of_pods_behind(
        self, scraped: ScrapedMetrics, namespace: str, subject: str, *, metric: str, name: str
    ) -> Iterable[Series]:
        """The series of pods, as series of the objects that the pods stand behind."""
        of_pods = scraped.index.find(namespace, PODS, metric)
        if not of_pods:
            return
        for each, pods in scraped.association.pods_behind(namespace, subject, name).items():
            described = self._kinds.of_key(subject, each)
            for series in of_pods:
                if isinstance(series.subject, NamedObject) and series.subject.name in pods:
                    yield replace(series, subject=described)

    def _current(self, namespace: str, series: Iterable[Series]) -> Sequence[_Current]:
        now_ns = self._clock.now_ns()
        ready: dict[Selector, frozenset[str]] = {}
        found = []
        for each in series:
            quantity = each.schedule.value_at(now_ns)
            if quantity is None:
                continue
            if each.shared_by is None:
                found.append(_Current(each, quantity, None))
                continue
            if each.shared_by not in ready:
                ready[each.shared_by] = self._ready(namespace, each.shared_by)
            sharers = ready[each.shared_by]
            found.append(_Current(each, schedule.share(quantity, max(len(sharers), 1)), sharers))
        return found

    def _ready(self, namespace: str, selector: Selector) -> frozenset[str]:
        pods = self._running_pods(namespace)
        return frozenset(name for name, pod in pods.items() if pod.ready and selector.matches(_labels(pod)))

    def _labels_of(self, namespace: str, subject: str, name: str) -> Mapping[str, str] | None:
        """The labels of what a metric describes; None for a pod that does not run.

        Differs from pods: other objects need not exist, as it is for adapters that ask Prometheus.
        """
        if subject != PODS:
            return {}
        pod = self._running_pods(namespace).get(name)
        return None if pod is None else _labels(pod)

    def _described(self, namespace: str, subject: str, names: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """The labels of the objects that are there, by name: of all pods, or of the named other objects."""
        if subject == PODS:
            return {name: _labels(pod) for name, pod in self._running_pods(namespace).items()}
        found = {name: self._registry.find(subject, namespace, name) for name in names}
        return {name: obj["metadata"].get("labels") or {} for name, obj in found.items() if obj is not None}


def _labels(pod: PodFact) -> Mapping[str, str]:
    found: Mapping[str, str] = pod.metadata.get("labels") or {}
    return found
