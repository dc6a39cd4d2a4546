"""Reads the annotations in which Kubernetes 1.2 to 1.5 kept custom metrics of an autoscaler.

    alpha/target.custom-metrics.podautoscaler.kubernetes.io: '{"items": [{"name": "qps", "value": "10"}]}'
    alpha/status.custom-metrics.podautoscaler.kubernetes.io: '{"items": [{"name": "qps", "value": "12"}]}'

A target is the average over the pods of the metric `name`: in v2, a Pods metric with `averageValue`. The conversion of
manifests (`conversion`) replaces the annotations by such metrics (`expand`); the emulation of Kubernetes 1.1 reads the
targets in addition to the spec (`podscaler.core.model.annotated_metrics`). The API server stores the annotations as
they are, as upstream's does since 1.6. Both formats are frozen.

Source: the CustomMetricTargetList and CustomMetricCurrentStatusList of Kubernetes 1.2 (extensions/v1beta1).
"""

from typing import Any, NamedTuple

from podscaler.api.kinds.autoscaling import hpa_annotations
from podscaler.api.machinery import names
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text

TARGETS = "alpha/target.custom-metrics.podautoscaler.kubernetes.io"
STATUSES = "alpha/status.custom-metrics.podautoscaler.kubernetes.io"


class AnnotatedMetric(NamedTuple):
    """A metric and its target or value, a quantity in its canonical form."""

    name: str
    value: str


def parse_list(list_json: str) -> tuple[AnnotatedMetric, ...]:
    """The metrics in the value of one of the annotations. Raises ValueError with the field that is wrong."""
    try:
        parsed = json_text.parse(list_json.encode())
    except ValueError as error:
        raise ValueError(f"is no JSON: {error}") from error
    items = parsed.get("items") if isinstance(parsed, dict) else None
    if not isinstance(items, list):
        raise ValueError('must be an object with a list "items"')
    return tuple(_parse_item(item, f"items[{index}]") for index, item in enumerate(items))


def _parse_item(item: Any, path: str) -> AnnotatedMetric:
    """A metric of the annotation. Raises ValueError with the path of the invalid part."""
    if not isinstance(item, dict):
        raise ValueError(f"{path} must be an object")
    name, amount = item.get("name"), item.get("value")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{path}.name must be the name of a metric")
    if errors := names.path_segment_errors(name):
        raise ValueError(f"{path}.name {errors[0]}")
    if isinstance(amount, bool) or not isinstance(amount, str | int | json_text.Number):
        raise ValueError(f"{path}.value must be a quantity")
    try:
        quantity = Quantity.parse(amount.text if isinstance(amount, json_text.Number) else str(amount))
    except ValueError as error:
        raise ValueError(f"{path}.value must be a quantity: {error}") from error
    return AnnotatedMetric(name, str(quantity))


class Expanded(NamedTuple):
    """An object without the annotations; and, for each annotation that cannot be read, key -> message."""

    obj: Object
    errors: dict[str, str]


def expand(autoscaler: Object) -> Expanded:
    """A copy of an object of autoscaling/v1 or extensions/v1beta1 with its custom metrics in the annotations of v1.

    TARGETS and STATUSES are removed; one that cannot be read stays. The annotations of v1 have lists of metrics in the
    form of v2beta1, with `metricName`.
    """
    expanded, errors = autoscaler, {}
    for key, metrics_annotation, value_field in (
        (TARGETS, hpa_annotations.METRICS, "targetAverageValue"),
        (STATUSES, hpa_annotations.CURRENT_METRICS, "currentAverageValue"),
    ):
        annotations = hpa_annotations.annotations_of(expanded)
        if key not in annotations:
            continue
        try:
            annotated_metrics = parse_list(annotations[key])
        except ValueError as error:
            errors[key] = str(error)
            continue
        pods_metrics = [
            {"type": "Pods", "pods": {"metricName": metric.name, value_field: metric.value}}
            for metric in annotated_metrics
        ]
        v1_metrics = hpa_annotations.find_value(expanded, metrics_annotation) or []
        new_annotations = {name: value for name, value in annotations.items() if name not in (key, metrics_annotation)}
        if metrics := [*v1_metrics, *pods_metrics]:
            new_annotations[metrics_annotation] = hpa_annotations.encode(metrics)
        expanded = {**expanded, "metadata": {**expanded["metadata"], "annotations": new_annotations}}
    return Expanded(expanded, errors)
