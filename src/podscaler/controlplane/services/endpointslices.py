"""The endpoint slice controller: the slices of every Service with a selector follow the pods that it selects.

`manager.Controllers` runs it in a `loop.ControlLoop`. Services without a selector, and slices that somebody else
manages, are left alone.

Source: documentation of Service and EndpointSlice.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.resources import Object
from podscaler.clock import Clock
from podscaler.controlplane.events import EventRecorder
from podscaler.controlplane.registry import Change, Registry
from podscaler.controlplane.services import endpoints, selected_pods, slices
from podscaler.controlplane.services.selected_pods import SelectedPods
from podscaler.controlplane.workloads import selection
from podscaler.controlplane.workloads.loop import Watched
from podscaler.controlplane.workloads.selection import Key
from podscaler.errors import StatusError

SERVICES = "services"
SLICES = "endpointslices.discovery.k8s.io"
PODS = "pods"
SETTLE_S_PER_POD = 0.00025
LONGEST_SETTLE_S = 1.0


class EndpointSlices:
    """See the module. Keys are namespace and name of Services."""

    name = "endpoint-slice-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._events = EventRecorder(registry, self.name, clock)
        self._pods = SelectedPods(SETTLE_S_PER_POD, LONGEST_SETTLE_S)

    def watches(self) -> Sequence[Watched[Key]]:
        """Services, pods, and the slices themselves (somebody may change or delete them)."""
        return [
            Watched(SERVICES, self._pods.of_service),
            Watched(PODS, self._pods.of_pod, self._pods.settle_s),
            Watched(SLICES, self._of_slice),
        ]

    def prime(self) -> Iterable[Key]:
        """Rebuild the indexes."""
        return self._pods.prime(self._registry.list(SERVICES))

    async def sync(self, key: Key) -> float | None:
        """Write what differs."""
        service = self._registry.find(SERVICES, *key)
        if service is None or not selected_pods.selects(service):
            self._pods.forget(key)
            return None
        candidates = self._registry.list(PODS, key[0], labels=service["spec"]["selector"])
        self._pods.found(key, candidates)
        groups = endpoints.groups(service, candidates)
        await self._write(slices.writes(service, self._existing(key), groups))
        return None

    def report(self, key: Key, error: Exception) -> None:
        """As upstream does."""
        service = self._registry.find(SERVICES, *key)
        if service is not None:
            message = f"Error updating Endpoint Slices for Service {key[0]}/{key[1]}: {error}"
            self._events.event(service, "Warning", "FailedToUpdateEndpointSlices", message)

    def _of_slice(self, change: Change) -> Iterable[Key]:
        labels = selection.labels_of(change.object)
        if labels.get(slices.MANAGED_BY) != slices.MANAGER or slices.SERVICE_NAME not in labels:
            return []
        return [(selection.key_of(change.object)[0], labels[slices.SERVICE_NAME])]

    def _existing(self, key: Key) -> Sequence[Object]:
        labels = {slices.SERVICE_NAME: key[1], slices.MANAGED_BY: slices.MANAGER}
        return self._registry.list(SLICES, key[0], labels=labels)

    async def _write(self, writes: slices.Writes) -> None:
        for one in writes.create:
            await self._registry.create(SLICES, one)
        for one in writes.update:
            await self._registry.update(SLICES, one)
        for one in writes.delete:
            try:
                await self._registry.delete(SLICES, *selection.key_of(one), uid=one["metadata"]["uid"])
            except StatusError as error:
                if error.code != 404:
                    raise
