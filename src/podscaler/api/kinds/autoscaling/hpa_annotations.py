"""Reads and writes the annotations in which older versions of HorizontalPodAutoscaler hold fields of autoscaling/v2.

    autoscaling.alpha.kubernetes.io/metrics: '[{"type":"Pods","pods":{"metricName":"qps",...}}]'      an object of v1

Called by the conversions of those versions (`hpa_v1` and its like) and by `conversion`. The annotations (RESERVED)
belong to the conversion: an object of any version has only those that its conversion writes, and stored objects have
none. Functions replace members of the given object, and never change the members' values. To keep a new field of v2 in
an older version: an annotation in RESERVED (and MESSAGES, if it is JSON); `conversion._ANNOTATIONS_READ` says which
versions read it.

The JSON in annotations is read as by Go: keys match in any case, unknown keys are skipped, null counts as absent,
missing fields without `omitempty` get Go's zero. An annotation with a value of the wrong type counts as absent.

Source: docs/spec/api.md 4 (Conversion).
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from podscaler.api.kinds.autoscaling import hpa_flat_metrics
from podscaler.api.machinery import timestamps
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object
from podscaler.api.schema import schema
from podscaler.api.schema.decode_values import ZERO_VALUES
from podscaler.api.schema.schema import Field
from podscaler.api.text import json_text

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = f"{_PREFIX}metrics"
CURRENT_METRICS = f"{_PREFIX}current-metrics"
BEHAVIOR = f"{_PREFIX}behavior"
CONDITIONS = f"{_PREFIX}conditions"
SCALE_UP_TOLERANCE = f"{_PREFIX}scale-up-tolerance"
SCALE_DOWN_TOLERANCE = f"{_PREFIX}scale-down-tolerance"
RESERVED = frozenset({METRICS, CURRENT_METRICS, BEHAVIOR, CONDITIONS, SCALE_UP_TOLERANCE, SCALE_DOWN_TOLERANCE})
"""All annotations of this module; objects of v2 have none of them."""

MESSAGES = {
    METRICS: hpa_flat_metrics.SPEC,
    CURRENT_METRICS: hpa_flat_metrics.STATUS,
    BEHAVIOR: "autoscaling/v2.HorizontalPodAutoscalerBehavior",
    CONDITIONS: "autoscaling/v2.HorizontalPodAutoscalerCondition",
}
"""Annotation with JSON -> the message (`api.schema`) of its value (BEHAVIOR), or of the elements of its list."""


def annotations_of(hpa: Object) -> dict[str, str]:
    """All annotations of an object."""
    return (hpa.get("metadata") or {}).get("annotations") or {}


def find_value(hpa: Object, annotation: str) -> Any | None:
    """The parsed value of a JSON annotation (a key of MESSAGES); None if it is missing or invalid."""
    try:
        parsed = json_text.parse(annotations_of(hpa).get(annotation, "").encode())
        if parsed is None:
            return None
        read_value = _read_struct if annotation == BEHAVIOR else read_list
        return read_value(parsed, MESSAGES[annotation])
    except ValueError:
        return None


def read_list(value: Any, message: str) -> list[Any]:
    """The elements of a JSON list as complete values of `message`. Raises ValueError for a value of the wrong type."""
    if not isinstance(value, list):
        raise ValueError(f"no list: {value!r}")
    return [_read_single(element, message) for element in value]


def _read_struct(value: Any, message: str) -> Object:
    """A JSON object as Go reads it into a struct: names in any case, unknown fields dropped, zero values added.

    Raises ValueError for a value of the wrong type, also in a field.
    """
    if not isinstance(value, dict):
        raise ValueError(f"no object: {value!r}")
    struct = _struct_of(message)
    struct_fields = {}
    for key, member in value.items():
        name = key if key in struct.fields else struct.names_by_folded_name.get(key.casefold())
        if name is not None and member is not None:
            struct_fields[name] = _read_field(member, struct.fields[name])
    for name in struct.always_present:
        if name not in struct_fields:
            struct_fields[name] = _read_single(None, struct.fields[name].type)
    return {name: struct_fields[name] for name in struct.fields if name in struct_fields}


class _Struct(NamedTuple):
    """The fields of a message by name; their names by case-folded name; the names of those that Go always writes."""

    fields: dict[str, Field]
    names_by_folded_name: dict[str, str]
    always_present: tuple[str, ...]


@cache
def _struct_of(message: str) -> _Struct:
    fields = {field.name: field for field in schema.get_message(message).json_fields()}
    always_present = tuple(name for name, field in fields.items() if _is_always_present(field))
    return _Struct(fields, {name.casefold(): name for name in fields}, always_present)


def _is_always_present(field: Field) -> bool:
    """Whether Go writes the field of an empty struct; `omitempty` does not leave out structs such as Time."""
    return not (field.pointer or field.repeated or field.map) and (not field.omitempty or field.type == schema.TIME)


def _read_field(value: Any, field: Field) -> Any:
    """The value of a field: a list, a map or a single value. Raises ValueError for a wrong type."""
    if field.repeated:
        return read_list(value, field.type)
    if not field.map:
        return _read_single(value, field.type)
    if not isinstance(value, dict):
        raise ValueError(f"no object: {value!r}")
    return {key: _read_single(member, field.type) for key, member in value.items()}


def _read_single(value: Any, type_name: str) -> Any:
    """A single value of a scalar type or a message; null is Go's zero. Raises ValueError for a wrong type."""
    if type_name not in _READERS:
        return _read_struct({} if value is None else value, type_name)
    return ZERO_VALUES[type_name] if value is None else _READERS[type_name](value)


