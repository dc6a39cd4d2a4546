"""Metrics of an autoscaler between the flat shapes of v1's annotations (and v2beta1) and the shapes of v2.

Called by `hpa_v1`. Both forms are complete: fields that Go always writes are there. Keys stand in Go's order, since
the annotation is text.

Source: docs/spec/api.md 4 (Conversion): the table of shapes, from which the type of the target is rebuilt.
"""

from typing import Any

from podscaler.api.resource.resources import Object

_ZERO = "0"
_SOURCES = ("object", "pods", "resource", "containerResource", "external")


def spec_to_v2(metric: Object) -> Object:
    """The v2 form of a metric of a spec."""
    return _each(metric, _SPEC_TO_V2)


def spec_from_v2(metric: Object) -> Object:
    """The flat form of a metric of a spec."""
    return _each(metric, _SPEC_FROM_V2)


def status_to_v2(metric: Object) -> Object:
    """The v2 form of a metric of a status."""
    return _each(metric, _STATUS_TO_V2)


def status_from_v2(metric: Object) -> Object:
    """The flat form of a metric of a status."""
    return _each(metric, _STATUS_FROM_V2)


def _each(metric: Object, converters: dict[str, Any]) -> Object:
    converted: Object = {"type": metric.get("type", "")}
    for source in _SOURCES:
        if metric.get(source) is not None:
            converted[source] = converters[source](metric[source])
    return converted


def _given(**parts: Any) -> Object:
    """The parts that are not None, in this order."""
    return {name: part for name, part in parts.items() if part is not None}


def _reference(ref: Object) -> Object:
    return _given(kind=ref.get("kind", ""), name=ref.get("name", ""), apiVersion=ref.get("apiVersion") or None)


def _metric(flat: Object, selector: str = "selector") -> Object:
    return _given(name=flat["metricName"], selector=flat.get(selector))


def _target(kind: str, value: str | None, average: str | None, utilization: int | None = None) -> Object:
    return _given(type=kind, value=value, averageValue=average, averageUtilization=utilization)


def _object_spec_to_v2(flat: Object) -> Object:
    average, value = flat.get("averageValue"), flat["targetValue"]
    if average is None:
        target = _target("Value", value, None)
    else:
        target = _target("AverageValue", None if value == _ZERO else value, average)
    return {"describedObject": _reference(flat["target"]), "target": target, "metric": _metric(flat)}


def _pods_spec_to_v2(flat: Object) -> Object:
    return {"metric": _metric(flat), "target": _target("AverageValue", None, flat["targetAverageValue"])}


def _resource_spec_to_v2(flat: Object) -> Object:
    utilization = flat.get("targetAverageUtilization")
    kind = "AverageValue" if utilization is None else "Utilization"
    target = _target(kind, None, flat.get("targetAverageValue"), utilization)
    return _given(name=flat["name"], target=target, container=flat.get("container"))


def _external_spec_to_v2(flat: Object) -> Object:
    value, average = flat.get("targetValue"), flat.get("targetAverageValue")
    target = _target("AverageValue" if value is None else "Value", value, average)
    return {"metric": _metric(flat, "metricSelector"), "target": target}


_SPEC_TO_V2 = {
    "object": _object_spec_to_v2,
    "pods": _pods_spec_to_v2,
    "resource": _resource_spec_to_v2,
    "containerResource": _resource_spec_to_v2,
    "external": _external_spec_to_v2,
}


def _named(source: Object) -> tuple[str, Object | None]:
    metric = source.get("metric") or {}
    return metric.get("name", ""), metric.get("selector")


def _object_spec_from_v2(source: Object) -> Object:
    (name, selector), target = _named(source), source.get("target") or {}
    return _given(
        target=_reference(source.get("describedObject") or {}),
        metricName=name,
        targetValue=target.get("value", _ZERO),
        selector=selector,
        averageValue=target.get("averageValue"),
    )


def _pods_spec_from_v2(source: Object) -> Object:
    (name, selector), target = _named(source), source.get("target") or {}
    return _given(metricName=name, targetAverageValue=target.get("averageValue", _ZERO), selector=selector)


def _resource_spec_from_v2(source: Object) -> Object:
    target = source.get("target") or {}
    return _given(
        name=source.get("name", ""),
        targetAverageUtilization=target.get("averageUtilization"),
        targetAverageValue=target.get("averageValue"),
        container=source.get("container"),
    )


def _external_spec_from_v2(source: Object) -> Object:
    (name, selector), target = _named(source), source.get("target") or {}
    return _given(
        metricName=name,
        metricSelector=selector,
        targetValue=target.get("value"),
        targetAverageValue=target.get("averageValue"),
    )


_SPEC_FROM_V2 = {
    "object": _object_spec_from_v2,
    "pods": _pods_spec_from_v2,
    "resource": _resource_spec_from_v2,
    "containerResource": _resource_spec_from_v2,
    "external": _external_spec_from_v2,
}


def _object_status_to_v2(flat: Object) -> Object:
    current = _given(value=flat["currentValue"], averageValue=flat.get("averageValue"))
    return {"metric": _metric(flat), "current": current, "describedObject": _reference(flat["target"])}


def _pods_status_to_v2(flat: Object) -> Object:
    return {"metric": _metric(flat), "current": {"averageValue": flat["currentAverageValue"]}}


def _resource_status_to_v2(flat: Object) -> Object:
    current = _given(averageValue=flat["currentAverageValue"], averageUtilization=flat.get("currentAverageUtilization"))
    return _given(name=flat["name"], current=current, container=flat.get("container"))


def _external_status_to_v2(flat: Object) -> Object:
    current = _given(value=flat["currentValue"], averageValue=flat.get("currentAverageValue"))
    return {"metric": _metric(flat, "metricSelector"), "current": current}


_STATUS_TO_V2 = {
    "object": _object_status_to_v2,
    "pods": _pods_status_to_v2,
    "resource": _resource_status_to_v2,
    "containerResource": _resource_status_to_v2,
    "external": _external_status_to_v2,
}


def _object_status_from_v2(source: Object) -> Object:
    (name, selector), current = _named(source), source.get("current") or {}
    return _given(
        target=_reference(source.get("describedObject") or {}),
        metricName=name,
        currentValue=current.get("value", _ZERO),
        selector=selector,
        averageValue=current.get("averageValue"),
    )


def _pods_status_from_v2(source: Object) -> Object:
    (name, selector), current = _named(source), source.get("current") or {}
    return _given(metricName=name, currentAverageValue=current.get("averageValue", _ZERO), selector=selector)


def _resource_status_from_v2(source: Object) -> Object:
    current = source.get("current") or {}
    return _given(
        name=source.get("name", ""),
        currentAverageUtilization=current.get("averageUtilization"),
        currentAverageValue=current.get("averageValue", _ZERO),
        container=source.get("container"),
    )


def _external_status_from_v2(source: Object) -> Object:
    (name, selector), current = _named(source), source.get("current") or {}
    return _given(
        metricName=name,
        metricSelector=selector,
        currentValue=current.get("value", _ZERO),
        currentAverageValue=current.get("averageValue"),
    )


_STATUS_FROM_V2 = {
    "object": _object_status_from_v2,
    "pods": _pods_status_from_v2,
    "resource": _resource_status_from_v2,
    "containerResource": _resource_status_from_v2,
    "external": _external_status_from_v2,
}
