"""Sets the API defaults of HorizontalPodAutoscaler (autoscaling/v1 and v2), in place.

The record `hpa` calls these functions before validation; and again when an object is read, so that an object stored
through v1, which has no behavior, has the defaults of v2. `podscaler.lint`, `podscaler.explain` and
`podscaler.controller.informers.custom_autoscaler` complete autoscalers that no API server has read.
`pod_autoscaler_schema` has the same defaults in the schema of PodAutoscaler. A new default goes into both.

Source: docs/spec/api.md 1 (Types).
"""

from podscaler.api.resource.resources import Object

DEFAULT_UTILIZATION_PCT = 80
_POLICY_PERIOD_S = 15
DEFAULT_FALLBACK_AFTER = "5m"
"""How long (a Go duration) no metric can be read before the fallback replicas of a failure policy apply."""


def set_v2_defaults(hpa: Object) -> None:
    """Defaults of autoscaling/v2: minReplicas 1, the metric cpu at 80 %, and both directions of a given behavior."""
    spec = hpa.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_utilization_metric(DEFAULT_UTILIZATION_PCT)]
    if (behavior := spec.get("behavior")) is not None:
        _set_behavior_defaults(behavior)


def set_v1_defaults(hpa: Object) -> None:
    """Defaults of autoscaling/v1: minReplicas 1; the conversion to v2 adds the default metric."""
    hpa.setdefault("spec", {}).setdefault("minReplicas", 1)


def cpu_utilization_metric(target_pct: int) -> Object:
    """The v2 metric with the average cpu utilization of the pods as target, in percent of their requests."""
    target = {"type": "Utilization", "averageUtilization": target_pct}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def set_status_defaults(hpa: Object) -> None:
    """Completes a v2 status as Go prints it, in place.

    desiredReplicas is always present, currentReplicas only above 0; missing metrics and transition times are null.
    """
    status = hpa.get("status") or {}
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    status.setdefault("desiredReplicas", 0)
    status.setdefault("currentMetrics", None)
    for condition in status.get("conditions") or []:
        condition.setdefault("lastTransitionTime", None)
    hpa["status"] = status


def default_scaling_rules() -> dict[str, Object]:
    """The defaults of a behavior by direction; a missing window of `scaleDown` is a flag of the controller."""
    scale_up = {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [_scaling_policy("Pods", 4), _scaling_policy("Percent", 100)],
    }
    return {"scaleUp": scale_up, "scaleDown": {"selectPolicy": "Max", "policies": [_scaling_policy("Percent", 100)]}}


def _set_behavior_defaults(behavior: Object) -> None:
    """Sets the defaults of both directions, in place."""
    for direction, default_rules in default_scaling_rules().items():
        direction_rules = behavior.setdefault(direction, {})
        for name, value in default_rules.items():
            direction_rules.setdefault(name, value)


def _scaling_policy(policy_type: str, value: int) -> Object:
    return {"type": policy_type, "value": value, "periodSeconds": _POLICY_PERIOD_S}
