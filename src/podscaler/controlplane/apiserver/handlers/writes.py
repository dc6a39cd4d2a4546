"""POST and PUT of objects and their status.

Called by `dispatch`. The body is decoded in the version of the path, defaulted, turned into the storage version and
handed to `objects`, where everything else is decided.
"""

from podscaler.api.resource.resources import Object, Version
from podscaler.api.text.json_text import DecodeError
from podscaler.controlplane.apiserver.handlers import owners
from podscaler.controlplane.apiserver.http import bodies, field_manager, http_errors, names, queries, rendering
from podscaler.controlplane.apiserver.http.bodies import DecodedBody
from podscaler.controlplane.apiserver.http.queries import WriteOptions
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.auth.rules import Attributes
from podscaler.controlplane.registry import acting
from podscaler.controlplane.registry.writing import Replacement
from podscaler.controlplane.storage.options import Preconditions, UpdateOptions


async def create(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Create an object.

    Raises:
        StatusError: 400, 403, 404, 406, 409, 413, 415, 422, 500.
    """
    options = queries.write_options(call.query, "CreateOptions")
    received = await receive(plane, call, options)
    names.settle_namespace(received.obj, call.path.namespace)
    owners.merge_repeated(received.obj, call.warnings)
    stored = to_storage(call.served.version, received.obj)
    author = field_manager.of(call, options)
    entry = await plane.objects.create(call.key, stored, dry_run=options.dry_run, author=author)
    call.warn(entry, None)
    return await rendering.one(plane, call, entry, status=201)


async def replace(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Replace an object, or (by the path) its status.

    Raises:
        StatusError: 400, 404, 406, 409, 413, 415, 422, 500.
    """
    path = call.path
    names.check_in_path(path.name)
    options = queries.write_options(call.query, "UpdateOptions")
    received = await receive(plane, call, options)
    names.settle_namespace(received.obj, path.namespace)
    owners.merge_repeated(received.obj, call.warnings)
    names.check_name(received.obj, path.name)
    wanted = to_storage(call.served.version, received.obj)
    update = UpdateOptions(path.subresource, preconditions_of(wanted), options.dry_run, field_manager.of(call, options))
    if _creates(plane, call):
        return await _create_at(plane, call, wanted, options)
    change = Replacement(wanted)
    entry = await plane.objects.update(call.key, path.namespace, path.name, change, options=update)
    if call.may_warn and change.replaced is not None:
        call.warn(entry, change.replaced.decode())
    return await rendering.one(plane, call, entry)


def _creates(plane: Plane, call: ResourceRequest) -> bool:
    """Whether this PUT makes a new object: of some kinds, where there is none of that name."""
    path = call.path
    if path.subresource or not call.served.resource.strategy.allows_create_on_update:
        return False
    return plane.objects.find(call.key, path.namespace, path.name) is None


async def _create_at(plane: Plane, call: ResourceRequest, wanted: Object, options: WriteOptions) -> EncodedResponse:
    """Create the object for who may create, too. Raises as `create`."""
    path = call.path
    if plane.authorizer is not None:
        asked = Attributes("create", group=path.group, resource=path.resource, namespace=path.namespace, name=path.name)
        plane.authorizer.authorize(acting.current(), asked)
    author = field_manager.of(call, options)
    entry = await plane.objects.create(call.key, wanted, dry_run=options.dry_run, author=author)
    call.warn(entry, None)
    return await rendering.one(plane, call, entry, status=201)


async def receive(plane: Plane, call: ResourceRequest, options: WriteOptions) -> DecodedBody:
    """The request's body as an object of the path's kind and version.

    Raises:
        StatusError: 400, 408, 413, 415.
    """
    body = await bodies.read(call.request)
    validation = options.field_validation
    received = bodies.decode(body, call.content_type, call.kind, plane.kinds, validation=validation)
    call.warnings.extend(received.warnings)
    bodies.check_version(received, call.kind)
    return received


def to_storage(version: Version, obj: Object) -> Object:
    """A decoded object (changed in place), defaulted and in the storage version.

    Raises:
        StatusError: 400 for what an old version's conversion cannot read.
    """
    version.default(obj)
    try:
        return version.to_storage(obj)
    except DecodeError as error:
        kind = obj.get("kind", "")
        raise http_errors.bad_request(
            f'{kind} in version "{version.version}" cannot be handled as a {kind}: {error}'
        ) from None


def preconditions_of(obj: Object) -> Preconditions:
    """What a PUT demands of the stored object: that it is the one that the client saw, if it says which."""
    return Preconditions(uid=obj["metadata"].get("uid", ""))
