"""The endpoint controller: writes the Endpoints of every Service with a selector from the pods that it selects.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`, for clients that do not read EndpointSlices;
the control plane itself reads slices only. Endpoints of Services without a selector belong to the user. Endpoints
without a Service are deleted, unless they are the lock of a leader election.

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


class EndpointController(Reconciler[Key]):
    """Reconciles the Endpoints of Services. Keys are namespace and name of Services."""

    name = "endpoint-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._events = EventRecorder(registry, self.name, clock)
        self._pods = SelectedPods(BATCH_S_PER_POD, MAX_BATCH_S)
        self._triggers: dict[Key, dict[str, str]] = {}
        self._addresses: defaultdict[Key, AddressCache] = defaultdict(AddressCache)

    def watches(self) -> Sequence[Watched[Key]]:
        """Services, pods, and deleted Endpoints, which are created again."""
        return [
            Watched(SERVICES, self._pods.service_keys),
            Watched(PODS, self._pods.pod_keys, self._pods.batch_period),
            Watched(ENDPOINTS, _deleted),
        ]

    def prime(self) -> Iterable[Key]:
        """All Services with a selector, and all Endpoints, whose Service may be gone."""
        existing = self._registry.list(ENDPOINTS)
        left = [
            selection.key_of(endpoints) for endpoints in existing if not endpoint_object.is_election_lock(endpoints)
        ]
        return [*self._pods.prime(self._registry.list(SERVICES)), *left]

    async def sync(self, key: Key) -> float | None:
        """Create or update the Endpoints of a Service if they differ; a namespace that is being deleted gets none."""
        service = self._registry.find(SERVICES, *key)
        if service is None:
            await write_errors.ignoring_gone(self._registry.delete(ENDPOINTS, *key))
        if service is None or not selected_pods.selects(service):
            self._pods.forget(key)
            self._triggers.pop(key, None)
            self._addresses.pop(key, None)
            return None
        candidates = self._registry.list(PODS, key[0], labels=service["spec"]["selector"])
        self._pods.note(key, candidates)
        times = _trigger_times(service, candidates)
        earliest = self._earliest_new(key, times)
        await self._registry.pause()  # with thousands of pods, the rest runs in a later loop iteration
        current = self._registry.find(ENDPOINTS, *key)
        wanted = endpoint_object.wanted(service, candidates, current, earliest, self._addresses[key])
        if wanted is not None and current is None:
            await write_errors.ignoring_terminating(self._registry.create(ENDPOINTS, wanted))
        elif wanted is not None:
            await self._registry.update(ENDPOINTS, wanted)
        self._triggers[key] = times
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Record upstream's event."""
        service = self._registry.find(SERVICES, *key)
        if service is not None:
            message = f"Failed to update endpoint {key[0]}/{key[1]}: {error}"
            self._events.event(service, "Warning", "FailedToUpdateEndpoint", message)

    def _earliest_new(self, key: Key, times: dict[str, str]) -> str:
        """The earliest of the times that are later than at the last sync, empty if none is."""
        before = self._triggers.get(key, {})
        return min((at for name, at in times.items() if at > before.get(name, "")), default="")


def _trigger_times(service: Object, candidates: Iterable[Object]) -> dict[str, str]:
    """The creation time of the Service (key "") and the last transition of each pod's Ready condition, by name."""
    times = {"": service["metadata"].get("creationTimestamp") or ""}
    for pod in candidates:
        times[pod["metadata"]["name"]] = (pods.ready_condition(pod) or {}).get("lastTransitionTime") or ""
    return times


def _deleted(event: ObjectEvent) -> Iterable[Key]:
    return [selection.key_of(event.object)] if event.type == "DELETED" else []
