"""Converts the lists that metrics APIs return into measurements: values in thousandths, by pod or in order.

Called by the metrics client and the replay for each metric: one PodMetricsList serves several metrics. Another metrics
API: another function that returns PodSamples or Values. Example: a PodMetrics of the pod `web-1` with the usage `cpu:
250m` becomes {"web-1": Sample(250)}.

Source: docs/spec/decision.md 7.1 (Resource metrics) to 7.4 (External metrics).
"""

from podscaler.api.kinds.autoscaling.metric_source import QUERY_LABEL
from podscaler.api.machinery import duration, instants, numbers
from podscaler.api.typed import metrics
from podscaler.core.model import emulation
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.observation import PodSamples, Sample, Values
from podscaler.core.model.settings import SECOND_NS

DEFAULT_WINDOW_NS = 60 * SECOND_NS
"""The window of a custom metric that does not state it, as the HPA controller assumes."""


def of_resource(
    response: metrics.PodMetricsList, resource: str, container: str = "", version: Emulation = emulation.V1_37
) -> PodSamples:
    """The usage of a resource by each pod, or by one container of it.

    A pod is left out if a container that counts is absent or lacks the resource. Raises ValueError if a number
    or a time cannot be read.
    """
    samples: dict[str, Sample] = {}
    for pod_metrics in response.items or ():
        usage_milli = _usage_milli(pod_metrics, resource, container, version)
        if usage_milli is not None:
            samples[pod_metrics.metadata.name] = Sample(
                usage_milli, instants.parse_optional(pod_metrics.timestamp), duration.parse(pod_metrics.window)
            )
    return PodSamples(samples, is_empty=not response.items)


def _usage_milli(pod_metrics: metrics.PodMetrics, resource: str, container: str, version: Emulation) -> int | None:
    """The usage of a container, or of the whole pod if `container` is empty; None if it was not measured."""
    if not container:
        return _pod_usage_milli(pod_metrics, resource, version)
    for container_metrics in pod_metrics.containers or ():
        if container_metrics.name == container:
            quantity_text = (container_metrics.usage or {}).get(resource)
            return None if quantity_text is None else version.parse_milli(quantity_text)
    return None


def _pod_usage_milli(pod_metrics: metrics.PodMetrics, resource: str, version: Emulation) -> int | None:
    """The sum over the containers of a pod; None if one of them was not measured."""
    if not pod_metrics.containers:
        return None
    total_milli = 0
    for container in pod_metrics.containers:
        quantity_text = container.usage.get(resource) if container.usage else None
        if quantity_text is None:
            return None
        total_milli += version.parse_milli(quantity_text)
    return numbers.wrap64(total_milli)


def of_pods(response: metrics.MetricValueList, version: Emulation = emulation.V1_37) -> PodSamples:
    """The values of a custom metric by the names of the pods that they describe. Raises ValueError as `of_resource`."""
    samples: dict[str, Sample] = {}
    for metric_value in response.items or ():
        window_ns = DEFAULT_WINDOW_NS if metric_value.window_s is None else metric_value.window_s * SECOND_NS
        value_milli = version.parse_milli(metric_value.value)
        taken_at = instants.parse_optional(metric_value.timestamp)
        samples[metric_value.described_object.name] = Sample(value_milli, taken_at, window_ns)
    return PodSamples(samples, is_empty=not samples)


def of_values(
    response: metrics.MetricValueList | metrics.ExternalMetricValueList, version: Emulation = emulation.V1_37
) -> Values:
    """The values of a metric of an object, or of an external one, in order. Raises ValueError as `of_resource`."""
    items = response.items or ()
    return Values(
        tuple(version.parse_milli(metric_value.value) for metric_value in items), _query_of(items[0]) if items else ""
    )


def _query_of(metric_value: metrics.MetricValue | metrics.ExternalMetricValue) -> str:
    """The query behind a value, from the label QUERY_LABEL that podscaler's own sources set; empty if there is none."""
    labels = metric_value.metric_labels if isinstance(metric_value, metrics.ExternalMetricValue) else None
    return (labels or {}).get(QUERY_LABEL, "")
