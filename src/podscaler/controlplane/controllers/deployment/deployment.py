"""The Deployment controller: carries out `deployment_planning.plan` for a Deployment and its ReplicaSets.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. It updates ReplicaSets with their
resourceVersion, so that a plan based on outdated ReplicaSets fails with 409 and the sync is retried. A change of what a
rollout does belongs in `rollout` or `deployment_planning`.

Source: documentation of Deployment; events, conditions and annotations are upstream's.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.deployment import deployment_planning, progress, revisions, rollout_bounds
from podscaler.controlplane.controllers.deployment.rollout import DeploymentPlan
from podscaler.controlplane.controllers.framework import (
    claims,
    conditions,
    ownership,
    pods,
    selection,
    templates,
    write_errors,
)
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.owner_index import OwnerIndex
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

DEPLOYMENTS = "deployments.apps"
REPLICA_SETS = "replicasets.apps"
PODS = "pods"


class Deployments(Reconciler[Key]):
    """Reconciles the Deployments of `registry`. Keys are namespace and name; `clock` times conditions."""

    name = "deployment-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)
        self._index = OwnerIndex(
            registry, owner_resource=DEPLOYMENTS, owner_kind="Deployment", dependent_resource=REPLICA_SETS
        )

    def watches(self) -> Sequence[Watched[Key]]:
        """Deployments, their ReplicaSets, and pods that end (strategy Recreate waits for that)."""
        return [
            Watched(DEPLOYMENTS, self._index.index_owner),
            Watched(REPLICA_SETS, self._index.index_dependent),
            Watched(PODS, self._keys_of_pod),
        ]

    def prime(self) -> Iterable[Key]:
        """All Deployments."""
        return self._index.prime()

    async def sync(self, key: Key) -> float | None:
        """Carry out one step of the rollout; returns the seconds until the next sync, None if only a change needs one.

        Raises StatusError if a write failed; the next sync makes a new plan.
        """
        deployment = self._registry.find(DEPLOYMENTS, *key)
        if deployment is None:
            return None
        selector = selection.object_selector(deployment)
        if not selector.requirements:
            message = "This deployment is selecting all pods. A non-empty selector is required."
            self._events.event(deployment, "Warning", "SelectingAll", message)
            return None
        namespace, _ = key
        orphan_names = self._index.orphan_names(namespace, selector)
        sets = await claims.claim(
            self._registry, REPLICA_SETS, deployment, selector=selector, orphan_names=orphan_names
        )
        # `_carry_out` compares the new status with the old one, which the plan must not change
        working_copy: Object = {**deployment, "status": dict(deployment.get("status") or {})}
        plan = deployment_planning.plan(
            working_copy,
            sets,
            now_ns=self._clock.now_ns(),
            old_pods_exist=lambda new_set: self._old_pods_exist(sets, new_set),
        )
        return await self._carry_out(plan, deployment)

    def _keys_of_pod(self, event: ObjectEvent) -> Iterable[Key]:
        """The Deployment of a pod that ended, if its strategy is Recreate."""
        pod_owner = ownership.controller_of(event.object)
        has_ended = event.type == "DELETED" or pods.is_finished(event.object)
        if not has_ended or pod_owner is None or pod_owner["kind"] != "ReplicaSet":
            return []
        namespace, _ = selection.key_of(event.object)
        replica_set = self._registry.find(REPLICA_SETS, namespace, pod_owner["name"])
        set_owner = ownership.controller_of(replica_set) if replica_set else None
        if set_owner is None or set_owner["kind"] != "Deployment":
            return []
        deployment = self._registry.find(DEPLOYMENTS, namespace, set_owner["name"])
        waits_for_pods = deployment is not None and not rollout_bounds.is_rolling(deployment)
        return [(namespace, set_owner["name"])] if waits_for_pods else []

    def _old_pods_exist(self, sets: Sequence[Object], new_set: Object | None) -> bool:
        """Whether ReplicaSets other than `new_set` still have pods that are not finished."""
        for replica_set in sets:
            set_pods = self._registry.owned_by(PODS, replica_set["metadata"]["uid"])
            if replica_set is not new_set and not all(map(pods.is_finished, set_pods)):
                return True
        return False

    async def _carry_out(self, plan: DeploymentPlan, deployment: Object) -> float | None:
        """Make the writes of a plan; returns the seconds until the next sync, None if none is planned.

        Raises StatusError; the writes after the failed one are not made.
        """
        if plan.create is not None:
            if not await self._create_new_set(plan.create, deployment):
                return 0.0  # the next sync reads the status with the incremented collisionCount
            self._report_scaling(plan, plan.create, deployment)
        for replica_set in plan.update:
            await self._registry.update(REPLICA_SETS, replica_set)
            self._report_scaling(plan, replica_set, deployment)
        for replica_set in plan.delete:
            await self._delete_set(replica_set)
        await self._write_revision(plan, deployment)
        await write_errors.write_status(self._registry, DEPLOYMENTS, deployment, plan.status)
        return plan.requeue_after_s

    def _report_scaling(self, plan: DeploymentPlan, replica_set: Object, deployment: Object) -> None:
        """Record the planned events of one ReplicaSet, once it is written."""
        for name, message in plan.events:
            if name == replica_set["metadata"]["name"]:
                self._events.event(deployment, "Normal", "ScalingReplicaSet", message)

    async def _create_new_set(self, new_set: Object, deployment: Object) -> bool:
        """Create the new ReplicaSet; returns False if its name is taken (then sync again). Raises StatusError."""
        try:
            await self._registry.create(REPLICA_SETS, new_set)
        except StatusError as error:
            if write_errors.is_already_exists(error):
                await self._count_collision(new_set, deployment)
                return False
            if not write_errors.is_namespace_terminating(error):
                await self._report_failure(new_set, deployment, error)
            raise
        return True

    async def _count_collision(self, new_set: Object, deployment: Object) -> None:
        """Increment collisionCount, which salts the hash, if another template with the same hash has the name."""
        existing = self._registry.find(REPLICA_SETS, *selection.key_of(new_set))
        if existing is None:
            return
        is_own = ownership.is_controlled_by(existing, deployment["metadata"]["uid"])
        if is_own and templates.are_equal(existing["spec"]["template"], new_set["spec"]["template"]):
            return

        def increment(newest: Object) -> None:
            status = newest.setdefault("status", {})
            status["collisionCount"] = status.get("collisionCount", 0) + 1

        await self._registry.mutate(DEPLOYMENTS, *selection.key_of(deployment), increment, subresource="status")

    async def _report_failure(self, new_set: Object, deployment: Object, error: StatusError) -> None:
        """Report a ReplicaSet that could not be created, in an event and the condition Progressing."""
        message = f'Failed to create new replica set "{new_set["metadata"]["name"]}": {error.message}'
        self._events.event(deployment, "Warning", progress.CREATE_FAILED, message)
        if progress.deadline_s(deployment) is None:
            return
        failed_condition = progress.progressing_condition(
            "False", progress.CREATE_FAILED, message=message, now_ns=self._clock.now_ns()
        )

        def set_condition(newest: Object) -> None:
            status = newest.setdefault("status", {})
            status["conditions"] = conditions.with_condition(status.get("conditions") or [], failed_condition)

        await self._registry.mutate(DEPLOYMENTS, *selection.key_of(deployment), set_condition, subresource="status")

    async def _delete_set(self, replica_set: Object) -> None:
        """Delete a ReplicaSet, which may be gone; the garbage collector deletes its dependents."""
        uid = replica_set["metadata"]["uid"]
        await write_errors.ignoring_gone(
            self._registry.delete(REPLICA_SETS, *selection.key_of(replica_set), uid=uid, propagation="Background")
        )

    async def _write_revision(self, plan: DeploymentPlan, deployment: Object) -> None:
        """Write the plan's revision annotation if it is new.

        As upstream writes it with the status, the generation of the Deployment stays the same.
        """
        annotations = deployment["metadata"].get("annotations") or {}
        if not plan.revision or annotations.get(revisions.REVISION) == plan.revision:
            return

        def annotate(newest: Object) -> None:
            newest["metadata"].setdefault("annotations", {})[revisions.REVISION] = plan.revision

        await self._registry.mutate(DEPLOYMENTS, *selection.key_of(deployment), annotate, subresource="status")
