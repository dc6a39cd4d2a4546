"""Serves the metrics APIs (custom.metrics.k8s.io, external.metrics.k8s.io): discovery entries and GET requests.

`discovery` and `dispatch` call it. The resources of these APIs are metrics (`pods/http_requests`), which appear and
disappear with the objects that they describe; so they have no routes, and their GET stands here beside their discovery.
A `registry.providers.MetricApis` has the values, and the groups: a new metrics API needs nothing here.

Source: the custom metrics API server library: `pods/http_requests` and the like in discovery, GET only.
"""

from collections.abc import Sequence

from aiohttp import web

from podscaler.controlplane.apiserver.discovery.resource_entry import DiscoveryResource
from podscaler.controlplane.apiserver.http import http_errors, negotiation, responses
from podscaler.controlplane.apiserver.http.negotiation import Form
from podscaler.controlplane.apiserver.http.query_options import Query
from podscaler.controlplane.apiserver.http.request_paths import ResourcePath
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.routes import READ_METHODS, Subresource
from podscaler.controlplane.registry.providers import MetricApis, MetricsRequest


def serves(apis: MetricApis | None, group: str, version: str) -> bool:
    """Whether the group and version are those of a metrics API; False without any (None)."""
    return apis is not None and version in apis.versions.get(group, ())


async def get(apis: MetricApis, request: web.BaseRequest, path: ResourcePath, query: Query) -> EncodedResponse:
    """The response with the metric values of a path. Raises StatusError 400, 404, 405, 406."""
    if request.method != "GET" or path.is_deprecated_watch or query.flag("watch"):
        raise http_errors.method_not_allowed()
    if path.has_further_segments:
        raise http_errors.no_such_path()
    form = negotiation.resource_form(request.headers.get("Accept", ""), can_stream=False)
    metric_values = apis.list_values(
        MetricsRequest(
            path.group,
            path.version,
            namespace=path.namespace,
            resource=path.resource,
            name=path.name,
            subresource=path.subresource,
            label_selector=query.text("labelSelector"),
            metric_label_selector=query.text("metricLabelSelector"),
        )
    )
    # only the encoding counts: metrics have no Tables, whatever the request prefers
    return await responses.encode_object(metric_values, Form(form.encoding))


def discovery_resources(apis: MetricApis, group: str) -> Sequence[DiscoveryResource]:
    """The discovery entries of a group: external metrics as resources, others as subresources of the described kind.

    In aggregated discovery, the entry of a described kind has no kind, singular or verbs of its own: only its metrics
    belong to this group. Source: kube-apiserver's aggregated discovery of such a group.
    """
    list_kind = apis.list_kinds[group]
    metrics_by_subject: dict[tuple[str, bool], list[Subresource]] = {}
    entries = []
    for resource in apis.resources(group):
        if resource.subject:
            metrics = metrics_by_subject.setdefault((resource.subject, resource.namespaced), [])
            metrics.append(Subresource(resource.metric, list_kind, READ_METHODS))
        else:
            entries.append(DiscoveryResource(resource.metric, "", list_kind, resource.namespaced, verbs=("get",)))
    for (subject, namespaced), metrics in metrics_by_subject.items():
        subresources = tuple(metrics)
        entries.append(DiscoveryResource(subject, "", "", namespaced=namespaced, verbs=(), subresources=subresources))
    return entries
