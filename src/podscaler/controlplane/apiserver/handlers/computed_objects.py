"""Objects that are not stored but computed on demand, shown as if they were.

Called by `dispatch` for resources whose record says `stored=False`; read-only, without a resourceVersion.

Source: the metrics.k8s.io API. Differs: metrics-server words a 404 with the kind, `podmetrics.metrics.k8s.io`.
"""

from podscaler.api.resource import api_errors as object_refusals
from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import queries, rendering
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.registry.providers import VirtualObjects
from podscaler.controlplane.storage import entries, selecting
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.listing import ListPage


async def get(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """One object.

    Raises:
        StatusError: 404, 406.
    """
    path = call.path
    found = _provider(plane, call).get(path.namespace, path.name)
    if found is None:
        raise object_refusals.not_found(call.served.resource, path.name)
    return await rendering.one(plane, call, _entry(call, found))


async def list_all(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """The objects of a namespace, or of all, that the selectors select.

    Raises:
        StatusError: 400, 406.
    """
    options = queries.list_options(call.query)
    selection = selecting.selection(call.served.resource, call.path.namespace, options)
    found = [_entry(call, obj) for obj in _provider(plane, call).list(call.path.namespace)]
    selected = sorted((entry for entry in found if selection.matches(entry)), key=lambda entry: entry.key)
    return await rendering.page(plane, call, ListPage(selected, 0))


def _provider(plane: Plane, call: ResourceRequest) -> VirtualObjects:
    provider = plane.virtual.get(call.key)
    if provider is None:
        text = "the server is currently unable to handle the request"
        raise StatusError(text, code=503, reason="ServiceUnavailable", details={})
    return provider


def _entry(call: ResourceRequest, obj: Object) -> Entry:
    typed = {"kind": call.served.resource.kind, "apiVersion": call.served.api_version}
    return entries.from_object(call.key, {**typed, **obj, **typed, "metadata": dict(obj["metadata"])}, 0)
