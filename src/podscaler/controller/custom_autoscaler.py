"""Reading a PodAutoscaler, whose API server knows less of it than of a HorizontalPodAutoscaler.

The watch of PodAutoscalers decodes with it. A custom resource is stored as it was written: a quantity may be a number,
which the API server makes a text in a HorizontalPodAutoscaler.
"""

from typing import Any

import msgspec

from podscaler.api.autoscaling import HorizontalPodAutoscaler

SOURCES = ("resource", "containerResource", "pods", "object", "external")
QUANTITIES = ("value", "averageValue")
_AUTOSCALER = msgspec.json.Decoder(HorizontalPodAutoscaler)


def decode(raw: msgspec.Raw | bytes) -> HorizontalPodAutoscaler:
    """The object. Raises ValueError where it cannot be read."""
    try:
        return _AUTOSCALER.decode(raw)
    except msgspec.ValidationError:
        return msgspec.convert(with_quantities(msgspec.json.decode(raw)), HorizontalPodAutoscaler)


def with_quantities(obj: Any) -> Any:
    """The object (JSON-ready data, changed in place) with the quantities of its spec as texts."""
    spec = (obj.get("spec") or {}) if isinstance(obj, dict) else {}
    for metric in spec.get("metrics") or ():
        for source in SOURCES:
            _make_texts((metric.get(source) or {}).get("target") or {}, QUANTITIES)
    for rules in (spec.get("behavior") or {}).values():
        _make_texts(rules or {}, ("tolerance",))
    return obj


def _make_texts(part: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if isinstance(part.get(name), int | float):
            part[name] = str(part[name])
