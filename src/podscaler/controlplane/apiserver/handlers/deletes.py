"""DELETE of objects and collections.

Called by `dispatch`. Options come from the body or, where there is none, from the query.
"""

from podscaler.api.machinery import field
from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import bodies, names, queries, rendering, responses
from podscaler.controlplane.apiserver.http.bodies import BodyKind
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import DeleteOptions

OPTIONS = BodyKind("v1", "DeleteOptions", "meta/v1.DeleteOptions")
SHOWN_WHEN_GONE = frozenset({"persistentvolumeclaims", "pods", "resourcequotas", "serviceaccounts", "services"})
"""Kinds whose DELETE answers with the object although it is gone, as upstream's does."""


async def delete(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Delete an object, or mark it for deletion.

    Raises:
        StatusError: 400, 404, 406, 409, 413, 415, 422.
    """
    path = call.path
    names.check_in_path(path.name)
    options = await _options(plane, call)
    if plane.objects.find(call.key, path.namespace, path.name) is not None:
        _warn(call, options)
    done = await plane.objects.delete(call.key, path.namespace, path.name, options=options)
    if done.gone and call.key not in SHOWN_WHEN_GONE:
        return await responses.of(success(call, done.entry), call.form)
    return await rendering.one(plane, call, done.entry)


async def delete_collection(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Delete everything that the selectors select.

    Raises:
        StatusError: 400, 406, 409, 413, 415, 422.
    """
    options = await _options(plane, call)
    which = queries.list_options(call.query)
    if options.forces_unreadable:
        raise _no_force_on_collections()
    found = await plane.objects.delete_collection(call.key, call.path.namespace, which=which, options=options)
    if found.entries:
        _warn(call, options)
    return await rendering.page(plane, call, found)


async def _options(plane: Plane, call: ResourceRequest) -> DeleteOptions:
    body = await bodies.read(call.request)
    given = bodies.decode_options(body, call.content_type, OPTIONS, plane.kinds) if body else {}
    return queries.delete_options(call.query, given)


def _warn(call: ResourceRequest, options: DeleteOptions) -> None:
    """Warn a client that said nothing about dependents, where that leaves them behind."""
    warning = call.served.resource.strategy.orphaning_warning
    if warning and not options.propagation and options.orphan_dependents is None:
        call.warnings.append(warning)


def _no_force_on_collections() -> StatusError:
    why = "is not allowed with DELETECOLLECTION, try again after removing the option"
    fault = field.invalid("ignoreStoreReadErrorWithClusterBreakingPotential", True, why)
    return field.refusal(group="meta.k8s.io", kind="DeleteOptions", name="", errors=[fault])


def success(call: ResourceRequest, entry: Entry) -> Object:
    """The Status that says that an object is gone."""
    resource = call.served.resource
    details = {"name": entry.name, "group": resource.group, "kind": resource.plural, "uid": entry.uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
