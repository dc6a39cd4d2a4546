"""Converts HorizontalPodAutoscaler between autoscaling/v1 and v2.

v1 has one metric, cpu utilization; everything else is in annotations, so that a client of v1 that writes back
what it read loses almost nothing (docs/spec/api.md 4 (Conversion) lists the exceptions).

Called by `hpa`, whose RESOURCE registers the conversion, and by `hpa_extensions_v1beta1`. Arguments are not changed. To
keep a new field of v2: an annotation (`hpa_annotations`), written in `_v1_annotations` and read in `_spec_to_v2` or
`_status_to_v2`.

Source: docs/spec/api.md 4.
"""

from podscaler.api.kinds.autoscaling import hpa_annotations, hpa_defaults, hpa_flat_metrics
from podscaler.api.resource.resources import Object

_CONDITION_FIELDS = ("type", "status", "lastTransitionTime", "reason", "message", "observedGeneration")
_COMMON_SPEC_FIELDS = ("scaleTargetRef", "minReplicas", "maxReplicas")


def to_v2(hpa: Object) -> Object:
    """The v2 form of a v1 object."""
    converted: Object = {**hpa, "apiVersion": "autoscaling/v2"}
    converted["spec"] = _spec_to_v2(hpa)
    converted["status"] = _status_to_v2(hpa)
    hpa_annotations.remove_reserved(converted)
    return converted


def _spec_to_v2(hpa: Object) -> Object:
    """The spec of v2: metrics and behavior are read from annotations; CPU comes last, and is the default."""
    spec = hpa.get("spec") or {}
    converted: Object = {name: spec[name] for name in _COMMON_SPEC_FIELDS if name in spec}
    annotated_metrics = hpa_annotations.find_value(hpa, hpa_annotations.METRICS) or []
    metrics = [hpa_flat_metrics.to_v2(metric, hpa_flat_metrics.SPEC) for metric in annotated_metrics]
    target_pct = spec.get("targetCPUUtilizationPercentage")
    if target_pct is not None:
        metrics.append(hpa_defaults.cpu_utilization_metric(target_pct))
    converted["metrics"] = metrics or [hpa_defaults.cpu_utilization_metric(hpa_defaults.DEFAULT_UTILIZATION_PCT)]
    if behavior := hpa_annotations.find_value(hpa, hpa_annotations.BEHAVIOR):
        converted["behavior"] = behavior
    return converted


def _status_to_v2(hpa: Object) -> Object:
    """The status of v2: metrics and conditions are read from annotations."""
    status = hpa.get("status") or {}
    common_fields = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
    converted: Object = {name: status[name] for name in common_fields if name in status}
    annotated_metrics = hpa_annotations.find_value(hpa, hpa_annotations.CURRENT_METRICS)
    current_pct = status.get("currentCPUUtilizationPercentage")
    if annotated_metrics:
        converted["currentMetrics"] = [
            hpa_flat_metrics.to_v2(metric, hpa_flat_metrics.STATUS) for metric in annotated_metrics
        ]
    elif current_pct is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": current_pct}}
        converted["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    if conditions := hpa_annotations.find_value(hpa, hpa_annotations.CONDITIONS):
        converted["conditions"] = conditions
    hpa_defaults.set_status_defaults({"status": converted})  # takes a whole autoscaler
    return converted


def from_v2(hpa: Object) -> Object:
    """The v1 form of a v2 object, which has its defaults; of several cpu targets, v1 has the first."""
    converted: Object = {**hpa, "apiVersion": "autoscaling/v1"}
    spec, status = hpa.get("spec") or {}, hpa.get("status") or {}
    hpa_annotations.set_reserved(converted, _v1_annotations(spec, status))
    converted["spec"] = {name: spec[name] for name in _COMMON_SPEC_FIELDS if name in spec}
    cpu_targets_pct = [
        metric["resource"]["target"]["averageUtilization"]
        for metric in spec.get("metrics") or []
        if _is_cpu_utilization(metric, "target")
    ]
    if cpu_targets_pct:
        converted["spec"]["targetCPUUtilizationPercentage"] = cpu_targets_pct[0]
    converted["status"] = _status_from_v2(status)
    return converted


def _status_from_v2(status: Object) -> Object:
    """The fields of the status that v1 has; of several cpu utilizations the last one, as upstream."""
    converted: Object = {name: status[name] for name in ("observedGeneration", "lastScaleTime") if name in status}
    converted["currentReplicas"] = status.get("currentReplicas", 0)
    converted["desiredReplicas"] = status.get("desiredReplicas", 0)
    utilizations_pct = [
        metric["resource"]["current"]["averageUtilization"]
        for metric in status.get("currentMetrics") or []
        if _is_cpu_utilization(metric, "current")
    ]
    if utilizations_pct:
        converted["currentCPUUtilizationPercentage"] = utilizations_pct[-1]
    return converted


def _is_cpu_utilization(metric: Object, amounts_field: str) -> bool:
    """Whether a metric is the cpu utilization of pods; its amounts are in `target` (spec) or `current` (status)."""
    source = metric.get("resource") or {}
    utilization = (source.get(amounts_field) or {}).get("averageUtilization")
    return metric.get("type") == "Resource" and source.get("name") == "cpu" and utilization is not None


def _v1_annotations(spec: Object, status: Object) -> dict[str, str]:
    """The annotations with the fields of v2 that v1 does not have: key -> JSON."""
    metrics = spec.get("metrics") or []
    lists_by_annotation: dict[str, list[Object]] = {
        hpa_annotations.METRICS: [
            hpa_flat_metrics.from_v2(metric, hpa_flat_metrics.SPEC)
            for metric in metrics
            if not _is_cpu_utilization(metric, "target")
        ],
        hpa_annotations.CURRENT_METRICS: [
            hpa_flat_metrics.from_v2(metric, hpa_flat_metrics.STATUS) for metric in status.get("currentMetrics") or []
        ],
        hpa_annotations.CONDITIONS: [_v1_condition(condition) for condition in status.get("conditions") or []],
    }
    annotations = {key: hpa_annotations.encode(members) for key, members in lists_by_annotation.items() if members}
    return annotations | hpa_annotations.behavior_annotation(spec)


def _v1_condition(condition: Object) -> Object:
    return {name: condition[name] for name in _CONDITION_FIELDS if name in condition}
