"""The ReplicaSet controller: keeps `spec.replicas` pods of the template, and writes the status.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`, once for ReplicaSets and once for
ReplicationControllers. It never overshoots: the registry returns own writes at once, a key is synced by one worker at a
time, and each sync counts the existing pods. Upstream needs expectations for that, because its caches are stale.

A new kind of this sort: a `ControllerKind`, and a controller for it in `controller_manager`.

Source: documentation of ReplicaSet and ReplicationController; events and conditions are upstream's.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.apps import ranking, replicaset_status
from podscaler.controlplane.controllers.apps.replicaset_status import ReplicaFailure
from podscaler.controlplane.controllers.deployment import replica_sets
from podscaler.controlplane.controllers.framework import (
    claims,
    ownership,
    pod_control,
    pods,
    selection,
    templates,
    write_errors,
)
from podscaler.controlplane.controllers.framework.control_loop import BatchPeriod, Reconciler, Watched
from podscaler.controlplane.controllers.framework.owner_index import OwnerIndex
from podscaler.controlplane.controllers.framework.pod_control import PODS, PodControl
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry


@dataclass(frozen=True, slots=True)
class ControllerKind:
    """One kind that keeps a number of equal pods.

    Attributes:
        name: the controller's name in logs and events.
        resource: the `Resource.key` of the kind.
        kind: the kind, as ownerReferences name it.
        selector_of: returns the selector of an object of the kind. Raises SelectorError.
        counts_terminating: whether its status has `terminatingReplicas`.
    """

    name: str
    resource: str
    kind: str
    selector_of: Callable[[Object], Selector]
    counts_terminating: bool = True


def _label_map_selector(controller: Object) -> Selector:
    """The selector of a ReplicationController: a map of labels, which is never empty."""
    return selectors.from_labels(controller["spec"].get("selector") or {})


REPLICA_SET = ControllerKind("replicaset-controller", "replicasets.apps", "ReplicaSet", selection.object_selector)
REPLICATION_CONTROLLER = ControllerKind(
    "replication-controller",
    "replicationcontrollers",
    "ReplicationController",
    _label_map_selector,
    counts_terminating=False,
)


class ReplicaSets(Reconciler[Key]):
    """Reconciles the objects of one kind, ReplicaSet or ReplicationController. Keys are namespace and name.

    Args:
        registry: the objects.
        clock: for ages and availability.
        kind: the kind that this controller syncs.
    """

    def __init__(self, registry: Registry, clock: Clock, kind: ControllerKind = REPLICA_SET) -> None:
        self.name = kind.name
        self._kind = kind
        self._registry = registry
        self._clock = clock
        self._pods = PodControl(registry, EventRecorder(registry, self.name, clock))
        self._index = OwnerIndex(
            registry,
            owner_resource=kind.resource,
            owner_kind=kind.kind,
            dependent_resource=PODS,
            selector_of=kind.selector_of,
        )
        self._batch_period: BatchPeriod[Key] = BatchPeriod(pod_control.BATCH_S_PER_POD, pod_control.MAX_BATCH_S)

    def watches(self) -> Sequence[Watched[Key]]:
        """The objects of the kind, and the pods that they own or may adopt."""
        return [
            Watched(self._kind.resource, self._index.index_owner),
            Watched(PODS, self._index.index_dependent, self._batch_period),
        ]

    def prime(self) -> Iterable[Key]:
        """All objects of the kind."""
        return self._index.prime()

    async def sync(self, key: Key) -> float | None:
        """Create or delete pods and write the status.

        Returns the seconds until the next sync, None if only a change needs one. Raises StatusError if a write failed;
        the status is written before.
        """
        replica_set = self._registry.find(self._kind.resource, *key)
        if replica_set is None:
            self._batch_period.forget(key)
            return None
        namespace, _ = key
        selector = self._kind.selector_of(replica_set)
        orphan_names = self._index.orphan_names(namespace, selector)
        owned = await claims.claim(self._registry, PODS, replica_set, selector=selector, orphan_names=orphan_names)
        self._batch_period.note(key, len(owned))
        error, is_unfinished = None, False
        if not pods.is_terminating(replica_set):
            active = [pod for pod in owned if pods.is_active(pod)]
            error = await self._adjust_pods(replica_set, active)
            await self._registry.pause()  # with thousands of pods, the status is computed in a later loop iteration
            owned = ownership.controlled_by(self._registry, PODS, replica_set)
            is_unfinished = _is_unfinished(replica_sets.size(replica_set), len(active), owned)
        await self._write_status(replica_set, owned, error)
        if error is not None:
            raise error
        if is_unfinished:
            return 0.0
        return pods.next_available_s(owned, replica_set["spec"].get("minReadySeconds", 0), self._clock.now_ns())

    async def _adjust_pods(self, replica_set: Object, active: Sequence[Object]) -> StatusError | None:
        """Create or delete pods; returns the first error, None if all writes succeeded."""
        missing = replica_sets.size(replica_set) - len(active)
        if missing > 0:
            pod = templates.pod_from(replica_set["spec"]["template"], replica_set)
            return await self._pods.create_all(replica_set, [pod] * missing)
        if missing == 0:
            return None
        return await self._pods.delete_all(replica_set, self._pods_to_delete(replica_set, active, -missing))

    def _pods_to_delete(self, replica_set: Object, active: Sequence[Object], surplus: int) -> Sequence[Object]:
        """The pods to delete in this sync; they are ranked only if some pods remain."""
        count = min(surplus, pod_control.BURST_PODS)
        if replica_sets.size(replica_set) == 0:
            return active[:count]
        related_on_node = self._related_on_node(replica_set, active)
        now_ns = self._clock.now_ns()
        return ranking.select_for_deletion(active, count, now_ns=now_ns, related_on_node=related_on_node)

    def _related_on_node(self, replica_set: Object, active: Sequence[Object]) -> dict[str, int]:
        """The number of active pods of this ReplicaSet and its siblings (those of the same owner), by node name.

        Empty if all pods are on one node: then the ranking does not depend on it.
        """
        node_names = {pod["spec"].get("nodeName") for pod in active}
        if len(node_names) < 2:
            return {}
        owner = ownership.controller_of(replica_set)
        siblings = self._registry.owned_by(self._kind.resource, owner["uid"]) if owner else [replica_set]
        pods_by_node: dict[str, int] = {}
        for sibling in siblings:
            for pod in filter(pods.is_active, ownership.controlled_by(self._registry, PODS, sibling)):
                node_name = pod["spec"].get("nodeName") or ""
                pods_by_node[node_name] = pods_by_node.get(node_name, 0) + 1
        return pods_by_node

    async def _write_status(self, replica_set: Object, owned: Sequence[Object], error: StatusError | None) -> None:
        """Write the status if it changed; `error` is that of this sync's writes, None without one."""
        failure = _replica_failure(replica_set, owned, error)
        status = replicaset_status.status(replica_set, owned, failure, self._clock.now_ns())
        if not self._kind.counts_terminating:
            del status["terminatingReplicas"]
        await write_errors.write_status(self._registry, self._kind.resource, replica_set, status)


def _replica_failure(replica_set: Object, owned: Sequence[Object], error: StatusError | None) -> ReplicaFailure | None:
    """The condition ReplicaFailure for an error of this sync; None without an error."""
    if error is None:
        return None
    too_few = sum(map(pods.is_active, owned)) < replica_sets.size(replica_set)
    return ReplicaFailure("FailedCreate" if too_few else "FailedDelete", error.message)


def _is_unfinished(desired_replicas: int, active_before: int, owned: Iterable[Object]) -> bool:
    """Whether the next sync must follow at once: this one wrote as much as one sync may, and made progress."""
    if abs(desired_replicas - active_before) <= pod_control.BURST_PODS:
        return False
    return sum(map(pods.is_active, owned)) != active_before
