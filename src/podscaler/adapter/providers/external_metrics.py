"""Provides the values of external metrics from Prometheus.

A `providers.protocols.ExternalMetricsProvider`; `adapter.server.external_api` calls it for each request.

Source: prometheus-adapter v0.12.0. Differs: values that are NaN or infinite are left out.
"""

import logging
from collections.abc import Collection, Sequence

from podscaler.adapter.naming.metric_names import RuleError
from podscaler.adapter.naming.queries import SelectorNotSupported
from podscaler.adapter.prometheus.responses import PrometheusError
from podscaler.adapter.providers import protocols
from podscaler.adapter.providers.metric_relisting import MetricRelisting
from podscaler.adapter.providers.protocols import ExternalValue
from podscaler.adapter.providers.query_cache import QueryCache
from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError

log = logging.getLogger(__name__)


class ExternalMetrics:
    """Computes values of external metrics by the rules `externalRules`; an ExternalMetricsProvider.

    Args:
        relisting: has the registry of metrics.
        cache: executes the queries.
    """

    def __init__(self, relisting: MetricRelisting, cache: QueryCache) -> None:
        self._relisting = relisting
        self._cache = cache

    def names(self) -> Collection[str]:
        """As in ExternalMetricsProvider."""
        return sorted(self._relisting.registry.external)

    async def find_values(self, namespace: str, name: str, selector: Selector) -> Sequence[ExternalValue] | None:
        """As in ExternalMetricsProvider; in Prometheus' order. Raises StatusError 500 if they cannot be read."""
        metric = self._relisting.registry.external.get(name)
        if metric is None:
            return None
        try:
            query_result = await self._cache.query(metric.naming.external_query(metric.series, namespace, selector))
        except (RuleError, SelectorNotSupported, PrometheusError) as error:
            log.error("%s: the external metric %s cannot be read: %s", metric.naming.rule.place, name, error)
            raise protocols.fetch_error() from error
        if query_result.kind not in ("vector", "scalar"):
            log.error("%s: the external metric %s gives a %s", metric.naming.rule.place, name, query_result.kind)
            raise StatusError("encountered an unexpected query result type", code=500)
        values: list[ExternalValue] = []
        for sample in query_result.samples:
            quantity = protocols.find_quantity(sample.value)
            if quantity is None:
                log.warning("a value of %s is left out: %s is not a quantity", name, sample.value)
            else:
                values.append(ExternalValue(quantity, round(sample.at_s * NANOSECONDS), sample.labels))
        return values
