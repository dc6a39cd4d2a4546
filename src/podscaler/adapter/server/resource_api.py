"""Serves the API group metrics.k8s.io, in the version v1beta1: the usage of pods and nodes.

`server.app` passes it the requests of the group, such as `GET /apis/metrics.k8s.io/v1beta1/namespaces/shop/pods`.

Source: metrics-server, whose API code prometheus-adapter uses. Differs: there are no Tables, and field selectors know
`metadata.name` and `metadata.namespace` with `=`, `==` and `!=`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from podscaler.adapter.config.rules import GroupResource
from podscaler.adapter.naming.resource_labels import NODES, PODS
from podscaler.adapter.providers.resource_metrics import Usage, UsageProvider
from podscaler.adapter.server import custom_api, responses
from podscaler.adapter.server.request_info import RequestInfo
from podscaler.api.machinery import duration
from podscaler.base.clock import Clock, rfc3339
from podscaler.base.errors import StatusError

GROUP = "metrics.k8s.io"
VERSION = "v1beta1"
Object = dict[str, Any]
_FIELD = re.compile(r"(metadata\.name|metadata\.namespace)(==|=|!=)([^,=!]*)")
_VERBS = ["get", "list"]
_KINDS = {PODS: "PodMetrics", NODES: "NodeMetrics"}


class ResourceMetricsApi:
    """Responds to requests of the group metrics.k8s.io.

    Args:
        metrics: provides the usage.
        clock: for the `creationTimestamp` of the objects, which are made for each response.
    """

    group = GROUP
    versions = (VERSION,)

    def __init__(self, metrics: UsageProvider, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock

    def resources(self) -> list[Object]:
        """The two resources for discovery."""
        return [
            {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": _VERBS},
            {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": _VERBS},
        ]

    async def respond(self, request: RequestInfo) -> Object:
        """The object or list of a request. Raises StatusError: 400, 404, and 500 if objects cannot be listed."""
        attributes, resource = request.attributes, _requested_resource(request)
        if attributes.name:
            return await self._respond_object(resource, attributes.namespace, attributes.name)
        return await self._respond_list(resource, attributes.namespace, request.parameters)

    async def _respond_object(self, resource: GroupResource, namespace: str, name: str) -> Object:
        """The usage of one pod or node. Raises StatusError 404."""
        described = await self._metrics.find_object(resource, namespace, name)
        if described is None:
            raise _not_found("node" if resource == NODES else "pods", "", name)  # as metrics-server: one is singular
        usage = await self._metrics.of_object(resource, described)
        if usage is None:
            object_text = f"{namespace}/{name}" if namespace else name
            raise _not_found(_KINDS[resource].lower(), GROUP, object_text)
        return {"kind": _KINDS[resource], "apiVersion": f"{GROUP}/{VERSION}", **self._usage_object(resource, usage)}

    async def _respond_list(self, resource: GroupResource, namespace: str, parameters: Mapping[str, str]) -> Object:
        """The usage of the pods or nodes that the selectors match."""
        selector = custom_api.parse_selector(parameters.get("labelSelector", ""), custom_api.bad_selector)
        terms = _parse_fields(parameters.get("fieldSelector", ""))
        if resource == PODS:
            usages = await self._metrics.of_pods(namespace, selector)
        else:
            usages = await self._metrics.of_nodes(selector)
        items = [self._usage_object(resource, usage) for usage in usages if _matches(usage, terms)]
        kind = f"{_KINDS[resource]}List"
        return {"kind": kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}

    def _usage_object(self, resource: GroupResource, usage: Usage) -> Object:
        """The NodeMetrics or PodMetrics without kind: of a node its usage, of a pod that of its containers."""
        meta = usage.described.metadata
        metadata = {"name": meta.name, **({"namespace": meta.namespace} if meta.namespace else {})}
        metadata["creationTimestamp"] = rfc3339(self._clock.now_ns())
        labels = {"labels": meta.labels} if meta.labels else {}
        fields = {
            "metadata": {**metadata, **labels},
            "timestamp": rfc3339(usage.at_ns),
            "window": duration.text(usage.window_ns),
        }
        usage_by_container = {
            name: {key: str(amounts[key]) for key in sorted(amounts)} for name, amounts in usage.by_container.items()
        }
        if resource == NODES:
            return {**fields, "usage": next(iter(usage_by_container.values()))}
        return {
            **fields,
            "containers": [{"name": name, "usage": amounts} for name, amounts in usage_by_container.items()],
        }


def _requested_resource(request: RequestInfo) -> GroupResource:
    """PODS or NODES. Raises StatusError 404 for a path that is not served."""
    attributes = request.attributes
    if len(request.parts) <= 2:  # RESOURCE and NAME
        if attributes.resource == "pods" and (attributes.namespace or not attributes.name):  # one pod has a namespace
            return PODS
        if attributes.resource == "nodes" and not attributes.namespace:
            return NODES
    raise responses.no_such_path()


class _FieldTerm(NamedTuple):
    """A term of a field selector: `name` or `namespace`, the compared text, and whether it must be equal."""

    name: str
    compared: str
    is_equal: bool


def _parse_fields(selector_text: str) -> Sequence[_FieldTerm]:
    """The terms of a field selector. Raises StatusError 400."""
    terms: list[_FieldTerm] = []
    for term in filter(None, selector_text.split(",")):
        match = _FIELD.fullmatch(term)
        if match is None:
            raise custom_api.bad_selector(f"the field selector {term!r} is not supported")
        field_path, operator, field_value = match.groups()
        terms.append(_FieldTerm(field_path.removeprefix("metadata."), field_value, is_equal=operator != "!="))
    return terms


def _matches(usage: Usage, terms: Sequence[_FieldTerm]) -> bool:
    """Whether a pod or node matches all terms of a field selector."""
    values = {"name": usage.described.metadata.name, "namespace": usage.described.metadata.namespace}
    return all((values[term.name] == term.compared) is term.is_equal for term in terms)


def _not_found(resource: str, group: str, name: str) -> StatusError:
    """The error 404 of a node or pod without metrics."""
    resource_text = f"{resource}.{group}" if group else resource
    details = {"name": name, **({"group": group} if group else {}), "kind": resource}
    return StatusError(f'{resource_text} "{name}" not found', code=404, reason="NotFound", details=details)
