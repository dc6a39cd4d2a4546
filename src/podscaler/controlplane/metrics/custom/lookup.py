"""Computes the values that a query of the custom or external metrics API returns; called by `metrics.custom.apis`.

Where the series of a query come from is decided in `Lookup._find_series`, what an object gets of them in `_Sums`.
Series of ConfigMaps have precedence; series of scraped pods are used for metrics that no ConfigMap defines. Only
running pods have values, and a selector only selects existing objects. Series of the same object are added up, as in
the queries of Prometheus' adapter.

Source: the custom metrics API server library (documentation and observed responses): unknown metrics and objects
without a value are 404; a selector that selects nothing gives an empty list.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from podscaler.api.machinery.quantity import ZERO, Quantity
from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import Clock
from podscaler.controlplane.metrics.custom import metrics_errors, schedule
from podscaler.controlplane.metrics.custom.association import GetRunningPods, PodAssociation
from podscaler.controlplane.metrics.custom.index import MetricIndex
from podscaler.controlplane.metrics.custom.kinds import NAMESPACES, DescribableKinds
from podscaler.controlplane.metrics.custom.series import OUTSIDE, PODS, NamedObject, Series
from podscaler.controlplane.registry.registry import Registry


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a response.

    Attributes:
        name: the described object; empty for an external metric.
        labels: the labels of the object; for an external metric those of the metric.
        quantity: the value.
        window_s: the seconds over which it was measured; None to omit windowSeconds.
    """

    name: str
    labels: Mapping[str, str]
    quantity: Quantity
    window_s: int | None


@dataclass(frozen=True, slots=True)
class _CurrentSeries:
    """A series with its value at the time of the query, for each described object.

    Attributes:
        sharers: the names of the ready pods that share a total; None if the value is not a total.
    """

    series: Series
    quantity: Quantity
    sharers: frozenset[str] | None

    def quantity_of(self, kind: str, name: str) -> Quantity:
        """The value of an object; zero for a pod that gets no share of a total."""
        has_no_share = kind == PODS and self.sharers is not None and name not in self.sharers
        return ZERO if has_no_share else self.quantity


class _Sums:
    """The values of one metric for the objects of one kind, added up for each object; the first series has the window.

    Args:
        kind: the `Resource.key` of the kind.
        current: the selected series with their values.
    """

    def __init__(self, kind: str, current: Iterable[_CurrentSeries]) -> None:
        self._kind = kind
        self._selecting: list[_CurrentSeries] = []
        self._named: dict[str, list[_CurrentSeries]] = {}
        for current_series in current:
            subject = current_series.series.subject
            if isinstance(subject, NamedObject):
                self._named.setdefault(subject.name, []).append(current_series)
            else:
                self._selecting.append(current_series)

    @property
    def names(self) -> Iterable[str]:
        """The names of the objects that series name explicitly."""
        return self._named.keys()

    def value_of(self, name: str, labels: Mapping[str, str]) -> Value | None:
        """The sum of the series that describe the object with that name and labels, None if there is none."""
        by_selector = [current for current in self._selecting if current.series.subject.describes(name, labels)]
        matching = [*self._named.get(name, []), *by_selector]
        if not matching:
            return None
        quantity = matching[0].quantity_of(self._kind, name)  # a single one stays as it was written
        for further in matching[1:]:
            quantity = quantity + further.quantity_of(self._kind, name)
        return Value(name, labels, quantity, matching[0].series.window_s)


