"""API defaults of HorizontalPodAutoscaler in both versions, and what its status always shows.

Called by the record in place, before validation; and again when an object is read, so that an object stored through v1
(which defaults no behavior) appears complete in v2.

Source: docs/spec/api.md 1 (Types).
"""

from podscaler.api.resource.resources import Object

DEFAULT_UTILIZATION_PCT = 80


def set_v2_defaults(hpa: Object) -> None:
    """Defaults of autoscaling/v2: one replica at least, 80 % of cpu, and both directions of a behavior."""
    spec = hpa.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_utilization(DEFAULT_UTILIZATION_PCT)]
    if (behavior := spec.get("behavior")) is not None:
        _set_behavior_defaults(behavior)


def set_v1_defaults(hpa: Object) -> None:
    """Defaults of autoscaling/v1; the default metric comes with the conversion."""
    hpa.setdefault("spec", {}).setdefault("minReplicas", 1)


def cpu_utilization(target_pct: int) -> Object:
    """A v2 metric: average cpu utilization of the pods."""
    target = {"type": "Utilization", "averageUtilization": target_pct}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def set_status_defaults(hpa: Object) -> None:
    """What a v2 status always shows, in place: desiredReplicas, and null where it says nothing of current metrics."""
    status = hpa.get("status") or {}
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    status.setdefault("desiredReplicas", 0)
    status.setdefault("currentMetrics", None)
    for condition in status.get("conditions") or []:
        condition.setdefault("lastTransitionTime", None)
    hpa["status"] = status


def _set_behavior_defaults(behavior: Object) -> None:
    up, down = behavior.setdefault("scaleUp", {}), behavior.setdefault("scaleDown", {})
    up.setdefault("stabilizationWindowSeconds", 0)
    up.setdefault("selectPolicy", "Max")
    up.setdefault("policies", [_policy("Pods", 4), _policy("Percent", 100)])
    down.setdefault("selectPolicy", "Max")
    down.setdefault("policies", [_policy("Percent", 100)])


def _policy(kind: str, value: int) -> Object:
    return {"type": kind, "value": value, "periodSeconds": 15}
