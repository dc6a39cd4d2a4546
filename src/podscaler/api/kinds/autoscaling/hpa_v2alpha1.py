"""Conversion of HorizontalPodAutoscaler between autoscaling/v2alpha1 and v2.

v2alpha1 is v2beta1 before External and ContainerResource metrics and before selectors. Other metrics are kept in
v1's annotation for metrics, their values in v1's annotation for current metrics; they come first when converted back,
as those of v1 do.

Called by the record in `hpa_removed_versions`. Inputs are not changed.

Source: docs/spec/api.md 4 (Conversion) and 6 (Older versions); the proposal of the version (HPA with arbitrary
metrics).
Differs: upstream dropped the version before there were such metrics; the annotations are the ones that
upstream uses for v1.
"""

from typing import Any

from podscaler.api.kinds.autoscaling import hpa_annotations, hpa_v2beta1
from podscaler.api.resource.resources import Object

API_VERSION = "autoscaling/v2alpha1"
MESSAGE = "autoscaling/v2alpha1.HorizontalPodAutoscaler"

_LATER_SOURCES = ("containerResource", "external")
_PLACES = (("spec", "metrics", hpa_annotations.METRICS), ("status", "currentMetrics", hpa_annotations.CURRENT_METRICS))
"""(part, field, annotation for the metrics that the version has no form for)."""


def to_v2(hpa: Object) -> Object:
    """The v2 form of a v2alpha1 object."""
    joined: Object = {**hpa}
    for part, name, key in _PLACES:
        noted: list[Any] = hpa_annotations.noted(hpa, key) or []
        if noted:
            content = hpa.get(part) or {}
            joined[part] = {**content, name: noted + (content.get(name) or [])}
    joined["spec"] = {**(joined.get("spec") or {})}
    hpa_v2beta1.set_defaults(joined)
    return hpa_v2beta1.to_v2(joined)


def from_v2(hpa: Object) -> Object:
    """The v2alpha1 form of a v2 object (complete with defaults)."""
    converted = {**hpa_v2beta1.from_v2(hpa), "apiVersion": API_VERSION}
    notes = {key: text for key, text in hpa_annotations.of(converted).items() if key in hpa_annotations.RESERVED}
    for part, name, key in _PLACES:
        metrics = converted[part].get(name) or []
        later = [metric for metric in metrics if not _can_say(metric)]
        if later:
            converted[part] = _with(converted[part], name, [metric for metric in metrics if _can_say(metric)])
            notes[key] = hpa_annotations.text(later)
    hpa_annotations.replace(converted, notes)
    return converted


def _can_say(metric: Object) -> bool:
    has_selector = any("selector" in metric.get(source, {}) for source in ("object", "pods"))
    return not has_selector and not any(source in metric for source in _LATER_SOURCES)


def _with(content: Object, name: str, metrics: list[Object]) -> Object:
    """`content` with other metrics; an empty list is left out of a spec and null in a status."""
    if metrics or name != "metrics":
        return {**content, name: metrics or None}
    return {key: value for key, value in content.items() if key != name}
