"""Handles DELETE requests of objects and of collections.

`dispatch` calls it. The DeleteOptions come from the body or, without a body, from the query. `registry.objects` decides
whether the object is removed at once. A new option: `query_options.delete_options`.
"""

from podscaler.api.machinery import field
from podscaler.api.resource.resources import Object
from podscaler.controlplane.apiserver.http import (
    name_checks,
    object_responses,
    query_options,
    request_bodies,
    responses,
)
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import DeleteOptions

DELETE_OPTIONS = BodyKind("v1", "DeleteOptions", "meta/v1.DeleteOptions")


async def delete(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """Delete an object, or set its deletionTimestamp if a grace period or finalizers keep it.

    Raises StatusError 400, 403, 404, 406, 408, 409, 413, 415, 422, 500.
    """
    path = request.path
    name_checks.check_path_name(path.name)
    options = await _receive_options(server, request)
    if server.objects.find(request.resource_key, path.namespace, path.name) is not None:
        _warn_about_orphans(request, options)
    deletion = await server.objects.delete(request.resource_key, path.namespace, path.name, options=options)
    if deletion.gone and not request.served.resource.returns_deleted_object:
        return await responses.encode_object(_success_status(request, deletion.entry), request.form)
    return await object_responses.object_response(server, request, deletion.entry)


async def delete_collection(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """Delete the objects that match the selectors.

    Raises StatusError 400, 403, 404, 406, 408, 409, 410, 413, 415, 422, 500, 504; then some may be deleted already.
    """
    options = await _receive_options(server, request)
    selectors = query_options.list_options(request.query)
    if options.forces_unreadable:
        message = "is not allowed with DELETECOLLECTION, try again after removing the option"
        error = field.invalid("ignoreStoreReadErrorWithClusterBreakingPotential", True, message)
        raise field.invalid_object(group="meta.k8s.io", kind="DeleteOptions", name="", errors=[error])
    deleted = await server.objects.delete_collection(
        request.resource_key, request.path.namespace, list_options=selectors, options=options
    )
    if deleted.entries:
        _warn_about_orphans(request, options)
    return await object_responses.list_response(server, request, deleted)


async def _receive_options(server: ServerContext, request: ResourceRequest) -> DeleteOptions:
    """The options of the body or, without a body, of the query. Raises StatusError 400, 408, 413, 415, 422."""
    body = await request_bodies.read(request.http)
    body_options: Object = {}
    if body:
        body_options = request_bodies.decode_options(body, request.content_type, DELETE_OPTIONS, server.kinds)
    return query_options.delete_options(request.query, body_options)


def _warn_about_orphans(request: ResourceRequest, options: DeleteOptions) -> None:
    """Warn that dependents are orphaned by default, for kinds of which that is so, unless the options set a policy."""
    warning = request.served.resource.strategy.orphaning_warning
    if warning and not options.propagation and options.orphan_dependents is None:
        request.warnings.append(warning)


def _success_status(request: ResourceRequest, entry: Entry) -> Object:
    """The Status that responds to the deletion of an object; empty details are left out."""
    resource = request.served.resource
    details = {"name": entry.name, "group": resource.group, "kind": resource.plural, "uid": entry.uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {field_name: content for field_name, content in details.items() if content},
    }
