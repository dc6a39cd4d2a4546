"""The endpoint slice controller: the slices of every Service with a selector follow the pods that it selects.

`manager.Controllers` runs it in a `loop.ControlLoop`. Services without a selector, and slices that somebody else
manages, are left alone.

Source: documentation of Service and EndpointSlice.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from podscaler.api import selectors
from podscaler.api.resources import Object
from podscaler.clock import Clock
from podscaler.controlplane.events import EventRecorder
from podscaler.controlplane.registry import Change, Registry
from podscaler.controlplane.services import endpoints, slices
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
        self._selecting = selection.Selecting()
        self._members: defaultdict[Key, set[Key]] = defaultdict(set)
        self._sizes: dict[Key, int] = {}

    def watches(self) -> Sequence[Watched[Key]]:
        """Services, pods, and the slices themselves (somebody may change or delete them)."""
        return [
            Watched(SERVICES, self._of_service),
            Watched(PODS, self._of_pod, self._settle_s),
            Watched(SLICES, self._of_slice),
        ]

    def prime(self) -> Iterable[Key]:
        """Rebuild the indexes."""
        self._selecting.clear()
        self._members.clear()
        for service in self._registry.list(SERVICES):
            self._note(service)
        return list(self._selecting.keys())

    async def sync(self, key: Key) -> float | None:
        """Write what differs."""
        service = self._registry.find(SERVICES, *key)
        if service is None or not _selects(service):
            self._sizes.pop(key, None)
            return None
        candidates = self._registry.list(PODS, key[0], labels=service["spec"]["selector"])
        self._sizes[key] = len(candidates)
        for pod in candidates:
            self._members[selection.key_of(pod)].add(key)
        groups = endpoints.groups(service, candidates)
        await self._write(slices.writes(service, self._existing(key), groups))
        return None

    def report(self, key: Key, error: Exception) -> None:
        """As upstream does."""
        service = self._registry.find(SERVICES, *key)
        if service is not None:
            message = f"Error updating Endpoint Slices for Service {key[0]}/{key[1]}: {error}"
            self._events.event(service, "Warning", "FailedToUpdateEndpointSlices", message)

    def _of_service(self, change: Change) -> Iterable[Key]:
        if change.type == "DELETED":
            self._selecting.drop(change.object)
        else:
            self._note(change.object)
        return [selection.key_of(change.object)]

    def _note(self, service: Object) -> None:
        if _selects(service):
            self._selecting.put(service, selectors.from_labels(service["spec"]["selector"]))
        else:
            self._selecting.drop(service)

    def _of_pod(self, change: Change) -> Iterable[Key]:
        """The Services that select the pod now, and those that did."""
        pod = selection.key_of(change.object)
        now = [] if change.type == "DELETED" else self._selecting.matching(change.object)
        concerned = self._members.pop(pod, set()).union(now)
        if now:
            self._members[pod] = set(now)
        return concerned

    def _of_slice(self, change: Change) -> Iterable[Key]:
        labels = selection.labels_of(change.object)
        if labels.get(slices.MANAGED_BY) != slices.MANAGER or slices.SERVICE_NAME not in labels:
            return []
        return [(selection.key_of(change.object)[0], labels[slices.SERVICE_NAME])]

    def _settle_s(self, key: Key) -> float:
        return min(self._sizes.get(key, 0) * SETTLE_S_PER_POD, LONGEST_SETTLE_S)

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


def _selects(service: Object) -> bool:
    spec = service["spec"]
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"
