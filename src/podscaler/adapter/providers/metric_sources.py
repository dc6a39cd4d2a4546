"""Provides external metrics from MetricSources, which the adapter reads directly from other systems.

    MetricSource shop/jobs (labels queue: jobs)   GET .../namespaces/shop/jobs   metricName jobs, value 42

A `providers.protocols.ExternalMetricsProvider` for the built-in controller of autoscalers, which cannot read
MetricSources itself. `podscaler adapter --metric-sources` makes one, and `adapter.server.external_api` calls it for
each request. Reads are shared, limited in time and written to statuses by `podscaler.sources`.
"""

from collections.abc import Callable, Collection, Sequence

from podscaler.adapter.providers import protocols
from podscaler.adapter.providers.protocols import ExternalValue
from podscaler.api.machinery import instants
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.metrics import ExternalMetricValue
from podscaler.base.errors import StatusError
from podscaler.sources.direct_metrics import DirectSources


class MetricSourceMetrics:
    """The external metrics of a cluster's MetricSources; an ExternalMetricsProvider.

    Args:
        direct: reads MetricSources.
        names: returns the names of all MetricSources.
    """

    def __init__(self, direct: DirectSources, names: Callable[[], Collection[str]]) -> None:
        self._direct = direct
        self._names = names

    def names(self) -> Collection[str]:
        """The names of all MetricSources, in any namespace."""
        return self._names()

    async def find_values(self, namespace: str, name: str, selector: Selector) -> Sequence[ExternalValue] | None:
        """The value of the MetricSource with this name in the namespace; None if there is none.

        Raises StatusError 500 if it cannot be read, or its labels do not match; the text has no credentials.
        """
        try:
            value_list = await self._direct.find_values(namespace, name, selector)
        except StatusError as error:
            raise protocols.internal_error(error.message) from error
        return None if value_list is None else [_value(metric_value) for metric_value in value_list.items or ()]


def _value(metric_value: ExternalMetricValue) -> ExternalValue:
    """The value of an item of an ExternalMetricValueList, whose texts `sources.direct_metrics` has made."""
    return ExternalValue(
        Quantity.parse(metric_value.value),
        instants.parse(metric_value.timestamp),
        labels=metric_value.metric_labels or {},
    )
