"""The endpoint slice controller: the slices of every Service with a selector follow the pods that it selects.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. Services without a selector, and slices that
somebody else manages, are left alone.

Source: documentation of Service and EndpointSlice.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from podscaler.base.clock import Clock
from podscaler.controlplane.controllers.endpoints import selected_pods, slices, stored_slices
from podscaler.controlplane.controllers.endpoints.endpoints import KnownEndpoints
from podscaler.controlplane.controllers.endpoints.selected_pods import SelectedPods
from podscaler.controlplane.controllers.endpoints.stored_slices import SLICES
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

SERVICES = "services"
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
        self._endpoints: defaultdict[Key, KnownEndpoints] = defaultdict(KnownEndpoints)

    def watches(self) -> Sequence[Watched[Key]]:
        """Services, pods, and the slices themselves (somebody may change or delete them)."""
        return [
            Watched(SERVICES, self._pods.of_service),
            Watched(PODS, self._pods.of_pod, self._pods.settle_s),
            Watched(SLICES, _service_of, self._pods.settle_s),
        ]

    def prime(self) -> Iterable[Key]:
        """Rebuild the indexes."""
        return self._pods.prime(self._registry.list(SERVICES))

    async def sync(self, key: Key) -> float | None:
        """Write what differs."""
        service = self._registry.find(SERVICES, *key)
        if service is None or not selected_pods.selects(service):
            self._pods.forget(key)
            self._endpoints.pop(key, None)
            return None
        candidates = self._registry.list(PODS, key[0], labels=service["spec"]["selector"])
        self._pods.found(key, candidates)
        await self._registry.pause()  # thousands of pods: what follows is a step of its own
        groups = self._endpoints[key].groups(service, candidates)
        existing = stored_slices.of_service(self._registry, key, manager=slices.MANAGER)
        await stored_slices.write(self._registry, slices.writes(service, existing, groups))
        return None

    def report(self, key: Key, error: Exception) -> None:
        """As upstream does."""
        service = self._registry.find(SERVICES, *key)
        if service is not None:
            message = f"Error updating Endpoint Slices for Service {key[0]}/{key[1]}: {error}"
            self._events.event(service, "Warning", "FailedToUpdateEndpointSlices", message)


def _service_of(change: ObjectEvent) -> Iterable[Key]:
    return stored_slices.service_of(change.object, manager=slices.MANAGER)
