"""Builds the response lists of the metrics APIs in each version; called by `metrics.custom.apis`.

Field names and order are those of the published types. A new version: a function for its items in `custom_list`.

Source: custom.metrics.k8s.io/v1beta1 and v1beta2 MetricValueList, external.metrics.k8s.io/v1beta1
ExternalMetricValueList. Differs: `describedObject.apiVersion` of the core group is `v1`, where adapters write `/v1`.
"""

from collections.abc import Sequence

from podscaler.api.machinery.requirements import Operator, Requirement
from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Object, Resource
from podscaler.base.clock import rfc3339
from podscaler.controlplane.metrics.custom.lookup import Value

CUSTOM = "custom.metrics.k8s.io"
EXTERNAL = "external.metrics.k8s.io"
LIST_KINDS = {CUSTOM: "MetricValueList", EXTERNAL: "ExternalMetricValueList"}

_EQUALITIES = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS})
_EXPRESSION_OPERATORS = {
    Operator.IN: "In",
    Operator.NOT_IN: "NotIn",
    Operator.NOT_EQUALS: "NotIn",
    Operator.EXISTS: "Exists",
    Operator.DOES_NOT_EXIST: "DoesNotExist",
}


def external_list(version: str, metric: str, values: Sequence[Value], now_ns: int) -> Object:
    """An ExternalMetricValueList with the timestamp `now_ns`, nanoseconds since the epoch."""
    items = []
    for external_value in values:
        items.append(
            {
                "metricName": metric,
                "metricLabels": dict(external_value.labels),
                "timestamp": rfc3339(now_ns),
                **_window_field("window", external_value),
                "value": str(external_value.quantity),
            }
        )
    return _value_list(EXTERNAL, version, items)


def custom_list(
    version: str, metric: str, selector: Selector, *, described: Sequence[tuple[Object, Value]], now_ns: int
) -> Object:
    """A MetricValueList.

    Args:
        version: the version of the API, `v1beta1` or `v1beta2`.
        metric: the metric's name.
        selector: the selector of the metric's labels in the query.
        described: references to the described objects (`reference`), with their values.
        now_ns: the timestamp, nanoseconds since the epoch.
    """
    make_item = _item_v1beta1 if version == "v1beta1" else _item_v1beta2
    identity = {"name": metric, "selector": _label_selector(selector)}
    timestamp = rfc3339(now_ns)
    items = [make_item(described_object, value, identity, timestamp) for described_object, value in described]
    return _value_list(CUSTOM, version, items)


def reference(resource: Resource, namespace: str, name: str) -> Object:
    """The reference of a value to the object that it describes."""
    group = f"{resource.group}/" if resource.group else ""
    namespace_field = {"namespace": namespace} if resource.namespaced else {}
    return {"kind": resource.kind, **namespace_field, "name": name, "apiVersion": group + resource.versions[0].version}


def _value_list(group: str, version: str, items: Sequence[Object]) -> Object:
    return {"kind": LIST_KINDS[group], "apiVersion": f"{group}/{version}", "metadata": {}, "items": items}


def _item_v1beta1(described: Object, metric_value: Value, metric: Object, timestamp: str) -> Object:
    """An item in v1beta1."""
    return {
        "describedObject": described,
        "metricName": metric["name"],
        "timestamp": timestamp,
        **_window_field("window", metric_value),
        "value": str(metric_value.quantity),
        "selector": metric["selector"],
    }


def _item_v1beta2(described: Object, metric_value: Value, metric: Object, timestamp: str) -> Object:
    """An item in v1beta2."""
    return {
        "describedObject": described,
        "metric": metric,
        "timestamp": timestamp,
        **_window_field("windowSeconds", metric_value),
        "value": str(metric_value.quantity),
    }


def _window_field(name: str, metric_value: Value) -> Object:
    """The field of the seconds over which the value was measured; empty if that is unknown."""
    return {} if metric_value.window_s is None else {name: metric_value.window_s}


def _label_selector(selector: Selector) -> Object | None:
    """The selector as a metav1.LabelSelector; None if it selects everything."""
    if not selector.requirements:
        return None
    requirements = selector.requirements
    labels = {required.key: required.values[0] for required in requirements if required.operator in _EQUALITIES}
    expressions = [_label_requirement(required) for required in requirements if required.operator not in _EQUALITIES]
    fields: Object = {"matchLabels": labels} if labels else {}
    return fields | ({"matchExpressions": expressions} if expressions else {})


def _label_requirement(requirement: Requirement) -> Object:
    values = {"values": list(requirement.values)} if requirement.values else {}
    return {"key": requirement.key, "operator": _EXPRESSION_OPERATORS[requirement.operator], **values}
