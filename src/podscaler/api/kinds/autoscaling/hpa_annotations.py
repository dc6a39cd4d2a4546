"""The annotations in which older versions of HorizontalPodAutoscaler carry what they have no fields for.

Called by the conversions of those versions. The annotations belong to the conversion: no version shows one that it does
not write itself, and none is stored. Objects are changed at their top only; their parts are replaced.

Source: docs/spec/api.md 4 (Conversion).
"""

from typing import Any

from podscaler.api.kinds.autoscaling import hpa_v1_annotations
from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = f"{_PREFIX}metrics"
CURRENT_METRICS = f"{_PREFIX}current-metrics"
BEHAVIOR = f"{_PREFIX}behavior"
CONDITIONS = f"{_PREFIX}conditions"
SCALE_UP_TOLERANCE = f"{_PREFIX}scale-up-tolerance"
SCALE_DOWN_TOLERANCE = f"{_PREFIX}scale-down-tolerance"
RESERVED = frozenset({METRICS, CURRENT_METRICS, BEHAVIOR, CONDITIONS, SCALE_UP_TOLERANCE, SCALE_DOWN_TOLERANCE})
"""All of them: never set nor seen through v2."""

READERS = {
    METRICS: hpa_v1_annotations.metric_specs,
    CURRENT_METRICS: hpa_v1_annotations.metric_statuses,
    BEHAVIOR: hpa_v1_annotations.behavior,
    CONDITIONS: hpa_v1_annotations.conditions,
}
"""How those that hold JSON are read (`hpa_v1_annotations.read`)."""


def of(hpa: Object) -> dict[str, str]:
    """All annotations of an object."""
    return (hpa.get("metadata") or {}).get("annotations") or {}


def noted(hpa: Object, key: str) -> Any | None:
    """What one of the JSON annotations says; None where it is missing or cannot be read."""
    return hpa_v1_annotations.read(of(hpa).get(key, ""), READERS[key])


def strip(hpa: Object) -> None:
    """Remove the reserved annotations."""
    annotations = of(hpa)
    if RESERVED & set(annotations):
        _put(hpa, {key: value for key, value in annotations.items() if key not in RESERVED})


def replace(hpa: Object, notes: dict[str, str]) -> None:
    """Remove the reserved annotations and write `notes` in their place."""
    strip(hpa)
    if notes:
        _put(hpa, of(hpa) | notes)


def _put(hpa: Object, annotations: dict[str, str]) -> None:
    meta = {**(hpa.get("metadata") or {}), "annotations": annotations}
    if not annotations:
        del meta["annotations"]
    hpa["metadata"] = meta


def text(value: Any) -> str:
    """JSON as Go writes it into annotations."""
    return json_text.encode(value).decode()


def behavior_note(spec: Object) -> dict[str, str]:
    """The annotation for a v2 spec's behavior, nothing where it has none."""
    behavior = spec.get("behavior")
    if behavior is None:
        return {}
    both = {"ScaleUp": _rules(behavior.get("scaleUp")), "ScaleDown": _rules(behavior.get("scaleDown"))}
    return {BEHAVIOR: text(both)}


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