def _read_string(value: Any) -> str:
    """A JSON string. Raises ValueError for another value."""
    if not isinstance(value, str):
        raise ValueError(f"no string: {value!r}")
    return value


def _read_integer(value: Any, bits: int) -> int:
    """A JSON number as a signed integer of so many bits. Raises ValueError."""
    if type(value) is not int or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"no int{bits}: {value!r}")
    return value


def _read_quantity(value: Any) -> str:
    """A quantity, written as a string or a number, in canonical form. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, str | int | json_text.Number):
        raise ValueError(f"no quantity: {value!r}")
    return str(Quantity.parse(value.text if isinstance(value, json_text.Number) else str(value)))


# Scalar type -> the function that reads a JSON value of it.
_READERS: dict[str, Callable[[Any], Any]] = {
    "string": _read_string,
    "int32": lambda value: _read_integer(value, 32),
    "int64": lambda value: _read_integer(value, 64),
    schema.QUANTITY: _read_quantity,
    schema.TIME: lambda value: timestamps.normalize_time(_read_string(value)),
}


def remove_reserved(hpa: Object) -> None:
    """Removes the RESERVED annotations, in place."""
    annotations = annotations_of(hpa)
    if RESERVED & set(annotations):
        _set_annotations(hpa, {key: value for key, value in annotations.items() if key not in RESERVED})


def set_reserved(hpa: Object, values: dict[str, str]) -> None:
    """Replaces all RESERVED annotations by `values` (key -> value), in place."""
    remove_reserved(hpa)
    if values:
        _set_annotations(hpa, annotations_of(hpa) | values)


def _set_annotations(hpa: Object, annotations: dict[str, str]) -> None:
    """Sets the annotations of an autoscaler, without changing its present metadata; an empty map removes them."""
    metadata = {**(hpa.get("metadata") or {}), "annotations": annotations}
    if not annotations:
        del metadata["annotations"]
    hpa["metadata"] = metadata


def encode(value: Any) -> str:
    """The text of a JSON value, as Go writes it."""
    return json_text.encode(value).decode()


def behavior_annotation(spec: Object) -> dict[str, str]:
    """The annotation with the behavior of a v2 spec: key -> JSON; empty if it has none."""
    behavior = spec.get("behavior")
    if behavior is None:
        return {}
    go_behavior = {"ScaleUp": _go_rules(behavior.get("scaleUp")), "ScaleDown": _go_rules(behavior.get("scaleDown"))}
    return {BEHAVIOR: encode(go_behavior)}


def _go_rules(rules: Object | None) -> Object | None:
    """Scaling rules with Go's field names: upstream writes its internal type, which has no JSON names."""
    if rules is None:
        return None
    policies = rules.get("policies")
    return {
        "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
        "SelectPolicy": rules.get("selectPolicy"),
        "Policies": None if policies is None else [_go_policy(policy) for policy in policies],
        "Tolerance": rules.get("tolerance"),
    }


def _go_policy(policy: Object) -> Object:
    """A scaling policy in the spelling of the annotation."""
    policy_type, value, period_s = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    return {"Type": policy_type, "Value": value, "PeriodSeconds": period_s}
