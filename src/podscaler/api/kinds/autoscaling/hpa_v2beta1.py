"""Converts HorizontalPodAutoscaler between autoscaling/v2beta1 and v2.

v2beta1 has metrics in the flat form (`hpa_flat_metrics`), and the behavior in an annotation.

`hpa_removed_versions` registers the conversion in a Resource; `hpa_v2alpha1` converts through it. Arguments are not
changed. To keep a new field of v2: another annotation, as that with the behavior.

Source: docs/spec/api.md 4 (Conversion) and 6 (Older versions).
"""

from podscaler.api.kinds.autoscaling import hpa_annotations, hpa_defaults, hpa_flat_metrics, hpa_v2beta2
from podscaler.api.resource.resources import Object

API_VERSION = "autoscaling/v2beta1"
MESSAGE = "autoscaling/v2beta1.HorizontalPodAutoscaler"
"""The name of its messages in `api.schema.schema`, by which bodies are decoded."""


def set_defaults(hpa: Object) -> None:
    """API defaults, in place: minReplicas 1, the metric cpu at 80 %; none for the behavior in the annotation."""
    spec = hpa.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        cpu = {"name": "cpu", "targetAverageUtilization": hpa_defaults.DEFAULT_UTILIZATION_PCT}
        spec["metrics"] = [{"type": "Resource", "resource": cpu}]


def to_v2(hpa: Object) -> Object:
    """The v2 form of a decoded v2beta1 object; an annotation that cannot be read counts as absent."""
    spec, status = {**(hpa.get("spec") or {})}, {**(hpa.get("status") or {})}
    flat_metrics = hpa_annotations.read_list(spec.get("metrics") or [], hpa_flat_metrics.SPEC)
    spec["metrics"] = [hpa_flat_metrics.to_v2(metric, hpa_flat_metrics.SPEC) for metric in flat_metrics]
    if behavior := hpa_annotations.find_value(hpa, hpa_annotations.BEHAVIOR):
        spec["behavior"] = behavior
    flat_current_metrics = hpa_annotations.read_list(status.get("currentMetrics") or [], hpa_flat_metrics.STATUS)
    status["currentMetrics"] = [
        hpa_flat_metrics.to_v2(metric, hpa_flat_metrics.STATUS) for metric in flat_current_metrics
    ]
    converted: Object = {**hpa, "apiVersion": "autoscaling/v2", "spec": spec, "status": status}
    hpa_defaults.set_status_defaults(converted)
    hpa_annotations.remove_reserved(converted)
    return converted


def from_v2(hpa: Object) -> Object:
    """The v2beta1 form of a v2 object, which has its defaults."""
    spec = {**(hpa.get("spec") or {})}
    annotations = hpa_annotations.behavior_annotation(spec)
    spec.pop("behavior", None)
    if "metrics" in spec:
        spec["metrics"] = [hpa_flat_metrics.from_v2(metric, hpa_flat_metrics.SPEC) for metric in spec["metrics"]]
    status = hpa_v2beta2.status_from_v2(hpa.get("status") or {})
    current_metrics = [
        hpa_flat_metrics.from_v2(metric, hpa_flat_metrics.STATUS) for metric in status["currentMetrics"] or []
    ]
    status["currentMetrics"] = current_metrics or None
    converted: Object = {**hpa, "apiVersion": API_VERSION, "spec": spec, "status": status}
    hpa_annotations.set_reserved(converted, annotations)
    return converted