class Lookup:
    """Finds the series of a query and adds up their values for each object.

    Args:
        index: the series.
        registry: for objects other than pods.
        get_running_pods: returns the running pods of a namespace.
        clock: the time at which schedules are evaluated.
        kinds: the kinds that metrics may describe.
        scraped: the metrics that pods expose, which count where no ConfigMap defines a metric: series of pods, and of
            objects that labels name; None if pods are not scraped.
    """

    def __init__(
        self,
        index: MetricIndex,
        registry: Registry,
        get_running_pods: GetRunningPods,
        clock: Clock,
        *,
        kinds: DescribableKinds,
        scraped: MetricIndex | None = None,
    ) -> None:
        self._index = index
        self._kinds = kinds
        self._scraped = scraped
        self._association = PodAssociation(registry, get_running_pods)
        self._registry = registry
        self._get_running_pods = get_running_pods
        self._clock = clock

    @property
    def summed_kinds(self) -> Iterable[str]:
        """The `Resource.key` of the kinds whose metrics are summed over pods."""
        return self._association.kinds

    def external(self, namespace: str, metric: str, metric_selector: Selector) -> Sequence[Value]:
        """The values of an external metric whose labels `metric_selector` matches. Raises StatusError 404."""
        series = self._find_series(namespace, OUTSIDE, metric)
        selected = [one_series for one_series in series if metric_selector.matches(one_series.labels)]
        values = []
        for current in self._current_series(namespace, selected):
            values.append(Value("", current.series.labels, current.quantity, current.series.window_s))
        return values

    def of_object(self, namespace: str, kind: str, name: str, *, metric: str, metric_selector: Selector) -> Value:
        """The value for one object.

        Args:
            namespace: the object's namespace.
            kind: the `Resource.key` of its kind.
            name: its name.
            metric: the metric's name.
            metric_selector: selects series by the metric's labels.

        Raises:
            StatusError: 404 for an unknown metric, or an object without a value.
        """
        sums = self._sums_of(namespace, kind, metric, metric_selector=metric_selector, name=name)
        labels = self._labels_of(namespace, kind, name)
        object_value = None if labels is None else sums.value_of(name, labels)
        if object_value is None:
            raise metrics_errors.no_value(metric, kind, name, metric_selector)
        return object_value

    def of_objects(
        self, namespace: str, kind: str, object_selector: Selector, *, metric: str, metric_selector: Selector
    ) -> Sequence[Value]:
        """The values of the objects that `object_selector` matches, by name; objects without a value are left out.

        Other arguments are as for `of_object`. Raises StatusError 404 for an unknown metric.
        """
        sums = self._sums_of(namespace, kind, metric, metric_selector=metric_selector)
        labels = self._labels_of_existing(namespace, kind, sums.names)
        names = [name for name in sorted(labels) if object_selector.matches(labels[name])]
        values = [sums.value_of(name, labels[name]) for name in names]
        return [object_value for object_value in values if object_value is not None]

    def _sums_of(self, namespace: str, kind: str, metric: str, *, metric_selector: Selector, name: str = "") -> _Sums:
        """The sums of a metric for the objects of a kind; `name` limits them to one object. Raises StatusError 404."""
        series = self._find_series(namespace, kind, metric, name)
        selected = [one_series for one_series in series if metric_selector.matches(one_series.labels)]
        return _Sums(kind, self._current_series(namespace, selected))

    def _find_series(self, namespace: str, kind: str, metric: str, name: str = "") -> Sequence[Series]:
        """The series of a metric from ConfigMaps, else from scraped pods. Raises StatusError 404 if there are none.

        Args:
            namespace: the namespace of the described objects.
            kind: the `Resource.key` of their kind; OUTSIDE for an external metric.
            metric: the metric's name.
            name: the name of the only object to look for; empty for all objects.
        """
        series = self._index.find(namespace, kind, metric)
        if not series and self._scraped is not None and kind != OUTSIDE:
            series = self._scraped.find(namespace, kind, metric)
            series = series or list(self._find_series_of_pods(self._scraped, namespace, kind, metric=metric, name=name))
        if not series:
            raise metrics_errors.no_metric(metric, kind or NAMESPACES)  # OUTSIDE: as upstream's message
        return series

    def _find_series_of_pods(
        self, scraped: MetricIndex, namespace: str, kind: str, *, metric: str, name: str
    ) -> Iterable[Series]:
        """The series of pods, as series of the objects that the pods stand behind."""
        of_pods = scraped.find(namespace, PODS, metric)
        if not of_pods:
            return
        for object_name, pods in self._association.pods_behind(namespace, kind, name).items():
            described = self._kinds.of_key(kind, object_name)
            for series in of_pods:
                if isinstance(series.subject, NamedObject) and series.subject.name in pods:
                    yield replace(series, subject=described)

    def _current_series(self, namespace: str, series: Iterable[Series]) -> Sequence[_CurrentSeries]:
        """The series that have a value now; a total is divided by the number of ready pods that share it."""
        now_ns = self._clock.now_ns()
        ready_by_selector: dict[Selector, frozenset[str]] = {}
        current = []
        for one_series in series:
            quantity = one_series.schedule.value_at(now_ns)
            if quantity is None:
                continue
            if one_series.shared_by is None:
                current.append(_CurrentSeries(one_series, quantity, sharers=None))
                continue
            if one_series.shared_by not in ready_by_selector:
                ready_by_selector[one_series.shared_by] = self._ready_pods(namespace, one_series.shared_by)
            sharers = ready_by_selector[one_series.shared_by]
            share_count = max(len(sharers), 1)  # without a ready pod no pod has the share (`quantity_of`)
            current.append(_CurrentSeries(one_series, schedule.share(quantity, share_count), sharers))
        return current

    def _ready_pods(self, namespace: str, selector: Selector) -> frozenset[str]:
        """The names of the running and ready pods of a namespace that `selector` matches."""
        pods = self._get_running_pods(namespace)
        return frozenset(name for name, pod in pods.items() if pod.ready and selector.matches(pod.labels))

    def _labels_of(self, namespace: str, kind: str, name: str) -> Mapping[str, str] | None:
        """The labels of a described object; None for a pod that is not running.

        Objects of other kinds need not exist, as for adapters that query Prometheus; they have no labels here.
        """
        if kind != PODS:
            return {}
        pod = self._get_running_pods(namespace).get(name)
        return None if pod is None else pod.labels

    def _labels_of_existing(self, namespace: str, kind: str, names: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """The labels of existing objects by name: of all running pods, or of the named objects of another kind."""
        if kind == PODS:
            return {name: pod.labels for name, pod in self._get_running_pods(namespace).items()}
        objects = {name: self._registry.find(kind, namespace, name) for name in names}
        return {name: stored["metadata"].get("labels") or {} for name, stored in objects.items() if stored is not None}
