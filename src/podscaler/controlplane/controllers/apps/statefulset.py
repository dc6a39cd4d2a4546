"""The StatefulSet controller: pods with stable names, created, deleted and updated in order; and the status.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. A sync carries out one
`statefulset_planning.plan`; the watch events of its writes trigger the next sync. The registry returns own writes at
once, so a plan is never based on stale pods. A change of what a sync plans belongs in `statefulset_planning`; a new
count of the status: `status`.

Source: documentation of StatefulSet; events are upstream's; apps/v1 StatefulSetStatus (API reference).
Differs: volumeClaimTemplates become empty directories (an event says so); retention policies have no effect.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.apps import statefulset_planning, statefulset_pods
from podscaler.controlplane.controllers.apps.statefulset_planning import StatefulSetFacts, StatefulSetPlan
from podscaler.controlplane.controllers.framework import (
    claims,
    controller_revisions,
    ownership,
    pod_control,
    pods,
    selection,
    write_errors,
)
from podscaler.controlplane.controllers.framework.control_loop import BatchPeriod, Reconciler, Watched
from podscaler.controlplane.controllers.framework.owner_index import OwnerIndex
from podscaler.controlplane.controllers.framework.pod_control import PODS, PodControl
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry

STATEFUL_SETS = "statefulsets.apps"


class StatefulSets(Reconciler[Key]):
    """Reconciles the StatefulSets of `registry`. Keys are namespace and name; `clock` is for availability."""

    name = "statefulset-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)
        self._pods = PodControl(registry, self._events, _event_message)
        self._index = OwnerIndex(
            registry, owner_resource=STATEFUL_SETS, owner_kind="StatefulSet", dependent_resource=PODS
        )
        self._batch_period: BatchPeriod[Key] = BatchPeriod(pod_control.BATCH_S_PER_POD, pod_control.MAX_BATCH_S)

    def watches(self) -> Sequence[Watched[Key]]:
        """StatefulSets, and the pods that they own or may adopt."""
        return [
            Watched(STATEFUL_SETS, self._index.index_owner),
            Watched(PODS, self._index.index_dependent, self._batch_period),
        ]

    def prime(self) -> Iterable[Key]:
        """All StatefulSets."""
        return self._index.prime()

    async def sync(self, key: Key) -> float | None:
        """Create or delete pods, then write the status; returns the seconds until a pod becomes available, or None.

        Raises StatusError if a write failed.
        """
        stateful_set = self._registry.find(STATEFUL_SETS, *key)
        if stateful_set is None or pods.is_terminating(stateful_set):
            self._batch_period.forget(key)
            return None
        try:
            facts = await self._claim_and_observe(stateful_set)
        except StatusError as error:
            if write_errors.is_namespace_terminating(error):
                return None
            raise
        self._batch_period.note(key, len(facts.owned))
        plan = statefulset_planning.plan(facts)
        failure = await self._carry_out(plan, stateful_set)
        if not plan.is_empty:
            owned = ownership.controlled_by(self._registry, PODS, stateful_set)
            facts = replace(facts, owned=_members(stateful_set, owned))
        await self._write_status(key, facts)
        await self._truncate_history(facts)
        if failure is not None:
            raise failure
        return pods.next_available_s(facts.owned, statefulset_pods.min_ready_s(stateful_set), facts.now_ns)

    async def _write_status(self, key: Key, facts: StatefulSetFacts) -> None:
        """Write the status if it changed; the object is read again, as `_claim_and_observe` may change its own copy."""
        stored = self._registry.find(STATEFUL_SETS, *key)
        if stored is not None:
            await write_errors.write_status(self._registry, STATEFUL_SETS, stored, status(facts))

    async def _claim_and_observe(self, stateful_set: Object) -> StatefulSetFacts:
        """Adopt, release and label pods, and ensure the revision of the template; returns the facts after that."""
        selector = selection.object_selector(stateful_set)
        selected_names = self._index.orphan_names(stateful_set["metadata"]["namespace"], selector)
        orphan_names = [name for name in selected_names if statefulset_pods.ordinal(stateful_set, name) is not None]
        owned = await claims.claim(self._registry, PODS, stateful_set, selector=selector, orphan_names=orphan_names)
        members = [await self._with_identity(stateful_set, pod) for pod in _members(stateful_set, owned)]
        history = controller_revisions.list_owned(self._registry, stateful_set)
        newest = await controller_revisions.ensure_newest(self._registry, stateful_set, history)
        current_name = (stateful_set.get("status") or {}).get("currentRevision")
        current = next((revision for revision in history if revision["metadata"]["name"] == current_name), newest)
        return StatefulSetFacts(stateful_set, members, current, newest, self._clock.now_ns())

    async def _with_identity(self, stateful_set: Object, pod: Object) -> Object:
        """Write the identity labels that an adopted or relabelled pod lacks; returns the pod. Raises StatusError."""
        ordinal = statefulset_pods.ordinal(stateful_set, pod["metadata"]["name"])
        if ordinal is None or pods.is_terminating(pod):
            return pod
        identity_labels = statefulset_pods.identity_labels(stateful_set, ordinal)
        if identity_labels.items() <= selection.labels_of(pod).items():
            return pod

        def add_labels(newest: Object) -> None:
            newest["metadata"].setdefault("labels", {}).update(identity_labels)

        try:
            return await self._registry.mutate(PODS, *selection.key_of(pod), add_labels)
        except StatusError as error:
            if error.code != 404:
                raise
            return pod

    async def _truncate_history(self, facts: StatefulSetFacts) -> None:
        """Delete revisions beyond the limit, except the current and the newest one and those that pods have."""
        live_names = {facts.current["metadata"]["name"], facts.newest["metadata"]["name"]}
        live_names.update(statefulset_pods.revision_name(pod) for pod in facts.owned)
        history = controller_revisions.list_owned(self._registry, facts.stateful_set)
        await controller_revisions.truncate(self._registry, facts.stateful_set, history, live_names)

    async def _carry_out(self, plan: StatefulSetPlan, stateful_set: Object) -> StatusError | None:
        """Create and delete the pods of the plan; returns the first error, None if all writes succeeded."""
        if plan.create:
            self._report_claims(stateful_set)
        for pod in plan.recreate:
            self._report_recreation(stateful_set, pod)
        delete_error = await self._pods.delete_all(stateful_set, (*plan.recreate, *plan.delete))
        create_error = await self._pods.create_all(stateful_set, plan.create)
        return delete_error or create_error

    def _report_recreation(self, stateful_set: Object, pod: Object) -> None:
        """Report a pod that has ended, and is created again."""
        namespace, name = selection.key_of(stateful_set)
        message_start = f"StatefulSet {namespace}/{name} is recreating"
        if pods.phase(pod) == "Failed":
            message = f"{message_start} failed Pod {pod['metadata']['name']}"
            self._events.event(stateful_set, "Warning", "RecreatingFailedPod", message)
        else:
            message = f"{message_start} terminated Pod {pod['metadata']['name']}"
            self._events.event(stateful_set, "Normal", "RecreatingTerminatedPod", message)

    def _report_claims(self, stateful_set: Object) -> None:
        """Report that volume claims become empty directories."""
        names = statefulset_pods.claim_names(stateful_set)
        if names:
            message = (
                f"There are no persistent volumes here: {', '.join(names)} of volumeClaimTemplates become empty "
                "directories, which end with their pods."
            )
            self._events.event(stateful_set, "Warning", "VolumeClaimsNotSupported", message)


def status(facts: StatefulSetFacts) -> Object:
    """The status to write, without the counts that the API omits when they are 0.

    At the end of a rolling update the newest revision becomes the current one.
    """
    stateful_set, old_status = facts.stateful_set, facts.stateful_set.get("status") or {}
    current_name, newest_name = facts.current["metadata"]["name"], facts.newest["metadata"]["name"]
    staying_pods = [pod for pod in facts.owned if not pods.is_terminating(pod)]
    revision_names = [statefulset_pods.revision_name(pod) for pod in staying_pods]
    counts = {
        "observedGeneration": stateful_set["metadata"].get("generation", 0),
        "replicas": len(facts.owned),
        "readyReplicas": sum(pods.phase(pod) == "Running" and pods.is_ready(pod) for pod in facts.owned),
        "currentReplicas": revision_names.count(current_name),
        "updatedReplicas": revision_names.count(newest_name),
    }
    if _is_rolled_out(stateful_set, counts):
        current_name, counts["currentReplicas"] = newest_name, counts["updatedReplicas"]
    new_status: Object = {field: count for field, count in counts.items() if count or field == "replicas"}
    new_status |= {"currentRevision": current_name, "updateRevision": newest_name}
    new_status |= {field: old_status[field] for field in ("collisionCount", "conditions") if old_status.get(field)}
    available = sum(statefulset_pods.is_available(stateful_set, pod, facts.now_ns) for pod in facts.owned)
    return new_status | {"availableReplicas": available}


def _is_rolled_out(stateful_set: Object, counts: dict[str, int]) -> bool:
    """Whether a rolling update is complete, by the counts of the new status: all pods are updated and ready."""
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    is_rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
    return is_rolling and counts["updatedReplicas"] == counts["replicas"] == counts["readyReplicas"]


def _members(stateful_set: Object, owned: Sequence[Object]) -> list[Object]:
    """The owned pods whose names are those of the set's pods; others are ignored."""
    return [pod for pod in owned if statefulset_pods.ordinal(stateful_set, pod["metadata"]["name"]) is not None]


def _event_message(stateful_set: Object, verb: str, pod_name: str, error: StatusError | None) -> str:
    """The message of an Event about a pod: `create Pod db-0 in StatefulSet db successful`."""
    action = f"{verb} Pod {pod_name} in StatefulSet {stateful_set['metadata']['name']}"
    return f"{action} successful" if error is None else f"{action} failed error: {error.message}"
