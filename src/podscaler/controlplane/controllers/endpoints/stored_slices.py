"""Reads and writes EndpointSlices in the registry, for the controllers in `endpointslices` and `mirroring`.

Each controller manages the slices with its name in the label `endpointslice.kubernetes.io/managed-by`. Another
controller of slices passes its label value as `manager`.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.endpoints.slices import MANAGED_BY, SERVICE_NAME, Writes
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

SLICES = "endpointslices.discovery.k8s.io"


def list_slices(registry: Registry, key: Key, *, manager: str) -> Sequence[Object]:
    """The slices of the Service `key` that `manager` (a value of the label) wrote."""
    namespace, service_name = key
    return registry.list(SLICES, namespace, labels={SERVICE_NAME: service_name, MANAGED_BY: manager})


def service_keys(slice_: Object, *, manager: str) -> Iterable[Key]:
    """A list of the key of the Service of a slice; empty if `manager` does not manage the slice, or it names none."""
    labels = selection.labels_of(slice_)
    if labels.get(MANAGED_BY) != manager or SERVICE_NAME not in labels:
        return []
    namespace, _ = selection.key_of(slice_)
    return [(namespace, labels[SERVICE_NAME])]


def keys_of_event(event: ObjectEvent, *, manager: str) -> Iterable[Key]:
    """As `service_keys`, for the watch of slices."""
    return service_keys(event.object, manager=manager)


async def write(registry: Registry, writes: Writes) -> None:
    """Carry out all writes; a slice to delete may be gone already.

    Where the namespace is being deleted, nothing is written from the first create on. Raises StatusError.
    """
    for slice_ in writes.create:
        if not await write_errors.ignoring_terminating(registry.create(SLICES, slice_)):
            return
    for slice_ in writes.update:
        await registry.update(SLICES, slice_)
    for slice_ in writes.delete:
        uid = slice_["metadata"]["uid"]
        await write_errors.ignoring_gone(registry.delete(SLICES, *selection.key_of(slice_), uid=uid))
