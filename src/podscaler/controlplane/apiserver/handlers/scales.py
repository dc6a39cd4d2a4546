"""Handles GET, PUT and PATCH requests of the subresource `scale`: an autoscaling/v1 Scale (`kubectl scale`).

`dispatch` calls it; `registry.objects` converts between a Scale and its object. A kind gets the subresource by
`Resource.scale`, and needs nothing here.
"""

from functools import partial
from http import HTTPStatus

from podscaler.api.resource import api_errors, scale_mappings
from podscaler.api.resource.resources import Object
from podscaler.api.schema import canonical, unstructured
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.handlers import server_side_apply, writes
from podscaler.controlplane.apiserver.handlers.patching import Patcher, receive_patch
from podscaler.controlplane.apiserver.handlers.server_side_apply import ApplyTarget
from podscaler.controlplane.apiserver.http import http_errors, name_checks, object_responses, query_options
from podscaler.controlplane.apiserver.http.negotiation import media_type
from podscaler.controlplane.apiserver.http.query_options import WriteOptions
from podscaler.controlplane.apiserver.http.request_bodies import GO_SCHEME, BodyKind
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.registry import field_managers, object_preparation, scale_field_managers
from podscaler.controlplane.storage.options import UpdateOptions

SCALE = BodyKind("autoscaling/v1", "Scale", "autoscaling/v1.Scale")
OLD_SCALES = tuple(
    BodyKind(version, "Scale", SCALE.message) for version in ("extensions/v1beta1", "apps/v1beta1", "apps/v1beta2")
)
"""Scales of removed API versions: a body of one is decoded, so that the error names the wrong version."""
_APPLY_TARGET = ApplyTarget(SCALE, scale_field_managers.SCALE_KIND, partial(unstructured.decode, message=SCALE.message))


async def get(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """The response with the scale of an object. Raises StatusError 400, 404, 406, 500."""
    path = request.path
    name_checks.check_path_name(path.name)
    scale = await server.objects.converted(
        lambda: server.objects.get_scale(request.resource_key, path.namespace, path.name)
    )
    return await _scale_response(server, request, scale)


async def replace(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """Set the scale of an object. Raises StatusError 400, 404, 406, 408, 409, 413, 415, 422, 500."""
    path = request.path
    name_checks.check_path_name(path.name)
    options = query_options.write_options(request.query, "UpdateOptions")
    new_scale = await _receive_scale(server, request, options)
    object_preparation.set_namespace(new_scale, path.namespace)
    name_checks.check_name(new_scale, path.name)
    update = UpdateOptions("", writes.preconditions_of(new_scale), options.dry_run, request.author(options))
    scale = await server.objects.update_scale(
        request.resource_key, path.namespace, path.name, lambda _scale: new_scale, options=update
    )
    return await _scale_response(server, request, scale)


async def _receive_scale(server: ServerContext, request: ResourceRequest, options: WriteOptions) -> Object:
    """The Scale in the body of a request.

    Raises StatusError 400 (of a custom resource with one text for every body that is no Scale), 408, 413, 415.
    """
    try:
        received = await request.receive(SCALE, server.kinds, options)
        return received.obj
    except StatusError as error:
        if error.code == HTTPStatus.BAD_REQUEST and request.served.resource.is_custom:
            raise http_errors.bad_request(f"no kind is registered for the type v1.Scale {GO_SCHEME}") from None
        raise


async def patch(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """Patch the scale of an object. Raises StatusError 400, 404, 406, 408, 409, 413, 415, 422, 500."""
    path = request.path
    name_checks.check_path_name(path.name)
    if media_type(request.content_type) == server_side_apply.APPLY_TYPE:
        return await _respond_to_apply(server, request)
    options = query_options.patch_options(request.query, applies=False)
    patcher = Patcher(await receive_patch(request), SCALE, server.kinds, options.field_validation, request.warnings)
    update = UpdateOptions(dry_run=options.dry_run, author=request.author(options))

    def change(scale: Object) -> Object:
        patched, _ = patcher.patch_and_decode(scale)
        name_checks.check_name(patched, path.name)
        _check_uid(request, patched, scale["metadata"]["uid"])
        return patched

    scale = await server.objects.update_scale(request.resource_key, path.namespace, path.name, change, options=update)
    return await _scale_response(server, request, scale)


def _check_uid(request: ResourceRequest, patched: Object, uid: str) -> None:
    """Check that a patched Scale has the uid of the object. Raises StatusError 409 otherwise."""
    patched_uid = patched["metadata"].get("uid", uid)
    if patched_uid != uid:
        message = f"Precondition failed: UID in precondition: {patched_uid}, UID in object meta: {uid}"
        raise api_errors.subresource_conflict(request.served.resource, "scale", request.path.name, message)


async def _respond_to_apply(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """The response to server-side apply of a scale. Raises as `patch`."""
    path = request.path
    apply_request = await server_side_apply.receive(request, _APPLY_TARGET, server.clock.now_ns())

    def change(scale: Object) -> Object:
        entries = field_managers.take_entries(scale) or []
        live = canonical.canonical(scale, SCALE.message)
        applied_scale = apply_request.merge_into(live, entries, request.warnings)
        if request.served.resource.is_custom:
            _check_custom_unchanged(live, applied_scale)
        name_checks.check_name(applied_scale, path.name)
        object_preparation.set_namespace(applied_scale, path.namespace)
        return applied_scale

    update = UpdateOptions(dry_run=apply_request.options.dry_run, author=None)
    scale = await server.objects.update_scale(request.resource_key, path.namespace, path.name, change, options=update)
    return await _scale_response(server, request, scale)


def _check_custom_unchanged(live: Object, applied_scale: Object) -> None:
    """Check that apply does not change the Scale of a custom resource: kube-apiserver cannot convert it back.

    Raises StatusError 500, as kube-apiserver.
    """
    metadata = {field: content for field, content in applied_scale["metadata"].items() if field != "managedFields"}
    if canonical.canonical({**applied_scale, "metadata": metadata}, SCALE.message) != live:
        raise api_errors.error_without_reason(
            f"failed to convert new object (/{metadata.get('name', '')}; autoscaling/v1, Kind=Scale) "
            "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
        )


async def _scale_response(server: ServerContext, request: ResourceRequest, scale: Object) -> EncodedResponse:
    """The response with a Scale, in the negotiated form."""
    return await object_responses.unstored_object_response(server, request, scale, scale_mappings.PRINTER)
