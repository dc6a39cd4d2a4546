"""Converts the lists that metrics APIs return into measurements: values in thousandths, by pod or in order.

Called by the metrics client and the replay for each metric: one PodMetricsList serves several metrics. Example: a
PodMetrics of the pod `web-1` with the usage `cpu: 250m` becomes {"web-1": Sample(250)}.

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
    for item in response.items or ():
        usage_milli = _usage(item, resource, container, version)
        if usage_milli is not None:
            samples[item.metadata.name] = Sample(
                usage_milli, instants.parse_optional(item.timestamp), duration.parse(item.window)
            )
    return PodSamples(samples, is_empty=not response.items)


def _usage(item: metrics.PodMetrics, resource: str, container: str, version: Emulation) -> int | None:
    """The usage of a container, or of the whole pod if `container` is empty; None if it was not measured."""
    if not container:
        return _pod_usage(item, resource, version)
    measured = next(
        (entry for entry in item.containers or () if entry.name == container),
        None,
    )
    if measured is None or not measured.usage or resource not in measured.usage:
        return None
    return version.parse_milli(measured.usage[resource])


def _pod_usage(item: metrics.PodMetrics, resource: str, version: Emulation) -> int | None:
    """The sum over the containers of a pod; None if one of them was not measured."""
    if not item.containers:
        return None
    total_milli = 0
    for container in item.containers:
        text = container.usage.get(resource) if container.usage else None
        if text is None:
            return None
        total_milli += version.parse_milli(text)
    return numbers.wrap64(total_milli)


def of_pods(response: metrics.MetricValueList, version: Emulation = emulation.V1_37) -> PodSamples:
    """The values of a custom metric by the names of the pods that they describe. Raises ValueError as `of_resource`."""
    samples = {
        item.described_object.name: Sample(
            version.parse_milli(item.value),
            instants.parse_optional(item.timestamp),
            DEFAULT_WINDOW_NS if item.window_s is None else item.window_s * SECOND_NS,
        )
        for item in response.items or ()
    }
    return PodSamples(samples, is_empty=not samples)


def of_values(
    response: metrics.MetricValueList | metrics.ExternalMetricValueList, version: Emulation = emulation.V1_37
) -> Values:
    """The values of a metric of an object, or of an external one, in order. Raises ValueError as `of_resource`."""
    items = response.items or ()
    return Values(tuple(version.parse_milli(item.value) for item in items), _query(items[0]) if items else "")


def _query(item: metrics.MetricValue | metrics.ExternalMetricValue) -> str:
    """The query behind a value, from the label QUERY_LABEL that podscaler's own sources set; empty if there is none."""
    labels = item.metric_labels if isinstance(item, metrics.ExternalMetricValue) else None
    return (labels or {}).get(QUERY_LABEL, "")
