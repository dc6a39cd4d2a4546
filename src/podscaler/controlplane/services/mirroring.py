"""The mirroring controller: Endpoints that somebody wrote for a Service without a selector become EndpointSlices.

`manager.Controllers` runs it in a `loop.ControlLoop`: proxy, names and aggregation read slices alone. Endpoints that
the endpoint controller made, that are the lock of a leader election or say that they are not to be mirrored, are not.

Source: upstream's endpoint slice mirroring controller.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.resources import Object
from podscaler.clock import Clock
from podscaler.controlplane.events import EventRecorder
from podscaler.controlplane.registry import Change, Registry
from podscaler.controlplane.services import mirrored_slices
from podscaler.controlplane.services.slices import MANAGED_BY, SERVICE_NAME
from podscaler.controlplane.workloads import selection
from podscaler.controlplane.workloads.loop import Watched
from podscaler.controlplane.workloads.selection import Key
from podscaler.errors import StatusError

SERVICES = "services"
ENDPOINTS = "endpoints"
SLICES = "endpointslices.discovery.k8s.io"
_SKIP = "endpointslice.kubernetes.io/skip-mirror"
_LEADER = "control-plane.alpha.kubernetes.io/leader"


class EndpointMirroring:
    """See the module. Keys are namespace and name of Endpoints, which are those of their Service."""

    name = "endpoint-slice-mirroring-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._events = EventRecorder(registry, self.name, clock)

    def watches(self) -> Sequence[Watched[Key]]:
        """Endpoints, their Services (which may get or lose a selector), and the slices."""
        return [Watched(ENDPOINTS, _own_key), Watched(SERVICES, _own_key), Watched(SLICES, _mirrored_key)]

    def prime(self) -> Iterable[Key]:
        """All Endpoints, and those whose slices are left."""
        slices = self._registry.list(SLICES, labels={MANAGED_BY: mirrored_slices.MANAGER})
        left = [key for one in slices for key in _mirrored_key(Change("ADDED", one))]
        return [*(selection.key_of(one) for one in self._registry.list(ENDPOINTS)), *left]

    async def sync(self, key: Key) -> float | None:
        """Write what differs."""
        labels = {SERVICE_NAME: key[1], MANAGED_BY: mirrored_slices.MANAGER}
        existing = self._registry.list(SLICES, key[0], labels=labels)
        mirrored, service = self._registry.find(ENDPOINTS, *key), self._registry.find(SERVICES, *key)
        if mirrored is None or service is None or service["spec"].get("selector") or not _is_mirrored(mirrored):
            await self._delete(existing)
            return None
        writes = mirrored_slices.writes(mirrored, existing)
        for one in writes.create:
            await self._registry.create(SLICES, one)
        for one in writes.update:
            await self._registry.update(SLICES, one)
        await self._delete(writes.delete)
        return None

    def report(self, key: Key, error: Exception) -> None:
        """As upstream does."""
        mirrored = self._registry.find(ENDPOINTS, *key)
        if mirrored is not None:
            message = f"Error mirroring endpoints {key[0]}/{key[1]}: {error}"
            self._events.event(mirrored, "Warning", "FailedToUpdateEndpointSlices", message)

    async def _delete(self, slices: Sequence[Object]) -> None:
        for one in slices:
            try:
                await self._registry.delete(SLICES, *selection.key_of(one), uid=one["metadata"]["uid"])
            except StatusError as error:
                if error.code != 404:
                    raise


def _is_mirrored(endpoints: Object) -> bool:
    if (selection.labels_of(endpoints)).get(_SKIP) == "true":
        return False
    return _LEADER not in (endpoints["metadata"].get("annotations") or {})


def _own_key(change: Change) -> Iterable[Key]:
    return [selection.key_of(change.object)]


def _mirrored_key(change: Change) -> Iterable[Key]:
    labels = selection.labels_of(change.object)
    if labels.get(MANAGED_BY) != mirrored_slices.MANAGER or SERVICE_NAME not in labels:
        return []
    return [(selection.key_of(change.object)[0], labels[SERVICE_NAME])]
