"""The mirroring controller: mirrors Endpoints that users wrote for Services without a selector to EndpointSlices.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; proxy, DNS and aggregation read slices only.
Endpoints of Services with a selector, locks of leader elections, and Endpoints with the label skip-mirror are not
mirrored. `mirrored_slices` plans the slices of Endpoints, `stored_slices` reads and writes slices.

Source: upstream's endpoint slice mirroring controller.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.controlplane.controllers.endpoints import endpoint_object, mirrored_slices, stored_slices
from podscaler.controlplane.controllers.endpoints.mirrored_slices import MANAGER
from podscaler.controlplane.controllers.endpoints.slices import MANAGED_BY, Writes
from podscaler.controlplane.controllers.endpoints.stored_slices import SLICES
from podscaler.controlplane.controllers.framework import selection
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry

SERVICES = "services"
ENDPOINTS = "endpoints"
_SKIP_LABEL = "endpointslice.kubernetes.io/skip-mirror"


class EndpointMirroring(Reconciler[Key]):
    """Reconciles mirrored slices. Keys are namespace and name of Endpoints and their Service; `clock` times Events."""

    name = "endpoint-slice-mirroring-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._events = EventRecorder(registry, self.name, clock)

    def watches(self) -> Sequence[Watched[Key]]:
        """Endpoints, their Services (which may get or lose a selector), and the slices."""
        keys_of_slice = partial(stored_slices.keys_of_event, manager=MANAGER)
        return [
            Watched(ENDPOINTS, selection.own_keys),
            Watched(SERVICES, selection.own_keys),
            Watched(SLICES, keys_of_slice),
        ]

    def prime(self) -> Iterable[Key]:
        """The keys to sync at the start: of all Endpoints, and of all mirrored slices, whose Endpoints may be gone."""
        slices = self._registry.list(SLICES, labels={MANAGED_BY: MANAGER})
        keys_of_slices = [key for slice_ in slices for key in stored_slices.service_keys(slice_, manager=MANAGER)]
        keys_of_endpoints = [selection.key_of(endpoints) for endpoints in self._registry.list(ENDPOINTS)]
        return [*keys_of_endpoints, *keys_of_slices]

    async def sync(self, key: Key) -> float | None:
        """Create, update or delete the slices that differ; returns None, as only changes make a sync necessary.

        Raises StatusError if a write fails.
        """
        existing = stored_slices.list_slices(self._registry, key, manager=MANAGER)
        endpoints = self._registry.find(ENDPOINTS, *key)
        service = self._registry.find(SERVICES, *key)
        if endpoints is None or service is None or service["spec"].get("selector") or not _is_mirrored(endpoints):
            writes = Writes(delete=list(existing))
        else:
            writes = mirrored_slices.plan_writes(endpoints, existing)
        await stored_slices.write(self._registry, writes)
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Record upstream's event of a failed sync at the Endpoints."""
        endpoints = self._registry.find(ENDPOINTS, *key)
        if endpoints is not None:
            namespace, name = key
            message = f"Error mirroring endpoints {namespace}/{name}: {error}"
            self._events.event(endpoints, "Warning", "FailedToUpdateEndpointSlices", message)


def _is_mirrored(endpoints: Object) -> bool:
    """Whether Endpoints have neither the label skip-mirror nor the lock of a leader election."""
    return selection.labels_of(endpoints).get(_SKIP_LABEL) != "true" and not endpoint_object.is_election_lock(endpoints)
