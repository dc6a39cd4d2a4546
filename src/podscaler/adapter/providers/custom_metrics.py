"""Provides the values of custom metrics from Prometheus: of one object, or of all objects that a selector matches.

`adapter.server.custom_api` calls it for each request.

Source: prometheus-adapter v0.12.0, whose errors these are. Differs: an infinite value is left out; objects are listed
only for a metric that exists, so that a request for any other one sends none to the API server.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

from podscaler.adapter.cluster.object_names import ObjectNames
from podscaler.adapter.cluster.rest_mapper import MappedResource, RESTMapper
from podscaler.adapter.config.rules import GroupResource
from podscaler.adapter.naming.metric_names import RuleError
from podscaler.adapter.naming.queries import SelectorNotSupported
from podscaler.adapter.naming.resource_labels import CLUSTER_SCOPED
from podscaler.adapter.prometheus.responses import PrometheusError, PromSample
from podscaler.adapter.providers import protocols
from podscaler.adapter.providers.metric_registry import CustomMetric, MetricSeries
from podscaler.adapter.providers.metric_relisting import MetricRelisting
from podscaler.adapter.providers.object_values import ObjectValues
from podscaler.adapter.providers.protocols import ObjectValue
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CustomMetricQuery:
    """A request for values of a custom metric.

    Attributes:
        namespace: the objects' namespace; empty for objects without one.
        resource: the resource as in the path; may be singular.
        metric: the metric's name.
        selector: selects the metric's series by their labels.
    """

    namespace: str
    resource: GroupResource
    metric: str
    selector: Selector


class CustomMetrics:
    """Computes values of custom metrics by the rules of the configuration.

    Args:
        relisting: has the registry of metrics.
        mapper: maps names of resources.
        objects: finds the names of objects.
        values: queries the values of objects.
    """

    def __init__(
        self, relisting: MetricRelisting, mapper: RESTMapper, objects: ObjectNames, values: ObjectValues
    ) -> None:
        self._relisting = relisting
        self._mapper = mapper
        self._objects = objects
        self._values = values

    def metrics(self) -> Sequence[CustomMetric]:
        """All metrics, for discovery."""
        return sorted(self._relisting.registry.custom, key=lambda metric: (str(metric.resource), metric.name))

    async def of_object(self, query: CustomMetricQuery, name: str) -> ObjectValue:
        """The value that describes an object. Raises StatusError: 404 where there is none, 500 without Prometheus."""
        mapped_resource, metric_series = self._find_series(query)
        values = await self._request_values(query, mapped_resource, metric_series, [name])
        if not values:
            raise protocols.not_found(query.metric, str(query.resource), name)
        return values[0]

    async def of_objects(self, query: CustomMetricQuery, selector: Selector) -> Sequence[ObjectValue]:
        """The values that describe the objects that a selector matches, in their order, those that have one.

        Raises StatusError: 404 where there is no such metric or no object, 500 where something cannot be read.
        """
        mapped_resource, metric_series = self._find_series(query, is_list=True)
        names = await self._list_names(query, mapped_resource, selector)
        if not names:
            raise protocols.not_found(query.metric, str(query.resource))
        return await self._request_values(query, mapped_resource, metric_series, names)

    async def _list_names(
        self, query: CustomMetricQuery, mapped_resource: MappedResource, selector: Selector
    ) -> list[str]:
        """The names of the objects that a selector matches. Raises StatusError 500 if they cannot be listed."""
        try:
            return await self._objects.select(mapped_resource, query.namespace, selector)
        except StatusError as error:
            raise _cannot_list(query, str(error)) from error

    def _find_series(self, query: CustomMetricQuery, *, is_list: bool = False) -> tuple[MappedResource, MetricSeries]:
        """The resource and the series of the metric. Raises StatusError: 404, or 500 for a list of an unknown kind."""
        mapped_resource = self._mapper.mapping.find(query.resource)
        if mapped_resource is None and is_list:
            raise _cannot_list(query, f"the API server does not serve {query.resource}")
        # a request has a namespace if and only if the resource is namespaced
        if mapped_resource is not None and (mapped_resource.resource in CLUSTER_SCOPED) is not bool(query.namespace):
            metric_series = self._relisting.registry.custom.get(CustomMetric(mapped_resource.resource, query.metric))
            if metric_series is not None:
                return mapped_resource, metric_series
        raise protocols.not_found(query.metric, str(query.resource))

    async def _request_values(
        self,
        query: CustomMetricQuery,
        mapped_resource: MappedResource,
        metric_series: MetricSeries,
        names: Sequence[str],
    ) -> list[ObjectValue]:
        """The values of these objects in the order of `names`, those that have one. Raises StatusError 404, 500."""
        try:
            target = metric_series.naming.target(metric_series.series, mapped_resource.resource, query.selector)
            samples = await self._values.samples(metric_series.naming.template, target, query.namespace, names)
        except (RuleError, SelectorNotSupported) as error:
            log.error(
                "%s: no query for %s of %s: %s", metric_series.naming.rule.place, query.metric, query.resource, error
            )
            raise protocols.not_found(query.metric, str(query.resource)) from error
        except PrometheusError as error:
            log.error("%s of %s cannot be read from Prometheus: %s", query.metric, query.resource, error)
            raise protocols.fetch_error() from error
        # of several samples of an object the last one counts, as in prometheus-adapter
        values = (_value(query, mapped_resource, name, samples[name][-1]) for name in names if name in samples)
        return [object_value for object_value in values if object_value is not None]


def _cannot_list(query: CustomMetricQuery, cause: str) -> StatusError:
    """500: the objects cannot be listed; the cause is logged, not reported."""
    log.error("the objects of %s cannot be listed: %s", query.resource, cause)
    return protocols.internal_error("unable to list matching resources")


def _value(
    query: CustomMetricQuery, mapped_resource: MappedResource, name: str, sample: PromSample
) -> ObjectValue | None:
    """The sample as the value of an object, NaN as 0; None with a log line for a number that is no quantity."""
    quantity = Quantity(0) if math.isnan(sample.value) else protocols.find_quantity(sample.value)
    if quantity is None:
        log.warning("%s of %s %s is left out: %s is not a quantity", query.metric, query.resource, name, sample.value)
        return None
    return ObjectValue(mapped_resource, query.namespace, name, quantity, round(sample.at_s * NANOSECONDS))
