"""Metrics that describe pods and other objects, from custom.metrics.k8s.io.

The version is negotiated: the group's preferred one if it is v1beta2 or v1beta1, else the first listed that is. Answers
of both read alike. The choice is looked at again every sync period.

Source: docs/spec/controller.md 10 (REST requests); docs/spec/decision.md 7.2 (Custom metrics for pods), 7.3 (Object
metrics).
"""

import msgspec

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.autoscaling import CrossVersionObjectReference
from podscaler.api.typed.metrics import MetricValueList
from podscaler.base.errors import StatusError
from podscaler.kube.client import typed_responses, urls
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import Discovery

GROUP = "custom.metrics.k8s.io"
KNOWN_VERSIONS = ("v1beta2", "v1beta1")
_LIST = msgspec.json.Decoder(MetricValueList)


class CustomMetrics:
    """The custom metrics API of one cluster.

    Args:
        client: where to ask.
        discovery: for versions, and for the resources of described objects.
        version_period_s: how long a negotiated version is used (the sync period).
    """

    def __init__(self, client: Client, discovery: Discovery, *, version_period_s: float) -> None:
        self._client = client
        self._discovery = discovery
        self._version_period_s = version_period_s

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: Selector, metric_selector: Selector
    ) -> MetricValueList:
        """One value for each pod that `selector` picks and that has one. Raises StatusError."""
        return await self._list(
            urls.path("namespaces", namespace, "pods", "*", urls.subresource(metric)),
            subject=f"pods.{GROUP} *",
            query=[("labelSelector", str(selector)), ("metricLabelSelector", str(metric_selector))],
        )

    async def object_metric(
        self, namespace: str, metric: str, *, described: CrossVersionObjectReference, metric_selector: Selector
    ) -> MetricValueList:
        """The value that describes one object of the namespace. Raises StatusError."""
        query = [("metricLabelSelector", str(metric_selector))]
        group = group_of(described.api_version)
        if described.kind == "Namespace" and not group:
            path = urls.path("namespaces", namespace, "metrics", urls.object_name(metric))
            return await self._list(path, subject=f"metrics.{GROUP} {metric}", query=query)
        resource = await self._resource(group, described.kind)
        return await self._list(
            urls.path("namespaces", namespace, resource, urls.object_name(described.name), urls.subresource(metric)),
            subject=f"{resource}.{GROUP} {described.name}",
            query=query,
        )

    async def _resource(self, group: str, kind: str) -> str:
        try:
            mapping = (await self._discovery.mappings(group, kind))[0]
        except StatusError as error:
            shown = f"{kind}.{group}" if group else kind
            text = f"unable to map kind {shown} to resource: {error}"
            raise StatusError(text, code=error.code, reason=error.reason) from error
        return f"{mapping.plural}.{group}" if group else mapping.plural

    async def _list(self, path: str, *, subject: str, query: list[tuple[str, str]]) -> MetricValueList:
        place = urls.group_version(GROUP, await self._version()) + path
        return typed_responses.with_kind(await self._client.fetch(place, subject=subject, query=query), _LIST)

    async def _version(self) -> str:
        versions = await self._discovery.versions(GROUP, max_age_s=self._version_period_s)
        if not versions:
            raise StatusError(f"no custom metrics API ({GROUP}) registered", code=0)
        for version in versions:
            if version in KNOWN_VERSIONS:
                return version
        raise StatusError("no known available metric versions found", code=0)


def group_of(api_version: str) -> str:
    """The group in an apiVersion; empty for the core group and for what cannot be parsed."""
    group, slash, version = api_version.partition("/")
    return group if slash and "/" not in version else ""
