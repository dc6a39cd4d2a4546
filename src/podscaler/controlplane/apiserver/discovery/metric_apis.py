"""Metrics APIs: their place in discovery, and the GET requests below them.

Called by `discovery` and `dispatch`. They have no resources with records: what they list are metrics, which come and go
with what is measured. `podscaler.controlplane.registry.providers.MetricApis` knows them.

Source: the custom metrics API server library: `pods/http_requests` and the like in discovery, GET only.
"""

from collections.abc import Sequence

from aiohttp import web

from podscaler.controlplane.apiserver.discovery.resource_entry import Listed
from podscaler.controlplane.apiserver.http import http_errors, negotiation, responses
from podscaler.controlplane.apiserver.http.negotiation import Form
from podscaler.controlplane.apiserver.http.paths import ResourcePath
from podscaler.controlplane.apiserver.http.queries import Query
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.routes import READ, Subresource
from podscaler.controlplane.registry.providers import MetricApis, MetricQuery, MetricResource


def serves(apis: MetricApis | None, group: str, version: str) -> bool:
    """Whether the group and version are a metrics API's."""
    return apis is not None and version in apis.versions.get(group, ())


async def get(apis: MetricApis, request: web.BaseRequest, path: ResourcePath, query: Query) -> EncodedResponse:
    """The values that the path asks for.

    Raises:
        StatusError: 400, 404, 405, 406.
    """
    if request.method != "GET" or path.watches or query.flag("watch"):
        raise http_errors.method_not_allowed()
    if path.has_rest:
        raise http_errors.no_such_path()
    form = negotiation.resource_form(request.headers.get("Accept", ""), can_stream=False)
    found = apis.answer(
        MetricQuery(
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


def listed(apis: MetricApis, group: str) -> Sequence[Listed]:
    """The metrics of a group as discovery lists them: external ones alone, others as parts of what they describe.

    Source: aggregators show the described resources without a kind of their own, as nothing else is known about them.
    """
    kind = apis.list_kinds[group]
    parts: dict[tuple[str, bool], list[str]] = {}
    found = []
    for resource in apis.resources(group):
        if resource.subject:
            parts.setdefault((resource.subject, resource.namespaced), []).append(resource.metric)
        else:
            found.append(_outside(resource, kind))
    for (subject, namespaced), metrics in parts.items():
        found.append(_described(subject, kind, namespaced=namespaced, metrics=metrics))
    return found


def _outside(resource: MetricResource, kind: str) -> Listed:
    return Listed(resource.metric, "", kind, resource.namespaced, ("get",))


def _described(subject: str, kind: str, *, namespaced: bool, metrics: Sequence[str]) -> Listed:
    subresources = tuple(Subresource(metric, kind, READ) for metric in metrics)
    return Listed(subject, "", "", namespaced, (), subresources=subresources)
