"""Serves custom.metrics.k8s.io and external.metrics.k8s.io with values from ConfigMaps and from scraped pods.

`podscaler.cli.up.machine` passes `MetricValues` to the API server as `registry.providers.MetricApis` and runs `run`.
Without ConfigMaps and scraped pods both APIs are served, with empty lists. A new path: a case in `list_values`; a new
version: an entry of VERSIONS, and its items in `metric_lists`.

Source: the paths of the custom metrics API server library; docs/spec/controller.md 10 (REST requests).
"""

from collections.abc import Iterable, Mapping, Sequence

from podscaler.api.machinery import selectors
from podscaler.api.machinery.requirements import Operator
from podscaler.api.machinery.selectors import Selector, SelectorError
from podscaler.api.resource.resources import Resource
from podscaler.base.clock import Clock
from podscaler.controlplane.metrics.custom import metric_lists, metrics_errors
from podscaler.controlplane.metrics.custom.association import GetRunningPods
from podscaler.controlplane.metrics.custom.config_maps import ConfigMaps
from podscaler.controlplane.metrics.custom.index import MetricIndex, MetricInDiscovery
from podscaler.controlplane.metrics.custom.kinds import NAMESPACES, DescribableKinds
from podscaler.controlplane.metrics.custom.lookup import Lookup, Value
from podscaler.controlplane.metrics.custom.metric_lists import CUSTOM, EXTERNAL
from podscaler.controlplane.metrics.custom.series import OUTSIDE, PODS
from podscaler.controlplane.registry.providers import MetricResource, MetricsRequest
from podscaler.controlplane.registry.registry import Object, Registry

VERSIONS: Mapping[str, Sequence[str]] = {CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",)}
ALL_OBJECTS = "*"
"""In place of an object's name in a path: all objects that the label selector matches."""
_COMPARISONS = frozenset({Operator.GREATER_THAN, Operator.LESS_THAN})


class MetricValues:
    """The custom and external metrics APIs of one cluster. Implements `providers.MetricApis`.

    Args:
        registry: where ConfigMaps are watched and described objects are read.
        resources: all served kinds.
        get_running_pods: returns the running pods of a namespace.
        clock: the time of values and events.
        scraped: the metrics that pods expose; None if pods are not scraped.
    """

    def __init__(
        self,
        registry: Registry,
        resources: Iterable[Resource],
        get_running_pods: GetRunningPods,
        clock: Clock,
        *,
        scraped: MetricIndex | None = None,
    ) -> None:
        self._resources = resources
        self._index = MetricIndex()
        self._scraped = scraped
        kinds = DescribableKinds(resources)
        self._config_maps = ConfigMaps(registry, self._index, kinds, clock)
        self._lookup = Lookup(self._index, registry, get_running_pods, clock, kinds=kinds, scraped=scraped)
        self._clock = clock

    async def run(self) -> None:
        """Watch the ConfigMaps until cancelled."""
        await self._config_maps.run()

    @property
    def generation(self) -> int:
        """A number that changes whenever the served metrics change."""
        return self._index.generation + (self._scraped.generation if self._scraped is not None else 0)

    @property
    def versions(self) -> Mapping[str, Sequence[str]]:
        """The versions of each API group, preferred first."""
        return VERSIONS

    @property
    def list_kinds(self) -> Mapping[str, str]:
        """The kind of each API group's responses."""
        return metric_lists.LIST_KINDS

    def resources(self, group: str) -> Sequence[MetricResource]:
        """The metrics that discovery lists for an API group, as resources like `pods/http_requests`."""
        all_metrics = sorted({*self._index.listed, *self._scraped_metrics()})
        group_metrics = [
            (kind, metric) for kind, metric in all_metrics if group == (EXTERNAL if kind == OUTSIDE else CUSTOM)
        ]
        return [MetricResource(kind, metric, namespaced=kind != NAMESPACES) for kind, metric in group_metrics]

    def _scraped_metrics(self) -> Iterable[MetricInDiscovery]:
        """The metrics that are scraped, for pods and for the objects that they stand behind."""
        if self._scraped is not None:
            for kind, metric in self._scraped.listed:
                yield kind, metric
                if kind == PODS:
                    yield from ((summed_kind, metric) for summed_kind in self._lookup.summed_kinds)

    def list_values(self, query: MetricsRequest) -> Object:
        """The list of values that a query selects. Raises StatusError (`metrics_errors`)."""
        if query.group == EXTERNAL:
            return self._external_values(query)
        metric_selector = _parse_metric_selector(query.metric_label_selector)
        if query.resource == "metrics" and not query.subresource:
            return self._namespace_values(query, metric_selector)
        if not query.subresource:
            raise metrics_errors.no_such_path()
        return self._object_values(query, metric_selector)

    def _external_values(self, query: MetricsRequest) -> Object:
        """The ExternalMetricValueList of a query. Raises StatusError."""
        if query.name or not query.namespace:
            raise metrics_errors.no_such_path()
        values = self._lookup.external(query.namespace, query.resource, _parse_selector(query.label_selector))
        return metric_lists.external_list(query.version, query.resource, values, self._clock.now_ns())

    def _namespace_values(self, query: MetricsRequest, metric_selector: Selector) -> Object:
        """The MetricValueList with the value of a Namespace. Raises StatusError."""
        name = query.namespace
        namespace_value = self._lookup.of_object(
            name, NAMESPACES, name, metric=query.name, metric_selector=metric_selector
        )
        return self._custom_list(query, query.name, metric_selector, kind=NAMESPACES, values=[namespace_value])

    def _object_values(self, query: MetricsRequest, metric_selector: Selector) -> Object:
        """The values of one object, or of all that the label selector matches. Raises StatusError."""
        namespace, kind, metric = query.namespace, query.resource, query.subresource
        object_selector = _parse_selector(query.label_selector)
        if all(resource.key != kind for resource in self._resources):  # unknown, or a custom kind that was removed
            raise metrics_errors.no_metric(metric, kind)
        values: Sequence[Value]
        if query.name == ALL_OBJECTS:
            values = self._lookup.of_objects(
                namespace, kind, object_selector, metric=metric, metric_selector=metric_selector
            )
        else:
            values = [
                self._lookup.of_object(namespace, kind, query.name, metric=metric, metric_selector=metric_selector)
            ]
        return self._custom_list(query, metric, metric_selector, kind=kind, values=values)

    def _custom_list(
        self, query: MetricsRequest, metric: str, metric_selector: Selector, *, kind: str, values: Sequence[Value]
    ) -> Object:
        """The MetricValueList of values, in the requested version."""
        resource = next(candidate for candidate in self._resources if candidate.stored and candidate.key == kind)
        described = [
            (metric_lists.reference(resource, query.namespace, object_value.name), object_value)
            for object_value in values
        ]
        now_ns = self._clock.now_ns()
        return metric_lists.custom_list(query.version, metric, metric_selector, described=described, now_ns=now_ns)


def _parse_selector(selector_text: str) -> Selector:
    """The parsed selector. Raises StatusError 400."""
    try:
        return selectors.parse(selector_text)
    except SelectorError as error:
        raise metrics_errors.bad_selector(str(error)) from error


def _parse_metric_selector(selector_text: str) -> Selector:
    """A selector that the response repeats as a LabelSelector, which has no comparisons. Raises StatusError 400."""
    selector = _parse_selector(selector_text)
    for requirement in selector.requirements:
        if requirement.operator in _COMPARISONS:
            name = "gt" if requirement.operator is Operator.GREATER_THAN else "lt"
            raise metrics_errors.bad_selector(f'"{name}" isn\'t supported in label selectors')
    return selector
