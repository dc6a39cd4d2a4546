"""Handles POST and PUT requests: creates and replaces objects, and replaces their status.

`dispatch` calls it. The body is decoded in the version of the path, defaulted, converted to the storage version and
passed to `registry.objects`, which validates and stores it. `patching`, `scales` and `subresources` use its helpers: a
step of all writes before they are stored goes into `to_storage`.
"""

from podscaler.api.resource.resources import Object, Version
from podscaler.api.text.json_text import DecodeError
from podscaler.controlplane.apiserver.http import http_errors, name_checks, object_responses, query_options
from podscaler.controlplane.apiserver.http.query_options import WriteOptions
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.registry import object_preparation
from podscaler.controlplane.registry.object_writer import Replacement
from podscaler.controlplane.storage.options import Preconditions, UpdateOptions

_DUPLICATE_OWNERS = ".metadata.ownerReferences contains duplicate entries"
_DUPLICATE_OWNERS_PATCHED = f"{_DUPLICATE_OWNERS} after mutating admission happens"
_DUPLICATE_OWNERS_ADVICE = "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24"


async def create(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """Create an object. Raises StatusError 400, 403, 404, 406, 408, 409, 413, 415, 422, 500."""
    options = query_options.write_options(request.query, "CreateOptions")
    received = await request.receive(request.kind, server.kinds, options)
    object_preparation.set_namespace(received.obj, request.path.namespace)
    remove_duplicate_owners(received.obj, request.warnings)
    return await _create(server, request, to_storage(request.served.version, received.obj), options)


async def replace(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """Replace an object, or the status of one; objects of some kinds are created where they are missing.

    Raises StatusError 400, 403, 404, 406, 408, 409, 413, 415, 422, 500.
    """
    path = request.path
    name_checks.check_path_name(path.name)
    options = query_options.write_options(request.query, "UpdateOptions")
    received = await request.receive(request.kind, server.kinds, options)
    object_preparation.set_namespace(received.obj, path.namespace)
    remove_duplicate_owners(received.obj, request.warnings)
    name_checks.check_name(received.obj, path.name)
    new_object = to_storage(request.served.version, received.obj)
    may_create = request.served.resource.strategy.allows_create_on_update and not path.subresource
    if may_create and server.objects.find(request.resource_key, path.namespace, path.name) is None:
        request.check_may_create(server.authorizer)
        return await _create(server, request, new_object, options)
    change = Replacement(new_object)  # its `replaced` becomes the stored version
    preconditions = preconditions_of(new_object)
    update = UpdateOptions(path.subresource, preconditions, options.dry_run, request.author(options))
    entry = await server.objects.update(request.resource_key, path.namespace, path.name, change, options=update)
    if request.may_warn and change.replaced is not None:
        request.warn(entry, change.replaced.decode())
    return await object_responses.object_response(server, request, entry)


async def _create(
    server: ServerContext, request: ResourceRequest, new_object: Object, options: WriteOptions
) -> EncodedResponse:
    """Store an object in the storage version; returns the response with it."""
    author = request.author(options)
    entry = await server.objects.create(request.resource_key, new_object, dry_run=options.dry_run, author=author)
    request.warn(entry, None)
    return await object_responses.object_response(server, request, entry, status=201)


def to_storage(version: Version, obj: Object) -> Object:
    """A decoded object (changed in place), defaulted and converted to the storage version.

    Raises StatusError 400 for an object that cannot be converted.
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
    """The preconditions of a PUT: the uid of the sent object, if it has one."""
    return Preconditions(uid=obj["metadata"].get("uid", ""))


def remove_duplicate_owners(obj: Object, warnings: list[str], *, is_patched: bool = False) -> None:
    """Remove duplicate owner references from `obj`, in place, and append a warning with their uids.

    Args:
        obj: the object.
        warnings: gets the warning, once; a patch may be applied several times.
        is_patched: whether a patch made the object; kube-apiserver's warning for one that was sent differs.

    Source: kube-apiserver's handlers of create, update and patch.
    """
    metadata = obj.get("metadata") or {}
    distinct_owners: list[Object] = []
    duplicate_uids: dict[str, None] = {}
    for owner in metadata.get("ownerReferences") or []:
        if owner in distinct_owners:
            duplicate_uids[owner.get("uid", "")] = None
        else:
            distinct_owners.append(owner)
    if not duplicate_uids:
        return
    metadata["ownerReferences"] = distinct_owners
    problem = _DUPLICATE_OWNERS_PATCHED if is_patched else _DUPLICATE_OWNERS
    uids_text = f"please fix your requests; duplicate UID(s) observed: {', '.join(duplicate_uids)}"
    warning = f"{problem}; {_DUPLICATE_OWNERS_ADVICE}; {uids_text}"
    if warning not in warnings:
        warnings.append(warning)
