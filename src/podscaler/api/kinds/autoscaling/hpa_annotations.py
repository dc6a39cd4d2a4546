"""The annotations in which older versions of HorizontalPodAutoscaler carry what they have no fields for.

Called by the conversions of those versions. The annotations belong to the conversion: no version shows one that it does
not write itself, and none is stored. Objects are changed at their top only; their parts are replaced.

The JSON in annotations is read as Go reads it into structs: keys match whatever their case, unknown keys are skipped,
null counts as absent, fields that are always present get Go's zero. An annotation with a value of the wrong type counts
as absent.

Source: docs/spec/api.md 4 (Conversion).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

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
"""All of them: never set nor seen through v2."""

MESSAGES = {
    METRICS: hpa_flat_metrics.SPEC,
    CURRENT_METRICS: hpa_flat_metrics.STATUS,
    BEHAVIOR: "autoscaling/v2.HorizontalPodAutoscalerBehavior",
    CONDITIONS: "autoscaling/v2.HorizontalPodAutoscalerCondition",
}
"""The type of the annotations that hold JSON: of the elements of a list, except for BEHAVIOR."""


def of(hpa: Object) -> dict[str, str]:
    """All annotations of an object."""
    return (hpa.get("metadata") or {}).get("annotations") or {}


def noted(hpa: Object, key: str) -> Any | None:
    """The value of one of the JSON annotations (MESSAGES); None where it is missing or cannot be read."""
    try:
        value = json_text.parse(of(hpa).get(key, "").encode())
        if value is None:
            return None
        return _read_struct(value, MESSAGES[key]) if key == BEHAVIOR else read_list(value, MESSAGES[key])
    except ValueError:
        return None


def read_list(value: Any, message: str) -> list[Any]:
    """The elements of a JSON list as complete values of `message`. Raises ValueError for a value of the wrong type."""
    if not isinstance(value, list):
        raise ValueError(f"no list: {value!r}")
    return [_read(item, message) for item in value]


def _read_struct(value: Any, message: str) -> Object:
    if not isinstance(value, dict):
        raise ValueError(f"no object: {value!r}")
    fields, folded, always = _fields(message)
    found = {}
    for key, part in value.items():
        name = key if key in fields else folded.get(key.casefold())
        if name is not None and part is not None:
            found[name] = _read_field(part, fields[name])
    for name in always:
        if name not in found:
            found[name] = _read(None, fields[name].type)
    return {name: found[name] for name in fields if name in found}


@cache
def _fields(message: str) -> tuple[dict[str, Field], dict[str, str], tuple[str, ...]]:
    """The fields of a message by name, their names by the folded ones, and the names of those always present."""
    fields = {field.name: field for field in schema.get_message(message).json_fields()}
    always = tuple(name for name, field in fields.items() if _is_always_present(field))
    return fields, {name.casefold(): name for name in fields}, always


def _is_always_present(field: Field) -> bool:
    """Whether Go writes the field of an empty struct; `omitempty` does not leave out structs such as Time."""
    return not (field.pointer or field.repeated or field.map) and (not field.omitempty or field.type == schema.TIME)


def _read_field(value: Any, field: Field) -> Any:
    if field.repeated:
        return read_list(value, field.type)
    if not field.map:
        return _read(value, field.type)
    if not isinstance(value, dict):
        raise ValueError(f"no object: {value!r}")
    return {key: _read(part, field.type) for key, part in value.items()}


def _read(value: Any, kind: str) -> Any:
    """A single value of a scalar type or a message; null is Go's zero."""
    if kind not in _READERS:
        return _read_struct({} if value is None else value, kind)
    return ZERO_VALUES[kind] if value is None else _READERS[kind](value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"no string: {value!r}")
    return value


def _integer(value: Any, bits: int) -> int:
    if type(value) is not int or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"no int{bits}: {value!r}")
    return value


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | json_text.Number):
        raise ValueError(f"no quantity: {value!r}")
    return str(Quantity.parse(value.text if isinstance(value, json_text.Number) else str(value)))


_READERS: dict[str, Callable[[Any], Any]] = {
    "string": _string,
    "int32": lambda value: _integer(value, 32),
    "int64": lambda value: _integer(value, 64),
    schema.QUANTITY: _quantity,
    schema.TIME: lambda value: timestamps.seconds(_string(value)),
}


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
