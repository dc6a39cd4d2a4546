"""Converts HorizontalPodAutoscaler between autoscaling/v2alpha1 and v2.

v2alpha1 is v2beta1 without External and ContainerResource metrics, and without selectors. Such metrics are in v1's
annotation for metrics, their values in v1's annotation for current metrics; converted back they come first, as in v1.

`hpa_removed_versions` registers the conversion in a Resource. Arguments are not changed. A new source of metrics goes
into _LATER_SOURCES.

Source: docs/spec/api.md 4 (Conversion) and 6 (Older versions); the proposal of the version (HPA with arbitrary
metrics).
Differs: Kubernetes removed the version before it had such metrics; the annotations are those of v1.
"""

from typing import Any

from podscaler.api.kinds.autoscaling import hpa_annotations, hpa_v2beta1
from podscaler.api.resource.resources import Object

API_VERSION = "autoscaling/v2alpha1"
MESSAGE = "autoscaling/v2alpha1.HorizontalPodAutoscaler"
"""The name of its messages in `api.schema.schema`, by which bodies are decoded."""

_LATER_SOURCES = ("containerResource", "external")
_METRIC_LISTS = (
    ("spec", "metrics", hpa_annotations.METRICS),
    ("status", "currentMetrics", hpa_annotations.CURRENT_METRICS),
)
"""(section of the object, its list of metrics, the annotation with the metrics that v2alpha1 cannot express)."""


def to_v2(hpa: Object) -> Object:
    """The v2 form of a v2alpha1 object."""
    converted: Object = {**hpa}
    for section, list_field, annotation in _METRIC_LISTS:
        annotated_metrics: list[Any] = hpa_annotations.find_value(hpa, annotation) or []
        if annotated_metrics:
            fields = hpa.get(section) or {}
            converted[section] = {**fields, list_field: annotated_metrics + (fields.get(list_field) or [])}
    converted["spec"] = {**(converted.get("spec") or {})}  # a copy, as the defaults are set in place
    hpa_v2beta1.set_defaults(converted)
    return hpa_v2beta1.to_v2(converted)


def from_v2(hpa: Object) -> Object:
    """The v2alpha1 form of a v2 object, which has its defaults."""
    converted = {**hpa_v2beta1.from_v2(hpa), "apiVersion": API_VERSION}
    annotations = {
        annotation: annotation_value
        for annotation, annotation_value in hpa_annotations.annotations_of(converted).items()
        if annotation in hpa_annotations.RESERVED
    }
    for section, list_field, annotation in _METRIC_LISTS:
        metrics = converted[section].get(list_field) or []
        later_metrics = [metric for metric in metrics if not _is_v2alpha1(metric)]
        if later_metrics:
            kept_metrics = [metric for metric in metrics if _is_v2alpha1(metric)]
            converted[section] = _with_metrics(converted[section], list_field, kept_metrics)
            annotations[annotation] = hpa_annotations.encode(later_metrics)
    hpa_annotations.set_reserved(converted, annotations)
    return converted


def _is_v2alpha1(metric: Object) -> bool:
    """Whether v2alpha1 can express a flat metric."""
    has_selector = any("selector" in metric.get(source, {}) for source in ("object", "pods"))
    return not has_selector and not any(source in metric for source in _LATER_SOURCES)


def _with_metrics(section: Object, list_field: str, metrics: list[Object]) -> Object:
    """A section with its list `list_field` set to `metrics`; an empty list is left out of a spec, null in a status."""
    if metrics or list_field != "metrics":
        return {**section, list_field: metrics or None}
    return {key: value for key, value in section.items() if key != list_field}
