"""Converts single metrics of an autoscaler between the flat form of autoscaling/v2beta1 and v2.

    {"type": "Pods", "pods": {"metricName": "qps", "targetAverageValue": "10"}}                          flat
    {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "10"}}}

The annotations of autoscaling/v1 hold metrics in the flat form, too. The flat fields, their order (an annotation is
text) and those that are always present come from `api.schema`; `_path_in_v2` has their paths in v2. Called by `hpa_v1`
and `hpa_v2beta1`. A new source: _SOURCES, and _PATHS_IN_V2 with its new fields.

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
"""Field of a flat source (`pods`, `resource`, ...) -> its path in a source of v2: one or two names."""
_AVERAGE_VALUE_PATHS = {SPEC: ("target", "averageValue"), STATUS: ("current", "averageValue")}
"""SPEC or STATUS -> the path in v2 of `averageValue`, a flat field of Object metrics."""


def to_v2(metric: Object, message: str) -> Object:
    """The v2 form of a complete flat metric of `message` (SPEC or STATUS)."""
    converted: Object = {"type": metric.get("type", "")}
    for source_field in _SOURCES:
        if (flat_source := metric.get(source_field)) is not None:
            converted[source_field] = _source_to_v2(source_field, flat_source, message)
    return converted


def _source_to_v2(source_field: str, flat_source: Object, message: str) -> Object:
    """The source of v2 for a flat one; the zero target beside an average value is dropped.

    Args:
        source_field: one of _SOURCES.
        flat_source: the flat source with all its fields.
        message: SPEC or STATUS.
    """
    source: Object = {"target": {"type": _target_type(source_field, flat_source)}} if message == SPEC else {}
    for field, value in flat_source.items():
        *parents, member = _path_in_v2(field, message)
        parent = source.setdefault(parents[0], {}) if parents else source
        parent[member] = _ordered_reference(value) if field == "target" else value
    if message == SPEC and "averageValue" in flat_source and flat_source["targetValue"] == "0":
        del source["target"]["value"]
    return source


def _path_in_v2(flat_field: str, message: str) -> tuple[str, ...]:
    """The path in a source of v2 of a field of a flat source; `message` is SPEC or STATUS."""
    return _AVERAGE_VALUE_PATHS[message] if flat_field == "averageValue" else _PATHS_IN_V2[flat_field]


def _target_type(source_field: str, flat_source: Object) -> str:
    """The type of the target in v2, which the flat form does not have."""
    if flat_source.get("targetAverageUtilization") is not None:
        return "Utilization"
    has_value = flat_source.get("targetValue") is not None and flat_source.get("averageValue") is None
    return "Value" if source_field in ("object", "external") and has_value else "AverageValue"


def from_v2(metric: Object, message: str) -> Object:
    """The flat form of a v2 metric, of `message` (SPEC or STATUS)."""
    converted: Object = {"type": metric.get("type", "")}
    for field in _json_fields(message):
        if field.name in _SOURCES and (source := metric.get(field.name)) is not None:
            converted[field.name] = _source_from_v2(source, field.type, message)
    return converted


def _source_from_v2(source: Object, flat_message: str, message: str) -> Object:
    """The flat source for one of v2; fields without a value are zero where Go writes them.

    Args:
        source: the source of v2.
        flat_message: the message of the flat source, with its fields.
        message: SPEC or STATUS.
    """
    flat_source: Object = {}
    for field in _json_fields(flat_message):
        *parents, member = _path_in_v2(field.name, message)
        parent: Object = (source.get(parents[0]) or {}) if parents else source
        value: Any = parent.get(member)
        if field.name == "target":
            flat_source[field.name] = _ordered_reference(value or {})
        elif value is not None or not field.omitempty:
            flat_source[field.name] = ZERO_VALUES[field.type] if value is None else value
    return flat_source


@cache
def _json_fields(message: str) -> tuple[Field, ...]:
    """The fields of a message in Go's order."""
    return tuple(schema.get_message(message).json_fields())


def _ordered_reference(reference: Object) -> Object:
    """The reference with its fields in Go's order; an empty apiVersion is left out, the others are not."""
    ordered = {name: reference.get(name, "") for name in ("kind", "name", "apiVersion")}
    if not ordered["apiVersion"]:
        del ordered["apiVersion"]
    return ordered
