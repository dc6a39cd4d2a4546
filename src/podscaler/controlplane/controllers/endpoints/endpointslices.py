"""The endpoint slice controller: writes the EndpointSlices of every Service with a selector from its pods.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. Services without a selector, and slices of
other managers, are left alone. A field of an endpoint: `endpoints`; how endpoints are spread over slices: `slices`; how
slices are read and written: `stored_slices`.

Source: documentation of Service and EndpointSlice; the reason and message of its Event are upstream's.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from podscaler.base.clock import Clock
from podscaler.controlplane.controllers.endpoints import selected_pods, slices, stored_slices
from podscaler.controlplane.controllers.endpoints.endpoints import EndpointCache
from podscaler.controlplane.controllers.endpoints.selected_pods import SelectedPods
from podscaler.controlplane.controllers.endpoints.stored_slices import SLICES
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry

SERVICES = "services"
PODS = "pods"
BATCH_S_PER_POD = 0.00025
"""How long changes are collected for each pod of a Service, so that n changes of n pods do not cost n * n."""
MAX_BATCH_S = 1.0
"""How long they are collected at most."""


class EndpointSlices(Reconciler[Key]):
    """Reconciles the EndpointSlices in `registry`. Keys are namespace and name of Services; `clock` times Events."""

    name = "endpoint-slice-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._events = EventRecorder(registry, self.name, clock)
        self._pods = SelectedPods(BATCH_S_PER_POD, MAX_BATCH_S)
        self._endpoint_caches: defaultdict[Key, EndpointCache] = defaultdict(EndpointCache)

    def watches(self) -> Sequence[Watched[Key]]:
        """Services, pods, and the slices themselves, which clients may change or delete."""
        keys_of_slice = partial(stored_slices.keys_of_event, manager=slices.MANAGER)
        return [
            Watched(SERVICES, self._pods.index_service),
            Watched(PODS, self._pods.index_pod, self._pods.batch_period),
            Watched(SLICES, keys_of_slice, self._pods.batch_period),
        ]

    def prime(self) -> Iterable[Key]:
        """All Services with a selector."""
        return self._pods.prime(self._registry.list(SERVICES))

    async def sync(self, key: Key) -> float | None:
        """Create, update or delete the slices that differ; returns None. Raises StatusError if a write fails."""
        service = self._registry.find(SERVICES, *key)
        if service is None or not selected_pods.selects(service):
            self._pods.forget(key)
            self._endpoint_caches.pop(key, None)
            return None
        namespace, _ = key
        selected = self._registry.list(PODS, namespace, labels=service["spec"]["selector"])
        self._pods.note(key, selected)
        await self._registry.pause()  # with thousands of pods, the rest runs in a later loop iteration
        endpoints_by_ports = self._endpoint_caches[key].groups(service, selected)
        existing = stored_slices.list_slices(self._registry, key, manager=slices.MANAGER)
        await stored_slices.write(self._registry, slices.plan_writes(service, existing, endpoints_by_ports))
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Record upstream's event of a failed sync at the Service."""
        service = self._registry.find(SERVICES, *key)
        if service is not None:
            namespace, name = key
            message = f"Error updating Endpoint Slices for Service {namespace}/{name}: {error}"
            self._events.event(service, "Warning", "FailedToUpdateEndpointSlices", message)
