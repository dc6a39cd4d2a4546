"""Conversion of HorizontalPodAutoscaler between autoscaling/v1 and v2.

v1 knows one metric, cpu utilization; what it cannot say travels in annotations, so that a client of v1 that writes back
what it read loses almost nothing (spec/api.md 4 lists the exceptions).

Called by the record. Inputs are not changed.

Source: spec/api.md 4.
"""

from typing import Any

from podscaler.api import json_text
from podscaler.api.kinds import hpa_defaults, hpa_metrics_v1, hpa_v1_annotations
from podscaler.api.resources import Object

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = f"{_PREFIX}metrics"
CURRENT_METRICS = f"{_PREFIX}current-metrics"
BEHAVIOR = f"{_PREFIX}behavior"
CONDITIONS = f"{_PREFIX}conditions"
RESERVED = frozenset(
    {METRICS, CURRENT_METRICS, BEHAVIOR, CONDITIONS, f"{_PREFIX}scale-down-tolerance", f"{_PREFIX}scale-up-tolerance"}
)
"""Annotations that belong to the conversion: never set nor seen through v2."""

_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message", "observedGeneration")
_KEPT_SPEC = ("scaleTargetRef", "minReplicas", "maxReplicas")


def strip_annotations(hpa: Object) -> None:
    """Remove the reserved annotations, in place (the map itself is replaced, not changed)."""
    meta = hpa.get("metadata") or {}
    annotations = meta.get("annotations") or {}
    if not RESERVED & set(annotations):
        return
    kept = {key: value for key, value in annotations.items() if key not in RESERVED}
    hpa["metadata"] = {**meta, "annotations": kept}
    if not kept:
        del hpa["metadata"]["annotations"]


def to_v2(hpa: Object) -> Object:
    """The v2 form of a v1 object."""
    notes = (hpa.get("metadata") or {}).get("annotations") or {}
    spec, status = hpa.get("spec") or {}, hpa.get("status") or {}
    converted: Object = {**hpa, "apiVersion": "autoscaling/v2"}
    converted["spec"] = _spec_to_v2(spec, notes)
    converted["status"] = _status_to_v2(status, notes)
    strip_annotations(converted)
    return converted


def _spec_to_v2(spec: Object, notes: dict[str, str]) -> Object:
    converted: Object = {name: spec[name] for name in _KEPT_SPEC if name in spec}
    noted = hpa_v1_annotations.read(notes.get(METRICS, ""), hpa_v1_annotations.metric_specs) or []
    metrics = [hpa_metrics_v1.spec_to_v2(metric) for metric in noted]
    target_pct = spec.get("targetCPUUtilizationPercentage")
    if target_pct is not None:
        metrics.append(hpa_defaults.cpu_utilization(target_pct))
    converted["metrics"] = metrics or [hpa_defaults.cpu_utilization(hpa_defaults.DEFAULT_UTILIZATION_PCT)]
    if behavior := hpa_v1_annotations.read(notes.get(BEHAVIOR, ""), hpa_v1_annotations.behavior):
        converted["behavior"] = behavior
    return converted


def _status_to_v2(status: Object, notes: dict[str, str]) -> Object:
    kept = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
    converted: Object = {name: status[name] for name in kept if name in status}
    noted = hpa_v1_annotations.read(notes.get(CURRENT_METRICS, ""), hpa_v1_annotations.metric_statuses)
    current_pct = status.get("currentCPUUtilizationPercentage")
    if noted:
        converted["currentMetrics"] = [hpa_metrics_v1.status_to_v2(metric) for metric in noted]
    elif current_pct is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": current_pct}}
        converted["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    if conditions := hpa_v1_annotations.read(notes.get(CONDITIONS, ""), hpa_v1_annotations.conditions):
        converted["conditions"] = conditions
    holder: Object = {"status": converted}
    hpa_defaults.fill_status(holder)
    return converted


def from_v2(hpa: Object) -> Object:
    """The v1 form of a v2 object (complete with defaults)."""
    converted: Object = {**hpa, "apiVersion": "autoscaling/v1"}
    strip_annotations(converted)
    spec, status = hpa.get("spec") or {}, hpa.get("status") or {}
    if notes := _notes(spec, status):
        meta = converted.get("metadata") or {}
        converted["metadata"] = {**meta, "annotations": {**(meta.get("annotations") or {}), **notes}}
    converted["spec"] = {name: spec[name] for name in _KEPT_SPEC if name in spec}
    targets = [metric["resource"]["target"]["averageUtilization"] for metric in _cpu_metrics(spec)]
    if targets:
        converted["spec"]["targetCPUUtilizationPercentage"] = targets[0]
    converted["status"] = _status_from_v2(status)
    return converted


def _status_from_v2(status: Object) -> Object:
    converted: Object = {name: status[name] for name in ("observedGeneration", "lastScaleTime") if name in status}
    converted["currentReplicas"] = status.get("currentReplicas", 0)
    converted["desiredReplicas"] = status.get("desiredReplicas", 0)
    seen = [
        metric["resource"]["current"]["averageUtilization"]
        for metric in status.get("currentMetrics") or []
        if _is_cpu_with(metric, "current")
    ]
    if seen:
        converted["currentCPUUtilizationPercentage"] = seen[-1]
    return converted


def _is_cpu_with(metric: Object, part: str) -> bool:
    source = metric.get("resource") or {}
    utilization = (source.get(part) or {}).get("averageUtilization")
    return metric.get("type") == "Resource" and source.get("name") == "cpu" and utilization is not None


def _cpu_metrics(spec: Object) -> list[Object]:
    return [metric for metric in spec.get("metrics") or [] if _is_cpu_with(metric, "target")]


def _notes(spec: Object, status: Object) -> dict[str, str]:
    """The annotations that carry what v1 cannot say."""
    parts: dict[str, Any] = {
        METRICS: [
            hpa_metrics_v1.spec_from_v2(metric)
            for metric in spec.get("metrics") or []
            if not _is_cpu_with(metric, "target")
        ],
        CURRENT_METRICS: [hpa_metrics_v1.status_from_v2(metric) for metric in status.get("currentMetrics") or []],
        CONDITIONS: [_condition(condition) for condition in status.get("conditions") or []],
    }
    if spec.get("behavior") is not None:
        parts[BEHAVIOR] = _behavior(spec["behavior"])
    return {key: json_text.encode(value).decode() for key, value in parts.items() if value}


def _condition(condition: Object) -> Object:
    return {name: condition[name] for name in _CONDITION if name in condition}


def _behavior(behavior: Object) -> Object:
    return {"ScaleUp": _rules(behavior.get("scaleUp")), "ScaleDown": _rules(behavior.get("scaleDown"))}


def _rules(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    policies = rules.get("policies")
    return {
        "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
        "SelectPolicy": rules.get("selectPolicy"),
        "Policies": None if policies is None else [_policy(policy) for policy in policies],
        "Tolerance": rules.get("tolerance"),
    }


def _policy(policy: Object) -> Object:
    kind, value, period_s = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    return {"Type": kind, "Value": value, "PeriodSeconds": period_s}
