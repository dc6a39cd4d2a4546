"""Converts HorizontalPodAutoscaler between autoscaling/v2beta2 and v2.

v2beta2 is v2 without tolerances, which are quantities in two annotations, and without the observedGeneration of
conditions, which is lost.

`hpa_removed_versions` registers the conversion in a Resource; `hpa_v2beta1` uses `status_from_v2`. Arguments are not
changed. To keep a new field of v2: another annotation, as those in _TOLERANCES.

Source: docs/spec/api.md 6 (Older versions); Kubernetes' annotations scale-up-tolerance and scale-down-tolerance.
"""

from typing import Any

from podscaler.api.kinds.autoscaling import hpa_annotations, hpa_defaults
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object
from podscaler.api.text.json_text import DecodeError

API_VERSION = "autoscaling/v2beta2"
MESSAGE = "autoscaling/v2beta2.HorizontalPodAutoscaler"
"""The name of its messages in `api.schema.schema`, by which bodies are decoded."""

_TOLERANCES = {"scaleDown": hpa_annotations.SCALE_DOWN_TOLERANCE, "scaleUp": hpa_annotations.SCALE_UP_TOLERANCE}
"""Direction of a behavior -> the annotation with its tolerance."""
_CONDITION_FIELDS = ("type", "status", "lastTransitionTime", "reason", "message")


def to_v2(hpa: Object) -> Object:
    """The v2 form of a v2beta2 object. Raises DecodeError for a tolerance annotation that is no quantity."""
    converted: Object = {**hpa, "apiVersion": "autoscaling/v2"}
    spec = {**(hpa.get("spec") or {})}
    behavior = _with_tolerances(spec.get("behavior"), hpa_annotations.annotations_of(hpa))
    if behavior is not None:
        spec["behavior"] = behavior
    converted["spec"] = spec
    converted["status"] = {**(hpa.get("status") or {})}
    hpa_defaults.set_status_defaults(converted)
    hpa_annotations.remove_reserved(converted)
    return converted


def _with_tolerances(behavior: Object | None, annotations: dict[str, str]) -> Object | None:
    """A behavior with the tolerances of the annotations; None without a behavior and without such annotations.

    Raises DecodeError for an annotation that is no quantity.
    """
    rules_by_direction = {}
    for direction, annotation in _TOLERANCES.items():
        if annotation in annotations:
            tolerance = _parse_tolerance(annotation, annotations[annotation])
            rules_by_direction[direction] = {**((behavior or {}).get(direction) or {}), "tolerance": tolerance}
    return {**(behavior or {}), **rules_by_direction} if rules_by_direction else behavior


def _parse_tolerance(annotation: str, quantity_text: str) -> str:
    """The quantity of an annotation in canonical form. Raises DecodeError."""
    try:
        return str(Quantity.parse(quantity_text))
    except ValueError as error:
        raise DecodeError(f'failed to parse annotation "{annotation}": {error}') from None


def from_v2(hpa: Object) -> Object:
    """The v2beta2 form of a v2 object, which has its defaults."""
    converted: Object = {**hpa, "apiVersion": API_VERSION}
    spec = {**(hpa.get("spec") or {})}
    behavior = spec.get("behavior") or {}
    hpa_annotations.set_reserved(converted, _tolerance_annotations(behavior))
    if "behavior" in spec:
        spec["behavior"] = {direction: _without_tolerance(rules) for direction, rules in behavior.items()}
    converted["spec"] = spec
    converted["status"] = status_from_v2(hpa.get("status") or {})
    return converted


def _tolerance_annotations(behavior: Object) -> dict[str, str]:
    """The annotations with the tolerances of a v2 behavior: key -> quantity."""
    tolerances = {key: (behavior.get(direction) or {}).get("tolerance") for direction, key in _TOLERANCES.items()}
    return {key: tolerance for key, tolerance in tolerances.items() if tolerance is not None}


def _without_tolerance(rules: Object) -> Object:
    return {field: value for field, value in rules.items() if field != "tolerance"}


def status_from_v2(status: Object) -> Object:
    """A status with the fields that v2beta2 and older versions always have; its metrics are still those of v2."""
    return {
        **{name: status[name] for name in ("observedGeneration", "lastScaleTime") if name in status},
        "currentReplicas": status.get("currentReplicas", 0),
        "desiredReplicas": status.get("desiredReplicas", 0),
        "currentMetrics": status.get("currentMetrics") or None,
        "conditions": _v2beta2_conditions(status.get("conditions")),
    }


def _v2beta2_conditions(conditions: Any) -> list[Object] | None:
    """The conditions with the fields that v2beta2 has; None for an empty or missing list."""
    converted = [
        {name: condition[name] for name in _CONDITION_FIELDS if name in condition} for condition in conditions or []
    ]
    return converted or None
