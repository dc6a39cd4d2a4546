"""Handles GET requests of objects and lists: stored ones, and computed ones (PodMetrics, NodeMetrics).

`dispatch` calls it. Stored objects come from memory. Computed objects are of kinds with `Resource.stored` False; a
`registry.providers.VirtualObjects` computes them, they have no resourceVersion. A new computed kind: a provider in
`ServerParts.virtual_objects` (`apiserver.http.resource_request`).

Source: the metrics.k8s.io API. Differs: metrics-server's 404 names the kind, `podmetrics.metrics.k8s.io`.
"""

from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors, name_checks, object_responses, query_options
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.registry.providers import VirtualObjects
from podscaler.controlplane.storage import entries, selection_predicate
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.listing import ListPage


async def get(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """The response with one stored object. Raises StatusError 400, 404, 406, 500, 504."""
    path = request.path
    name_checks.check_path_name(path.name)
    if request.query.flag("export"):
        raise http_errors.bad_request("the export parameter, deprecated since v1.14, is no longer supported")
    version = request.query.text("resourceVersion")
    entry = server.objects.get(request.resource_key, path.namespace, path.name, resource_version=version)
    try:
        await object_responses.convert_by_webhook(server, request, [entry])
    except StatusError as error:
        raise api_errors.undecodable(request.served.resource, entry.key, entry.revision, error.message) from error
    return await object_responses.object_response(server, request, entry)


async def list_all(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """The stored objects of a namespace, or of all. Raises StatusError 400, 406, 410, 422, 500, 504."""
    options = query_options.list_options(request.query)
    page = server.objects.list(request.resource_key, request.path.namespace, options=options)
    return await object_responses.list_response(server, request, page)


async def get_computed(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """The response with one computed object. Raises StatusError 400, 404, 406, 503 without a provider."""
    path = request.path
    computed = _get_provider(server, request).get(path.namespace, path.name)
    if computed is None:
        raise api_errors.not_found(request.served.resource, path.name)
    return await object_responses.object_response(server, request, _computed_entry(request, computed))


async def list_computed(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """The response with the computed objects of a namespace (or of all) that match the selectors.

    Raises StatusError 400, 406, 503 without a provider.
    """
    namespace = request.path.namespace
    options = query_options.list_options(request.query)
    selection = selection_predicate.selection(request.served.resource, namespace, options)
    computed = [_computed_entry(request, obj) for obj in _get_provider(server, request).list(namespace)]
    selected = sorted((entry for entry in computed if selection.matches(entry)), key=lambda entry: entry.key)
    return await object_responses.list_response(server, request, ListPage(selected, revision=0))


def _get_provider(server: ServerContext, request: ResourceRequest) -> VirtualObjects:
    """The provider that computes the objects of the request's kind. Raises StatusError 503 without one."""
    provider = server.parts.virtual_objects.get(request.resource_key)
    if provider is None:
        message = "the server is currently unable to handle the request"
        raise StatusError(message, code=503, reason="ServiceUnavailable", details={})
    return provider


def _computed_entry(request: ResourceRequest, obj: Object) -> Entry:
    """A computed object as an entry of revision 0, with kind and apiVersion of the request."""
    type_meta = {"kind": request.served.resource.kind, "apiVersion": request.served.api_version}
    typed = {**type_meta, **obj, **type_meta}  # first in the JSON, and not those that `obj` may have
    return entries.from_object(request.resource_key, {**typed, "metadata": dict(obj["metadata"])}, 0)
