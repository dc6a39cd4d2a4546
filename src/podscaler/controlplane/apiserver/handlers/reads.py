"""GET of objects and lists.

Called by `dispatch`. They come from memory and cost a lookup; objects that are not stored are `computed_objects`'s.
"""

from podscaler.controlplane.apiserver.http import http_errors, names, queries, rendering
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse


async def get(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """One object.

    Raises:
        StatusError: 400, 404, 406, 500, 504.
    """
    path = call.path
    names.check_in_path(path.name)
    if call.query.flag("export"):
        raise http_errors.bad_request("the export parameter, deprecated since v1.14, is no longer supported")
    version = call.query.text("resourceVersion")
    entry = plane.objects.get(call.key, path.namespace, path.name, resource_version=version)
    return await rendering.one(plane, call, entry)


async def list_all(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """The objects of a namespace, or of all.

    Raises:
        StatusError: 400, 406, 410, 422, 504.
    """
    options = queries.list_options(call.query)
    found = plane.objects.list(call.key, call.path.namespace, options=options)
    return await rendering.page(plane, call, found)
