"""Adds the custom metrics of an autoscaler's annotation to its spec, for the algorithm of Kubernetes 1.1.

`podscaler.core.algorithm` has `with_annotated_metrics` as a stage of that algorithm; the informer of autoscalers calls
it for each object, so that decisions, recordings and replays all have the completed spec. Example: the annotation's
`{"items": [{"name": "qps", "value": "10"}]}` becomes a Pods metric `qps` with the target averageValue 10.

Source: `podscaler.api.kinds.autoscaling.alpha_custom_metrics`.
"""

import msgspec

from podscaler.api.kinds.autoscaling import alpha_custom_metrics
from podscaler.api.kinds.autoscaling.alpha_custom_metrics import TARGETS
from podscaler.api.typed import autoscaling


class CompletedAutoscaler(msgspec.Struct, frozen=True):
    """An autoscaler with all its metrics.

    Attributes:
        wire: the typed API object.
        fault: why the annotation cannot be used, so that its metrics are absent; empty if it is usable, or there is
            none.
    """

    wire: autoscaling.HorizontalPodAutoscaler
    fault: str = ""


def without_annotated_metrics(hpa: autoscaling.HorizontalPodAutoscaler) -> CompletedAutoscaler:
    """The autoscaler without a change: the current algorithm reads no annotations."""
    return CompletedAutoscaler(hpa)


def with_annotated_metrics(hpa: autoscaling.HorizontalPodAutoscaler) -> CompletedAutoscaler:
    """The autoscaler with a Pods metric for each target in the annotation, behind the metrics of the spec."""
    targets_json = (hpa.metadata.annotations or {}).get(TARGETS)
    if targets_json is None:
        return CompletedAutoscaler(hpa)
    try:
        targets = alpha_custom_metrics.parse_list(targets_json)
    except ValueError as error:
        return CompletedAutoscaler(hpa, f'metadata.annotations["{TARGETS}"] {error}')
    pods_metrics = []
    for target in targets:
        identifier = autoscaling.MetricIdentifier(name=target.name)
        average = autoscaling.MetricTarget(type="AverageValue", average_value=target.value)
        source = autoscaling.PodsMetricSource(metric=identifier, target=average)
        pods_metrics.append(autoscaling.MetricSpec(type="Pods", pods=source))
    metrics = (*(hpa.spec.metrics or ()), *pods_metrics)
    return CompletedAutoscaler(msgspec.structs.replace(hpa, spec=msgspec.structs.replace(hpa.spec, metrics=metrics)))
