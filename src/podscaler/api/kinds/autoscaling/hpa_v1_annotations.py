"""Reading the JSON that autoscaling/v1 keeps in annotations, as Go reads it into its structs.

Called by `hpa_annotations` and `hpa_v2beta1`. A reader is a function from a parsed JSON value to clean data; it raises
ValueError for a value of the wrong type, and then the whole annotation counts as not there. Unknown keys are skipped,
keys match whatever their case, null counts as absent, absent values are filled with Go's zero where the struct has no
pointer.

Source: docs/spec/api.md 4 (Conversion).
"""

from collections.abc import Callable, Mapping
from typing import Any

from podscaler.api.machinery import timestamps
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.text import json_text

Reader = Callable[[Any], Any]


def read(text: str, reader: Reader) -> Any | None:
    """What the annotation holds, None if it does not parse."""
    try:
        value = json_text.parse(text.encode())
        return None if value is None else reader(value)
    except ValueError:
        return None


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"no string: {value!r}")
    return value


def _int32(value: Any) -> int:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise ValueError(f"no int32: {value!r}")
    return value


def _int64(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError(f"no int64: {value!r}")
    return value


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | json_text.Number):
        raise ValueError(f"no quantity: {value!r}")
    text = value.text if isinstance(value, json_text.Number) else str(value)
    return str(Quantity.parse(text))


def _time(value: Any) -> str:
    return timestamps.seconds(_string(value))


def _list_of(reader: Reader) -> Reader:
    """A reader of lists of objects; a null among them is an object with nothing in it."""

    def read_list(value: Any) -> list[Any]:
        return [reader({} if item is None else item) for item in _items(value)]

    return read_list


def _strings(value: Any) -> list[str]:
    return ["" if item is None else _string(item) for item in _items(value)]


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"no list: {value!r}")
    return value


def _text_map(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"no object: {value!r}")
    return {key: "" if part is None else _string(part) for key, part in value.items()}


def _struct(zeros: Mapping[str, Any], **readers: Reader) -> Reader:
    """A reader of objects with the named fields, in this order; `zeros` are for fields that are always there."""
    folded = {name.casefold(): name for name in readers}

    def read_struct(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"no object: {value!r}")
        found = {**zeros}
        for key, part in value.items():
            name = key if key in readers else folded.get(key.casefold())
            if name is not None and part is not None:
                found[name] = readers[name](part)
        return {name: found[name] for name in readers if name in found}

    return read_struct


_selector = _struct(
    {},
    matchLabels=_text_map,
    matchExpressions=_list_of(_struct({"key": "", "operator": ""}, key=_string, operator=_string, values=_strings)),
)
_reference = _struct({"kind": "", "name": ""}, kind=_string, name=_string, apiVersion=_string)
_no_reference = {"kind": "", "name": ""}


def _metric_list(**sources: Reader) -> Reader:
    return _list_of(_struct({"type": ""}, type=_string, **sources))


metric_specs = _metric_list(
    object=_struct(
        {"target": _no_reference, "metricName": "", "targetValue": "0"},
        target=_reference,
        metricName=_string,
        targetValue=_quantity,
        selector=_selector,
        averageValue=_quantity,
    ),
    pods=_struct(
        {"metricName": "", "targetAverageValue": "0"},
        metricName=_string,
        targetAverageValue=_quantity,
        selector=_selector,
    ),
    resource=_struct({"name": ""}, name=_string, targetAverageUtilization=_int32, targetAverageValue=_quantity),
    containerResource=_struct(
        {"name": "", "container": ""},
        name=_string,
        targetAverageUtilization=_int32,
        targetAverageValue=_quantity,
        container=_string,
    ),
    external=_struct(
        {"metricName": ""},
        metricName=_string,
        metricSelector=_selector,
        targetValue=_quantity,
        targetAverageValue=_quantity,
    ),
)
"""The `metrics` annotation: a list of metrics in v1's shapes."""

metric_statuses = _metric_list(
    object=_struct(
        {"target": _no_reference, "metricName": "", "currentValue": "0"},
        target=_reference,
        metricName=_string,
        currentValue=_quantity,
        selector=_selector,
        averageValue=_quantity,
    ),
    pods=_struct(
        {"metricName": "", "currentAverageValue": "0"},
        metricName=_string,
        currentAverageValue=_quantity,
        selector=_selector,
    ),
    resource=_struct(
        {"name": "", "currentAverageValue": "0"},
        name=_string,
        currentAverageUtilization=_int32,
        currentAverageValue=_quantity,
    ),
    containerResource=_struct(
        {"name": "", "currentAverageValue": "0", "container": ""},
        name=_string,
        currentAverageUtilization=_int32,
        currentAverageValue=_quantity,
        container=_string,
    ),
    external=_struct(
        {"metricName": "", "currentValue": "0"},
        metricName=_string,
        metricSelector=_selector,
        currentValue=_quantity,
        currentAverageValue=_quantity,
    ),
)
"""The `current-metrics` annotation: a list of metric statuses in v1's shapes."""

_rules = _struct(
    {},
    stabilizationWindowSeconds=_int32,
    selectPolicy=_string,
    policies=_list_of(
        _struct({"type": "", "value": 0, "periodSeconds": 0}, type=_string, value=_int32, periodSeconds=_int32)
    ),
    tolerance=_quantity,
)
behavior = _struct({}, scaleUp=_rules, scaleDown=_rules)
"""The `behavior` annotation, as v2 has it (the annotation's own names differ in case only)."""

conditions = _list_of(
    _struct(
        {"type": "", "status": "", "lastTransitionTime": None},
        type=_string,
        status=_string,
        lastTransitionTime=_time,
        reason=_string,
        message=_string,
        observedGeneration=_int64,
    )
)
"""The `conditions` annotation, as v2 has them."""
