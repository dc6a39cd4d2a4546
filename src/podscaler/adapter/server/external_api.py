"""Serves the API group external.metrics.k8s.io, in the version v1beta1.

`server.app` passes it the requests of the group, such as `GET
/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/jobs`. The first provider in order that has the metric
responds.

Source: the custom metrics API server library, whose errors these are.
"""

from collections.abc import Sequence
from typing import Any

from podscaler.adapter.providers import protocols
from podscaler.adapter.providers.protocols import ExternalMetricsProvider, ExternalValue
from podscaler.adapter.server import custom_api, responses
from podscaler.adapter.server.request_info import RequestInfo
from podscaler.base.clock import rfc3339

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
LIST_KIND = "ExternalMetricValueList"
Object = dict[str, Any]


class ExternalMetricsApi:
    """Responds to requests of the group external.metrics.k8s.io.

    Args:
        providers: the providers of values, at least one.
    """

    group = GROUP
    versions = (VERSION,)

    def __init__(self, providers: Sequence[ExternalMetricsProvider]) -> None:
        self._providers = providers

    def resources(self) -> list[Object]:
        """The metrics for discovery."""
        names = sorted({name for provider in self._providers for name in provider.names()})
        common = {"singularName": "", "namespaced": True, "kind": LIST_KIND, "verbs": ["get"]}
        return [{"name": name, **common} for name in names]

    async def respond(self, request: RequestInfo) -> Object:
        """The ExternalMetricValueList of a request. Raises StatusError."""
        attributes = request.attributes
        if not attributes.namespace or len(request.parts) != 1:
            raise responses.no_such_path()
        selector = custom_api.parse_selector(request.parameters.get("labelSelector", ""), custom_api.bad_selector)
        for provider in self._providers:
            values = await provider.find_values(attributes.namespace, attributes.resource, selector)
            if values is not None:
                items = [_value_item(attributes.resource, external_value) for external_value in values]
                return {"kind": LIST_KIND, "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}
        raise protocols.not_found(attributes.resource, "namespaces" if attributes.namespace == "default" else "")


def _value_item(metric: str, external_value: ExternalValue) -> Object:
    """An item in v1beta1."""
    return {
        "metricName": metric,
        "metricLabels": dict(external_value.labels) or None,
        "timestamp": rfc3339(external_value.at_ns),
        **({} if external_value.window_s is None else {"window": external_value.window_s}),
        "value": str(external_value.quantity),
    }
