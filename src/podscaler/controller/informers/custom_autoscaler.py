"""Decodes and validates a PodAutoscaler, which its API server checks less than a HorizontalPodAutoscaler.

Called by `observed_objects` and by `podscaler.controller.coexistence.counterpart`. A custom resource is stored as it
was written: a quantity may be a number, which the API server makes a string in a HorizontalPodAutoscaler. An API server
without validation rules stores what it would reject in a HorizontalPodAutoscaler. A new type of metric: its field in
METRIC_SOURCES.
"""

from typing import Any

import msgspec

from podscaler.api.kinds.autoscaling import hpa_defaults, hpa_validation
from podscaler.api.typed.autoscaling import HorizontalPodAutoscaler

METRIC_SOURCES = ("resource", "containerResource", "pods", "object", "external")
QUANTITY_FIELDS = ("value", "averageValue")
_AUTOSCALER = msgspec.json.Decoder(HorizontalPodAutoscaler)


def decode(autoscaler_json: msgspec.Raw | bytes) -> HorizontalPodAutoscaler:
    """The object in JSON, with the numbers in quantity fields read as strings. Raises ValueError."""
    try:
        return _AUTOSCALER.decode(autoscaler_json)
    except msgspec.ValidationError:
        return msgspec.convert(with_quantities(msgspec.json.decode(autoscaler_json)), HorizontalPodAutoscaler)


def fault(autoscaler_json: msgspec.Raw | bytes) -> str:
    """The first error of a HorizontalPodAutoscaler with this spec; empty: none. Raises ValueError if it is not JSON."""
    autoscaler = with_quantities(msgspec.json.decode(autoscaler_json))
    hpa_defaults.set_v2_defaults(autoscaler)
    field_errors = hpa_validation.validate(autoscaler, None)
    return f"the spec is invalid: {field_errors[0]}" if field_errors else ""


def with_quantities(autoscaler: Any) -> Any:
    """The object (JSON-ready data, changed in place) with the quantities of its spec as strings."""
    spec = (autoscaler.get("spec") or {}) if isinstance(autoscaler, dict) else {}
    for metric in spec.get("metrics") or ():
        for source in METRIC_SOURCES:
            _stringify_numbers((metric.get(source) or {}).get("target") or {}, QUANTITY_FIELDS)
    for scaling_rules in (spec.get("behavior") or {}).values():
        _stringify_numbers(scaling_rules or {}, ("tolerance",))
    return autoscaler


def _stringify_numbers(fields: dict[str, Any], names: tuple[str, ...]) -> None:
    """Replace the numbers of these fields by strings, in place: `{"value": 5}` becomes `{"value": "5"}`."""
    for name in names:
        if isinstance(fields.get(name), int | float):
            fields[name] = str(fields[name])
