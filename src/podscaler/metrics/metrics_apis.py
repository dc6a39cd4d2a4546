"""Sends queries to the three metrics APIs of a cluster: resource, custom, external.

`podscaler.controller.assembly` makes one APIMetricsSource; each query is one request. The usage of the pods `app=web`
in `shop` is `GET /apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app=web`.

The version of the custom metrics API is negotiated: the group's preferred version if it is v1beta2 or v1beta1, else the
first of these two that the group lists. Responses of both are read alike. It is negotiated again each sync period.
A new kind of query: a class in `podscaler.metrics.queries`, a case in `_respond`, and one in `heapster`.

Source: docs/spec/controller.md 10 (REST requests); docs/spec/decision.md 7.1 (Resource metrics) to 7.4 (External
metrics).
"""

from typing import Any

import msgspec

from podscaler.api.typed.metrics import ExternalMetricValueList, MetricValueList, PodMetricsList
from podscaler.base.errors import StatusError
from podscaler.kube.client import typed_responses, urls
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import Discovery
from podscaler.metrics.queries import (
    ExternalMetricQuery,
    MetricQuery,
    MetricsResponse,
    ObjectMetricQuery,
    PodsMetricQuery,
    R,
    ResourceMetricsQuery,
)

RESOURCE_GROUP = "metrics.k8s.io"
CUSTOM_GROUP = "custom.metrics.k8s.io"
EXTERNAL_GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
"""The version of the resource and external metrics APIs."""
CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
"""The versions of the custom metrics API that can be read."""
_POD_METRICS = msgspec.json.Decoder(PodMetricsList)
_CUSTOM_VALUES = msgspec.json.Decoder(MetricValueList)
_EXTERNAL_VALUES = msgspec.json.Decoder(ExternalMetricValueList)


class APIMetricsSource:
    """Requests metrics from the metrics APIs; a `podscaler.metrics.queries.MetricsSource`.

    Args:
        client: sends the requests.
        discovery: finds versions of the custom metrics API, and the resources of described objects.
        version_period_s: how long a negotiated version of the custom metrics API is used (the sync period).
    """

    def __init__(self, client: Client, discovery: Discovery, *, version_period_s: float) -> None:
        self._client = client
        self._discovery = discovery
        self._version_period_s = version_period_s

    async def query(self, query: MetricQuery[R]) -> R:
        """Request the query's metrics API. Raises StatusError."""
        response: Any = await self._respond(query)  # of the type that the query's class names
        return response  # type: ignore[no-any-return]  # mypy does not narrow R by isinstance

    async def _respond(self, query: MetricQuery[Any]) -> MetricsResponse:
        """The response of the type that belongs to the class of the query. Raises StatusError."""
        match query:
            case ResourceMetricsQuery():
                return await self._resource_metrics(query)
            case PodsMetricQuery():
                return await self._pods_metric(query)
            case ObjectMetricQuery():
                return await self._object_metric(query)
            case ExternalMetricQuery():
                return await self._external_metric(query)
        raise TypeError(f"{query!r} is a query of no known type")

    async def _resource_metrics(self, query: ResourceMetricsQuery) -> PodMetricsList:
        """`/apis/metrics.k8s.io/v1beta1/namespaces/NAMESPACE/pods?labelSelector=SELECTOR`. Raises StatusError."""
        response = await self._client.fetch(
            urls.group_version(RESOURCE_GROUP, VERSION) + urls.path("namespaces", query.namespace, "pods"),
            subject=f"pods.{RESOURCE_GROUP}",
            query=[("labelSelector", str(query.selector))],
        )
        return typed_responses.typed(response, _POD_METRICS)

    async def _pods_metric(self, query: PodsMetricQuery) -> MetricValueList:
        """`namespaces/NAMESPACE/pods/*/METRIC` below the custom metrics API. Raises StatusError."""
        return await self._custom_values(
            urls.path("namespaces", query.namespace, "pods", "*", urls.subresource(query.metric)),
            subject=f"pods.{CUSTOM_GROUP} *",
            query=[("labelSelector", str(query.selector)), ("metricLabelSelector", str(query.metric_selector))],
        )

    async def _object_metric(self, query: ObjectMetricQuery) -> MetricValueList:
        """`namespaces/NAMESPACE/RESOURCE/NAME/METRIC` below the custom metrics API. Raises StatusError."""
        metric, described = query.metric, query.described
        group = _group_of(described.api_version)
        if described.kind == "Namespace" and not group:  # the one exception: `namespaces/NAMESPACE/metrics/METRIC`
            path = urls.path("namespaces", query.namespace, "metrics", urls.object_name(metric))
            subject = f"metrics.{CUSTOM_GROUP} {metric}"
        else:
            resource = await self._resource_of(group, described.kind)
            name = urls.object_name(described.name)
            path = urls.path("namespaces", query.namespace, resource, name, urls.subresource(metric))
            subject = f"{resource}.{CUSTOM_GROUP} {described.name}"
        parameters = [("metricLabelSelector", str(query.metric_selector))]
        return await self._custom_values(path, subject=subject, query=parameters)

    async def _external_metric(self, query: ExternalMetricQuery) -> ExternalMetricValueList:
        """`/apis/external.metrics.k8s.io/v1beta1/namespaces/NAMESPACE/METRIC`. Raises StatusError."""
        response = await self._client.fetch(
            urls.group_version(EXTERNAL_GROUP, VERSION)
            + urls.path("namespaces", query.namespace, urls.resource(query.metric)),
            subject=f"{query.metric}.{EXTERNAL_GROUP}",
            query=[("labelSelector", str(query.metric_selector))],
        )
        return typed_responses.typed(response, _EXTERNAL_VALUES)

    async def _resource_of(self, group: str, kind: str) -> str:
        """The `resource.group` that serves a kind, or `resource` of the core group. Raises StatusError if none does."""
        try:
            mapping, *_ = await self._discovery.mappings(group, kind)
        except StatusError as error:
            resource_text = f"{kind}.{group}" if group else kind
            text = f"unable to map kind {resource_text} to resource: {error}"
            raise StatusError(text, code=error.code, reason=error.reason) from error
        return f"{mapping.plural}.{group}" if group else mapping.plural

    async def _custom_values(self, path: str, *, subject: str, query: list[tuple[str, str]]) -> MetricValueList:
        """The response of the custom metrics API to `path` below the group's version. Raises StatusError."""
        full_path = urls.group_version(CUSTOM_GROUP, await self._custom_version()) + path
        response = await self._client.fetch(full_path, subject=subject, query=query)
        return typed_responses.with_kind(response, _CUSTOM_VALUES)

    async def _custom_version(self) -> str:
        """The negotiated version. Raises StatusError if the API is not served in a known version."""
        versions = await self._discovery.versions(CUSTOM_GROUP, max_age_s=self._version_period_s)
        if not versions:
            raise StatusError(f"no custom metrics API ({CUSTOM_GROUP}) registered", code=0)
        for version in versions:  # the preferred one first
            if version in CUSTOM_VERSIONS:
                return version
        raise StatusError("no known available metric versions found", code=0)


def _group_of(api_version: str) -> str:
    """The group in an apiVersion; empty for the core group and for a text with two slashes."""
    group, slash, version = api_version.partition("/")
    return group if slash and "/" not in version else ""
