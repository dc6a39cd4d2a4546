"""Serves the API group custom.metrics.k8s.io, in the versions v1beta2 and v1beta1.

`server.app` passes it the requests of the group, such as `GET
/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/requests`. A new version: an element of VERSIONS, and a
function for its items.

Source: the custom metrics API server library, whose errors these are; prometheus-adapter v0.12.0.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podscaler.adapter.config.rules import GroupResource
from podscaler.adapter.naming.resource_labels import CLUSTER_SCOPED, NAMESPACES
from podscaler.adapter.providers.custom_metrics import CustomMetricQuery, CustomMetrics
from podscaler.adapter.providers.metric_registry import CustomMetric
from podscaler.adapter.providers.protocols import ObjectValue
from podscaler.adapter.server import responses
from podscaler.adapter.server.request_info import RequestInfo
from podscaler.api.machinery import selectors
from podscaler.api.machinery.requirements import Operator, Requirement
from podscaler.api.machinery.selectors import Selector, SelectorError
from podscaler.base.clock import rfc3339
from podscaler.base.errors import StatusError

GROUP = "custom.metrics.k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
LIST_KIND = "MetricValueList"
ALL_OBJECTS = "*"

_EQUALITIES = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS})
_EXPRESSIONS = {
    Operator.IN: "In",
    Operator.NOT_IN: "NotIn",
    Operator.NOT_EQUALS: "NotIn",
    Operator.EXISTS: "Exists",
    Operator.DOES_NOT_EXIST: "DoesNotExist",
}
Object = dict[str, Any]


class CustomMetricsApi:
    """Responds to requests of the group custom.metrics.k8s.io.

    Args:
        metrics: computes the values.
    """

    group = GROUP
    versions = VERSIONS

    def __init__(self, metrics: CustomMetrics) -> None:
        self._metrics = metrics

    def resources(self) -> list[Object]:
        """The metrics for discovery."""
        return [_api_resource(metric) for metric in self._metrics.metrics()]

    async def respond(self, request: RequestInfo) -> Object:
        """The MetricValueList of a request. Raises StatusError."""
        attributes = request.attributes
        namespace, resource, name = attributes.namespace, attributes.resource, attributes.name
        metric = attributes.subresource
        if namespace and resource == "metrics" and name and not metric:  # a metric of the namespace itself
            namespace, resource, name, metric = "", str(NAMESPACES), namespace, name
        elif len(request.parts) != 3:  # RESOURCE/NAME/METRIC
            raise responses.no_such_path()
        selector = parse_selector(request.parameters.get("metricLabelSelector", ""), _internal_error)
        object_selector = parse_selector(request.parameters.get("labelSelector", ""), bad_selector)
        plural, _, group = resource.partition(".")
        query = CustomMetricQuery(namespace, GroupResource(group, plural), metric, selector)
        if name == ALL_OBJECTS:
            values = await self._metrics.of_objects(query, object_selector)
        else:
            values = [await self._metrics.of_object(query, name)]
        return _value_list(attributes.version, metric, selector, values)


def _value_list(version: str, metric: str, selector: Selector, values: Sequence[ObjectValue]) -> Object:
    """The MetricValueList in a version of the API; `selector` is that of the metric. Raises as `label_selector`."""
    selector_object = label_selector(selector)
    make_item = _item_v1beta1 if version == "v1beta1" else _item_v1beta2
    items = [make_item(object_value, metric, selector_object) for object_value in values]
    return {"kind": LIST_KIND, "apiVersion": f"{GROUP}/{version}", "metadata": {}, "items": items}


def _api_resource(metric: CustomMetric) -> Object:
    """The APIResource of a metric: `pods/requests`."""
    return {
        "name": f"{metric.resource}/{metric.name}",
        "singularName": "",
        "namespaced": metric.resource not in CLUSTER_SCOPED,
        "kind": LIST_KIND,
        "verbs": ["get"],
    }


def parse_selector(selector_text: str, make_error: Callable[[str], StatusError]) -> Selector:
    """The selector in a parameter. Raises the StatusError that `make_error` returns for the cause."""
    try:
        return selectors.parse(selector_text)
    except SelectorError as cause:
        raise make_error(str(cause)) from cause


def bad_selector(cause: str) -> StatusError:
    """400: a parameter is no selector."""
    return StatusError(cause, code=400, reason="BadRequest")


def _internal_error(cause: str) -> StatusError:
    """500, as the library has it for the selector of a metric."""
    return StatusError(cause, code=500)


def label_selector(selector: Selector) -> Object | None:
    """The selector as a LabelSelector object; None if it selects everything. Raises StatusError 500."""
    if not selector.requirements:
        return None
    ordered = sorted(selector.requirements, key=lambda requirement: requirement.key)
    equal = {requirement.key: requirement.values[0] for requirement in ordered if requirement.operator in _EQUALITIES}
    other_expressions = [_expression(requirement) for requirement in ordered if requirement.operator not in _EQUALITIES]
    return {
        **({"matchLabels": equal} if equal else {}),
        **({"matchExpressions": other_expressions} if other_expressions else {}),
    }


def _expression(requirement: Requirement) -> Object:
    """A requirement as an element of `matchExpressions`. Raises StatusError 500 for an operator that it lacks."""
    if requirement.operator not in _EXPRESSIONS:
        raise _internal_error(f'"{requirement.operator}" is not supported in label selectors')
    values = {"values": sorted(requirement.values)} if requirement.values else {}
    return {"key": requirement.key, "operator": _EXPRESSIONS[requirement.operator], **values}


def _object_reference(object_value: ObjectValue) -> Mapping[str, str]:
    """The reference to the object that a value describes."""
    namespace_field = {"namespace": object_value.namespace} if object_value.namespace else {}
    return {
        "kind": object_value.resource.kind,
        **namespace_field,
        "name": object_value.name,
        "apiVersion": object_value.resource.api_version,
    }


def _item_v1beta1(object_value: ObjectValue, metric: str, selector: Object | None) -> Object:
    """An item in v1beta1."""
    return {
        "describedObject": _object_reference(object_value),
        "metricName": metric,
        "timestamp": rfc3339(object_value.at_ns),
        "value": str(object_value.quantity),
        "selector": selector,
    }


def _item_v1beta2(object_value: ObjectValue, metric: str, selector: Object | None) -> Object:
    """An item in v1beta2."""
    return {
        "describedObject": _object_reference(object_value),
        "metric": {"name": metric, "selector": selector},
        "timestamp": rfc3339(object_value.at_ns),
        "value": str(object_value.quantity),
    }
