"""The scale subresource over HTTP: GET, PUT and PATCH of an autoscaling/v1 Scale.

Called by `app`; what a Scale means for its object is decided by `objects`.
"""

from podscaler.api.kinds import scaling
from podscaler.api.resources import Object
from podscaler.controlplane.options import UpdateOptions
from podscaler.controlplane.server import bodies, names, queries, rendering, writes
from podscaler.controlplane.server.answers import Answer
from podscaler.controlplane.server.bodies import Kind
from podscaler.controlplane.server.calls import Call, Plane
from podscaler.controlplane.server.patching import Patching, receive

SCALE = Kind("autoscaling/v1", "Scale", "autoscaling/v1.Scale")
OLD_SCALES = tuple(
    Kind(version, "Scale", SCALE.message) for version in ("extensions/v1beta1", "apps/v1beta1", "apps/v1beta2")
)
"""Scales of versions that no path has any more: they can be decoded, and are refused for their version."""


async def get(plane: Plane, call: Call) -> Answer:
    """The scale of an object.

    Raises:
        StatusError: 400, 404, 406.
    """
    path = call.path
    names.check_in_path(path.name)
    return await _answer(plane, call, plane.objects.get_scale(call.key, path.namespace, path.name))


async def replace(plane: Plane, call: Call) -> Answer:
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
    update = UpdateOptions("", writes.preconditions_of(wanted), options.dry_run)
    scale = await plane.objects.update_scale(call.key, path.namespace, path.name, lambda _scale: wanted, options=update)
    return await _answer(plane, call, scale)


async def patch(plane: Plane, call: Call) -> Answer:
    """Patch the scale of an object.

    Raises:
        StatusError: 400, 404, 406, 409, 413, 415, 422, 500.
    """
    path = call.path
    names.check_in_path(path.name)
    options = queries.write_options(call.query, "PatchOptions")
    patching = Patching(await receive(call), SCALE, plane.kinds, options.field_validation, call.warnings)
    update = UpdateOptions(dry_run=options.dry_run)

    def change(scale: Object) -> Object:
        return patching.decoded(scale)[0]

    scale = await plane.objects.update_scale(call.key, path.namespace, path.name, change, options=update)
    return await _answer(plane, call, scale)


async def _answer(plane: Plane, call: Call, scale: Object) -> Answer:
    return await rendering.plain_object(call, scale, scaling.PRINTER, clock=plane.clock)
