"""The ReplicaSet controller: as many pods of the template as `spec.replicas` says, and a status that tells it.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`, once for ReplicaSets and once for their
ancestors (`replicationcontroller.SPECIES`). It never overshoots: the registry shows own writes at once, a key is synced
once at a time, and what is to be done is counted on the pods that there are (no expectations as upstream needs them for
its stale caches).

Source: documentation of ReplicaSet; events and conditions are upstream's.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.apps import ranking, replicaset_status
from podscaler.controlplane.controllers.apps.replicaset_status import ReplicaFailure
from podscaler.controlplane.controllers.deployment import replica_sets
from podscaler.controlplane.controllers.framework import (
    batches,
    claims,
    ownership,
    pods,
    selection,
    templates,
    write_errors,
)
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.controllers.framework.owner_index import Keeping
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry

REPLICA_SETS = "replicasets.apps"
PODS = "pods"
BURST_PODS = 500
"""The most pods created or deleted in one sync."""
SETTLE_S_PER_POD = 0.00025
"""Changes of pods are collected for so long per pod: the work for n pods that all change stays linear in n."""
LONGEST_SETTLE_S = 1.0


@dataclass(frozen=True, slots=True)
class Species:
    """One kind that keeps a number of equal pods.

    Attributes:
        name: of its controller, in logs and events.
        resource, kind: as the API names it.
        selector: what selects its pods. Raises SelectorError.
        counts_terminating: whether its status has `terminatingReplicas`.
    """

    name: str
    resource: str
    kind: str
    selector: Callable[[Object], Selector]
    counts_terminating: bool = True


REPLICA_SET = Species("replicaset-controller", REPLICA_SETS, "ReplicaSet", selection.object_selector)


class ReplicaSets:
    """See the module. Keys are namespace and name.

    Args:
        registry, clock: as everywhere.
        species: the kind that it keeps.
    """

    def __init__(self, registry: Registry, clock: Clock, species: Species = REPLICA_SET) -> None:
        self.name = species.name
        self._species = species
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)
        self._keeping = Keeping(
            registry, keepers=species.resource, kind=species.kind, kept=PODS, selector=species.selector
        )
        self._sizes: dict[Key, int] = {}

    def watches(self) -> Sequence[Watched[Key]]:
        """ReplicaSets, and the pods that they own or may adopt."""
        return [
            Watched(self._species.resource, self._keeping.of_keeper),
            Watched(PODS, self._keeping.of_kept, self._settle_s),
        ]

    def prime(self) -> Iterable[Key]:
        """Rebuild the indexes."""
        return self._keeping.prime()

    async def sync(self, key: Key) -> float | None:
        """Create or delete pods and write the status; see the module."""
        replica_set = self._registry.find(self._species.resource, *key)
        if replica_set is None:
            self._sizes.pop(key, None)
            return None
        selector = self._species.selector(replica_set)
        orphans = self._keeping.orphans(key[0], selector)
        owned = await claims.claim(self._registry, PODS, replica_set, selector=selector, orphans=orphans)
        self._sizes[key] = len(owned)
        error, goes_on = None, False
        if not pods.is_terminating(replica_set):
            active = [pod for pod in owned if pods.is_active(pod)]
            error = await self._resize(replica_set, active)
            await self._registry.pause()  # thousands of pods: counting them for the status is a step of its own
            owned = self._owned(replica_set)
            goes_on = _goes_on(replica_sets.size(replica_set), len(active), owned)
        await self._write_status(replica_set, owned, error)
        if error is not None:
            raise error
        if goes_on:
            return 0.0
        return replicaset_status.next_available_s(replica_set, owned, self._clock.now_ns())

    def report(self, key: Key, error: Exception) -> None:
        """Nothing more: each pod that could not be created or deleted has had its event."""

    def _settle_s(self, key: Key) -> float:
        return min(self._sizes.get(key, 0) * SETTLE_S_PER_POD, LONGEST_SETTLE_S)

    def _owned(self, replica_set: Object) -> list[Object]:
        uid = replica_set["metadata"]["uid"]
        return [pod for pod in self._registry.owned_by(PODS, uid) if ownership.is_controlled_by(pod, uid)]

    async def _resize(self, replica_set: Object, active: Sequence[Object]) -> StatusError | None:
        """Returns why not everything could be done, None where it could."""
        missing = replica_sets.size(replica_set) - len(active)
        if missing > 0:
            return await self._create(replica_set, min(missing, BURST_PODS))
        return await self._delete(replica_set, active, min(-missing, BURST_PODS)) if missing else None

    async def _create(self, replica_set: Object, count: int) -> StatusError | None:
        async def create() -> None:
            pod = templates.pod_from(replica_set["spec"]["template"], replica_set)
            try:
                created = await self._registry.create(PODS, pod)
            except StatusError as error:
                if not write_errors.is_namespace_terminating(error):
                    self._events.event(replica_set, "Warning", "FailedCreate", f"Error creating: {error.message}")
                raise
            message = f"Created pod: {created['metadata']['name']}"
            self._events.event(replica_set, "Normal", "SuccessfulCreate", message)

        try:
            await batches.slow_start(count, create)
        except ExceptionGroup as group:
            first = write_errors.first(group)
            return None if write_errors.is_namespace_terminating(first) else first
        return None

    async def _delete(self, replica_set: Object, active: Sequence[Object], count: int) -> StatusError | None:
        going = self._first_to_go(replica_set, active, count)
        outcomes = await asyncio.gather(*(self._delete_one(replica_set, pod) for pod in going), return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        return write_errors.first(ExceptionGroup("deletions", failures)) if failures else None

    def _first_to_go(self, replica_set: Object, active: Sequence[Object], count: int) -> Sequence[Object]:
        """Whom to delete; where all are to go, in this sync or the next ones, the order is not worked out."""
        if replica_sets.size(replica_set) == 0:
            return active[:count]
        on_node = self._related_on_node(replica_set, active)
        return ranking.first_to_go(active, count, now_ns=self._clock.now_ns(), related_on_node=on_node)

    async def _delete_one(self, replica_set: Object, pod: Object) -> None:
        namespace, name = selection.key_of(pod)
        try:
            await self._registry.delete(PODS, namespace, name, uid=pod["metadata"]["uid"])
        except StatusError as error:
            if error.code == 404 or error.reason == "Conflict":
                return
            self._events.event(replica_set, "Warning", "FailedDelete", f"Error deleting: {error.message}")
            raise
        self._events.event(replica_set, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")

    def _related_on_node(self, replica_set: Object, active: Sequence[Object]) -> dict[str, int]:
        """How many pods of this ReplicaSet and its siblings each node holds; empty where there is only one node."""
        if len({pod["spec"].get("nodeName") for pod in active}) < 2:
            return {}
        owner = ownership.controller_of(replica_set)
        siblings = self._registry.owned_by(self._species.resource, owner["uid"]) if owner else [replica_set]
        counts: dict[str, int] = {}
        for sibling in siblings:
            for pod in filter(pods.is_active, self._owned(sibling)):
                node = pod["spec"].get("nodeName") or ""
                counts[node] = counts.get(node, 0) + 1
        return counts

    async def _write_status(self, replica_set: Object, owned: Sequence[Object], error: StatusError | None) -> None:
        now_ns = self._clock.now_ns()
        failure = _failure(replica_set, owned, error)
        new = replicaset_status.status(replica_set, owned, failure, now_ns)
        if not self._species.counts_terminating:
            del new["terminatingReplicas"]
        if new == replica_set.get("status"):
            return

        def change(newest: Object) -> None:
            newest["status"] = new

        try:
            await self._registry.mutate(
                self._species.resource, *selection.key_of(replica_set), change, subresource="status"
            )
        except StatusError as refusal:
            if refusal.code != 404:
                raise


def _failure(replica_set: Object, owned: Sequence[Object], error: StatusError | None) -> ReplicaFailure | None:
    if error is None:
        return None
    too_few = sum(map(pods.is_active, owned)) < replica_sets.size(replica_set)
    return ReplicaFailure("FailedCreate" if too_few else "FailedDelete", error.message)


def _goes_on(wanted: int, active: int, owned: Iterable[Object]) -> bool:
    """Whether a sync that did as much as one may do is to be followed by another at once: it has brought something."""
    return abs(wanted - active) > BURST_PODS and sum(map(pods.is_active, owned)) != active
