"""The endpoint controller: writes the Endpoints of every Service with a selector from the pods that it selects.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`, for clients that do not read EndpointSlices;
the control plane itself reads slices only. Endpoints of Services without a selector belong to the user. Endpoints
without a Service are deleted, unless they are the lock of a leader election. `endpoint_object` has their content.

Source: upstream's endpoint controller.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.controlplane.controllers.endpoints import endpoint_object, selected_pods
from podscaler.controlplane.controllers.endpoints.endpoint_object import AddressCache
from podscaler.controlplane.controllers.endpoints.selected_pods import SelectedPods
from podscaler.controlplane.controllers.framework import pods, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

SERVICES = "services"
ENDPOINTS = "endpoints"
PODS = "pods"
BATCH_S_PER_POD = 0.002
MAX_BATCH_S = 2.0

_SERVICE_TIME = ""
"""The key of the creation time of the Service among the times of its pods."""


class EndpointController(Reconciler[Key]):
    """Reconciles the Endpoints in `registry`. Keys are namespace and name of Services; `clock` times Events."""

    name = "endpoint-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._events = EventRecorder(registry, self.name, clock)
        self._pods = SelectedPods(BATCH_S_PER_POD, MAX_BATCH_S)
        self._last_times: dict[Key, dict[str, str]] = {}
        """For each Service the result of `_trigger_times` at its last sync."""
        self._address_caches: defaultdict[Key, AddressCache] = defaultdict(AddressCache)

    def watches(self) -> Sequence[Watched[Key]]:
        """Services, pods, and deleted Endpoints, which are created again."""
        return [
            Watched(SERVICES, self._pods.index_service),
            Watched(PODS, self._pods.index_pod, self._pods.batch_period),
            Watched(ENDPOINTS, _keys_of_deleted),
        ]

    def prime(self) -> Iterable[Key]:
        """All Services with a selector, and all Endpoints, whose Service may be gone."""
        existing = [
            selection.key_of(endpoints)
            for endpoints in self._registry.list(ENDPOINTS)
            if not endpoint_object.is_election_lock(endpoints)
        ]
        return [*self._pods.prime(self._registry.list(SERVICES)), *existing]

    async def sync(self, key: Key) -> float | None:
        """Create or update the Endpoints of a Service if they differ, or delete those of a deleted Service.

        A namespace that is being deleted gets none. Returns None, as only changes need a sync. Raises StatusError.
        """
        service = self._registry.find(SERVICES, *key)
        if service is None:
            await write_errors.ignoring_gone(self._registry.delete(ENDPOINTS, *key))
        if service is None or not selected_pods.selects(service):
            self._pods.forget(key)
            self._last_times.pop(key, None)
            self._address_caches.pop(key, None)
            return None
        namespace, _ = key
        selected = self._registry.list(PODS, namespace, labels=service["spec"]["selector"])
        self._pods.note(key, selected)
        trigger_times = _trigger_times(service, selected)
        trigger_time = self._earliest_new_time(key, trigger_times)
        await self._registry.pause()  # with thousands of pods, the rest runs in a later loop iteration
        current = self._registry.find(ENDPOINTS, *key)
        changed = endpoint_object.object_to_write(service, selected, current, trigger_time, self._address_caches[key])
        if changed is not None and current is None:
            await write_errors.ignoring_terminating(self._registry.create(ENDPOINTS, changed))
        elif changed is not None:
            await self._registry.update(ENDPOINTS, changed)
        self._last_times[key] = trigger_times
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Record upstream's event of a failed sync at the Service."""
        service = self._registry.find(SERVICES, *key)
        if service is not None:
            namespace, name = key
            message = f"Failed to update endpoint {namespace}/{name}: {error}"
            self._events.event(service, "Warning", "FailedToUpdateEndpoint", message)

    def _earliest_new_time(self, key: Key, trigger_times: dict[str, str]) -> str:
        """The earliest of the times that are later than at the last sync (RFC 3339 in UTC), empty if none is."""
        old_times = self._last_times.get(key, {})
        new_times = [time for name, time in trigger_times.items() if time > old_times.get(name, "")]
        return min(new_times, default="")


def _trigger_times(service: Object, selected: Iterable[Object]) -> dict[str, str]:
    """The last transition of each pod's Ready condition by name, and the creation time of the Service.

    Times are RFC 3339, empty if unknown; that of the Service has the key `_SERVICE_TIME`.
    """
    times = {_SERVICE_TIME: service["metadata"].get("creationTimestamp") or ""}
    for pod in selected:
        times[pod["metadata"]["name"]] = (pods.ready_condition(pod) or {}).get("lastTransitionTime") or ""
    return times


def _keys_of_deleted(event: ObjectEvent) -> Iterable[Key]:
    """The key of deleted Endpoints, otherwise none."""
    return [selection.key_of(event.object)] if event.type == "DELETED" else []
