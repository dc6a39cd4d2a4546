"""Converts single metrics of an autoscaler between the flat form of autoscaling/v2beta1 and v2.

    {"type": "Pods", "pods": {"metricName": "qps", "targetAverageValue": "10"}}                          flat
    {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "10"}}}

The annotations of autoscaling/v1 hold metrics in the flat form, too. The flat fields, their order (an annotation is
text) and those that are always present come from `api.schema`; `_PATHS_IN_V2` has their paths in v2.

Source: docs/spec/api.md 4 (Conversion): the table of shapes, and how the type of the target is rebuilt.
"""

from functools import cache
from typing import Any

from podscaler.api.resource.resources import Object
from podscaler.api.schema import schema
from podscaler.api.schema.decode_values import ZERO_VALUES
from podscaler.api.schema.schema import Field

SPEC = "autoscaling/v2beta1.MetricSpec"
STATUS = "autoscaling/v2beta1.MetricStatus"

_SOURCES = ("object", "pods", "resource", "containerResource", "external")
_PATHS_IN_V2 = {
    "target": ("describedObject",),
    "metricName": ("metric", "name"),
    "selector": ("metric", "selector"),
    "metricSelector": ("metric", "selector"),
    "targetValue": ("target", "value"),
    "targetAverageValue": ("target", "averageValue"),
    "targetAverageUtilization": ("target", "averageUtilization"),
    "currentValue": ("current", "value"),
    "currentAverageValue": ("current", "averageValue"),
    "currentAverageUtilization": ("current", "averageUtilization"),
    "name": ("name",),
    "container": ("container",),
}
"""Field of a flat source (`pods`, `resource`, ...) -> its path in a source of v2."""
_AVERAGE_VALUE_PATHS = {SPEC: ("target", "averageValue"), STATUS: ("current", "averageValue")}
"""SPEC or STATUS -> the path in v2 of `averageValue`, a flat field of Object metrics."""


def to_v2(metric: Object, message: str) -> Object:
    """The v2 form of a complete flat metric of `message` (SPEC or STATUS)."""
    converted: Object = {"type": metric.get("type", "")}
    for name in _SOURCES:
        if (flat := metric.get(name)) is not None:
            converted[name] = _source_to_v2(name, flat, message)
    return converted


def _source_to_v2(name: str, flat: Object, message: str) -> Object:
    """The nested source of v2 for a flat one; the zero target beside an average value is dropped."""
    source: Object = {"target": {"type": _target_type(name, flat)}} if message == SPEC else {}
    for field, value in flat.items():
        *parents, last = _PATHS_IN_V2.get(field, _AVERAGE_VALUE_PATHS[message])
        parent = source.setdefault(parents[0], {}) if parents else source
        parent[last] = _reference(value) if field == "target" else value
    if message == SPEC and "averageValue" in flat and flat["targetValue"] == "0":
        del source["target"]["value"]
    return source


def _target_type(name: str, flat: Object) -> str:
    if flat.get("targetAverageUtilization") is not None:
        return "Utilization"
    has_value = flat.get("targetValue") is not None and flat.get("averageValue") is None
    return "Value" if name in ("object", "external") and has_value else "AverageValue"


def from_v2(metric: Object, message: str) -> Object:
    """The flat form of a v2 metric, of `message` (SPEC or STATUS)."""
    converted: Object = {"type": metric.get("type", "")}
    for field in _fields(message):
        if field.name in _SOURCES and (source := metric.get(field.name)) is not None:
            converted[field.name] = _source_from_v2(source, field.type, message)
    return converted


def _source_from_v2(source: Object, flat_message: str, message: str) -> Object:
    """The flat source for a nested one of v2; fields without value are zero where Go writes them."""
    flat: Object = {}
    for field in _fields(flat_message):
        *parents, last = _PATHS_IN_V2.get(field.name, _AVERAGE_VALUE_PATHS[message])
        value: Any = ((source.get(parents[0]) or {}) if parents else source).get(last)
        if field.name == "target":
            flat[field.name] = _reference(value or {})
        elif value is not None or not field.omitempty:
            flat[field.name] = ZERO_VALUES[field.type] if value is None else value
    return flat


@cache
def _fields(message: str) -> tuple[Field, ...]:
    return tuple(schema.get_message(message).json_fields())


def _reference(ref: Object) -> Object:
    reference = {name: ref.get(name, "") for name in ("kind", "name", "apiVersion")}
    return reference if reference["apiVersion"] else {name: reference[name] for name in ("kind", "name")}
