"""The scale subresource over HTTP: GET, PUT and PATCH of an autoscaling/v1 Scale.

Called by `app`; what a Scale means for its object is decided by `objects`.
"""

from functools import partial

from podscaler.api.resource import api_errors, scaling
from podscaler.api.resource.resources import Object
from podscaler.api.schema import canonical, restoring
from podscaler.controlplane.apiserver.handlers import applying, writes
from podscaler.controlplane.apiserver.handlers.applying import ApplyTarget
from podscaler.controlplane.apiserver.handlers.patching import Patching, receive
from podscaler.controlplane.apiserver.http import bodies, field_manager, names, queries, rendering
from podscaler.controlplane.apiserver.http.bodies import BodyKind
from podscaler.controlplane.apiserver.http.negotiation import media_type
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.registry import field_managers, scale_field_managers
from podscaler.controlplane.storage.options import UpdateOptions

SCALE = BodyKind("autoscaling/v1", "Scale", "autoscaling/v1.Scale")
OLD_SCALES = tuple(
    BodyKind(version, "Scale", SCALE.message) for version in ("extensions/v1beta1", "apps/v1beta1", "apps/v1beta2")
)
"""Scales of versions that no path has any more: they can be decoded, and are refused for their version."""
_APPLICABLE = ApplyTarget(SCALE, scale_field_managers.KIND, partial(restoring.decoded, message=SCALE.message))


async def get(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """The scale of an object.

    Raises:
        StatusError: 400, 404, 406.
    """
    path = call.path
    names.check_in_path(path.name)
    return await _answer(plane, call, plane.objects.get_scale(call.key, path.namespace, path.name))


async def replace(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Set the scale of an object.

    Raises:
        StatusError: 400, 404, 406, 409, 413, 415, 422, 500.
    """
    path = call.path
    names.check_in_path(path.name)
    options = queries.write_options(call.query, "UpdateOptions")
    body = await bodies.read(call.request)
    validation = options.field_validation
    received = bodies.decode(body, call.content_type, SCALE, plane.kinds, validation=validation)
    call.warnings.extend(received.warnings)
    bodies.check_version(received, SCALE)
    wanted = received.obj
    names.settle_namespace(wanted, path.namespace)
    names.check_name(wanted, path.name)
    update = UpdateOptions("", writes.preconditions_of(wanted), options.dry_run, field_manager.of(call, options))
    scale = await plane.objects.update_scale(call.key, path.namespace, path.name, lambda _scale: wanted, options=update)
    return await _answer(plane, call, scale)


async def patch(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Patch the scale of an object.

    Raises:
        StatusError: 400, 404, 406, 409, 413, 415, 422, 500.
    """
    path = call.path
    names.check_in_path(path.name)
    if media_type(call.content_type) == applying.APPLY:
        return await _apply(plane, call)
    options = queries.patch_options(call.query, applies=False)
    patching = Patching(await receive(call), SCALE, plane.kinds, options.field_validation, call.warnings)
    update = UpdateOptions(dry_run=options.dry_run, author=field_manager.of(call, options))

    def change(scale: Object) -> Object:
        patched = patching.decoded(scale)[0]
        names.check_name(patched, path.name)
        _check_uid(call, patched, scale["metadata"]["uid"])
        return patched

    scale = await plane.objects.update_scale(call.key, path.namespace, path.name, change, options=update)
    return await _answer(plane, call, scale)


def _check_uid(call: ResourceRequest, patched: Object, uid: str) -> None:
    """Refuse (409) a patch for an object that has another uid."""
    named = patched["metadata"].get("uid", uid)
    if named != uid:
        why = f"Precondition failed: UID in precondition: {named}, UID in object meta: {uid}"
        raise api_errors.subresource_conflict(call.served.resource, "scale", call.path.name, why)


async def _apply(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    path = call.path
    application = await applying.receive(call, _APPLICABLE, plane.clock.now_ns())

    def change(scale: Object) -> Object:
        entries = field_managers.take_entries(scale) or []
        live = canonical.canonical(scale, SCALE.message)
        wanted = application.applied(live, entries, call.warnings)
        if call.served.resource.is_custom:
            _check_custom(live, wanted)
        names.check_name(wanted, path.name)
        names.settle_namespace(wanted, path.namespace)
        return wanted

    update = UpdateOptions(dry_run=application.options.dry_run, author=None)
    scale = await plane.objects.update_scale(call.key, path.namespace, path.name, change, options=update)
    return await _answer(plane, call, scale)


def _check_custom(live: Object, wanted: Object) -> None:
    """Refuse (500) what upstream cannot do: a configuration that changes the Scale of a custom resource."""
    metadata = {name: value for name, value in wanted["metadata"].items() if name != "managedFields"}
    if canonical.canonical({**wanted, "metadata": metadata}, SCALE.message) != live:
        raise api_errors.unnamed_failure(
            f"failed to convert new object (/{metadata.get('name', '')}; autoscaling/v1, Kind=Scale) "
            "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
        )


async def _answer(plane: Plane, call: ResourceRequest, scale: Object) -> EncodedResponse:
    return await rendering.plain_object(call, scale, scaling.PRINTER, clock=plane.clock)
