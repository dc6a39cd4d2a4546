"""The metrics APIs (custom.metrics.k8s.io, external.metrics.k8s.io): their discovery entries and GET requests.

Called by `discovery` and `dispatch`. Their resources are metrics, which appear and disappear with what is measured;
they have no routes. `podscaler.controlplane.registry.providers.MetricApis` provides them.

Source: the custom metrics API server library: `pods/http_requests` and the like in discovery, GET only.
"""

from collections.abc import Sequence

from aiohttp import web

from podscaler.controlplane.apiserver.discovery.resource_entry import DiscoveryResource
from podscaler.controlplane.apiserver.http import http_errors, negotiation, responses
from podscaler.controlplane.apiserver.http.negotiation import Form
from podscaler.controlplane.apiserver.http.paths import ResourcePath
from podscaler.controlplane.apiserver.http.queries import Query
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.routes import READ, Subresource
from podscaler.controlplane.registry.providers import MetricApis, MetricsRequest


def serves(apis: MetricApis | None, group: str, version: str) -> bool:
    """Whether the group and version are a metrics API's."""
    return apis is not None and version in apis.versions.get(group, ())


async def get(apis: MetricApis, request: web.BaseRequest, path: ResourcePath, query: Query) -> EncodedResponse:
    """The response with the metric values of a path.

    Raises:
        StatusError: 400, 404, 405, 406.
    """
    if request.method != "GET" or path.watches or query.flag("watch"):
        raise http_errors.method_not_allowed()
    if path.has_rest:
        raise http_errors.no_such_path()
    form = negotiation.resource_form(request.headers.get("Accept", ""), can_stream=False)
    found = apis.answer(
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
    return await responses.of(found, Form(form.encoding))


def listed(apis: MetricApis, group: str) -> Sequence[DiscoveryResource]:
    """The discovery entries of a group: external metrics as resources, others as subresources of what they describe.

    Source: aggregators list the described resources without a kind, as nothing else is known about them.
    """
    kind = apis.list_kinds[group]
    subresources: dict[tuple[str, bool], list[Subresource]] = {}
    entries = []
    for resource in apis.resources(group):
        if resource.subject:
            metrics = subresources.setdefault((resource.subject, resource.namespaced), [])
            metrics.append(Subresource(resource.metric, kind, READ))
        else:
            entries.append(DiscoveryResource(resource.metric, "", kind, resource.namespaced, ("get",)))
    for (subject, namespaced), metrics in subresources.items():
        entries.append(DiscoveryResource(subject, "", "", namespaced, (), subresources=tuple(metrics)))
    return entries
