"""Plans one sync of a Deployment: a pure function from the current objects to a `DeploymentPlan`.

`deployment.Deployments` calls `plan` and carries the plan out. A new strategy: a branch in `plan`. Steps:

1. For a Deployment that is being deleted only the status is written.
2. If it is paused, or was scaled since the last sync (the sizes noted on a ReplicaSet are not `spec.replicas`), its
   ReplicaSets are resized in proportion; the rollout does not proceed.
3. Otherwise one step of its strategy. Rolling update: the new ReplicaSet is scaled up as far as maxSurge allows, or
   else old ones are scaled down as far as maxUnavailable allows, unhealthy pods first. Recreate: old ones are scaled to
   0, and the new one is created once their pods are gone.
4. When the rollout is complete, ReplicaSets beyond revisionHistoryLimit are deleted.

Invariants of every step, whatever an autoscaler does to `spec.replicas` between two steps: pods of all sets <= replicas
+ maxSurge, available pods >= replicas - maxUnavailable.

Source: documentation of Deployment; the algorithm is that of upstream's Deployment controller.
"""

from collections.abc import Callable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.deployment import replica_sets, rollout_bounds
from podscaler.controlplane.controllers.deployment.rollout import DeploymentPlan, Rollout
from podscaler.controlplane.controllers.framework import pods


def plan(
    deployment: Object, sets: Sequence[Object], *, now_ns: int, old_pods_exist: Callable[[Object | None], bool]
) -> DeploymentPlan:
    """The plan for one sync.

    Args:
        deployment: the stored object with defaults; changed in place (its status is the working copy).
        sets: the ReplicaSets that it controls, in any order; changed in place.
        now_ns: the time of this sync, in nanoseconds since the epoch.
        old_pods_exist: returns whether other ReplicaSets than the given new one (None before there is one) still have
            pods, including terminating ones; called for Recreate only.
    """
    rollout = Rollout(deployment, list(sets), now_ns)
    if pods.is_terminating(deployment):
        rollout.compute_status(with_progress=False)
        return rollout.plan
    rollout.set_pause_condition()
    if deployment["spec"].get("paused"):
        rollout.update_new()
        rollout.resize()
        rollout.clean_up()
        rollout.compute_status(with_progress=False)
    elif rollout.was_scaled() and rollout.can_resize():
        rollout.update_new()
        rollout.resize()
        rollout.compute_status(with_progress=False)
    elif rollout_bounds.is_rolling(deployment):
        _plan_rolling_step(rollout)
    else:
        _plan_recreate_step(rollout, old_pods_exist)
    return rollout.plan


def _plan_rolling_step(rollout: Rollout) -> None:
    """Plan a step of a rolling update: scale up the new ReplicaSet, else scale down the old ones."""
    if rollout.new_set is None:
        rollout.create_new()
    else:
        rollout.update_new()
    is_scaling = _scale_new(rollout) or _scale_down_old(rollout)  # at most one of them in a sync
    if not is_scaling and rollout.is_complete():
        rollout.clean_up()
    rollout.compute_status(with_progress=True)


def _scale_new(rollout: Rollout) -> bool:
    """Scale the new ReplicaSet up as far as maxSurge allows, or down if it is too large; returns whether it changes."""
    new_set = rollout.new_set
    if new_set is None:
        return False
    return rollout.scale(new_set, min(rollout.allowed_size(new_set), rollout.desired_replicas))


def _scale_down_old(rollout: Rollout) -> bool:
    """Scale down old ReplicaSets, first by their pods that are not available; returns whether a size changes."""
    new_set = rollout.new_set
    min_available = rollout.desired_replicas - rollout_bounds.max_unavailable(rollout.deployment)
    unavailable_new = _unavailable_pods(new_set) if new_set else 0
    # as upstream: the new pods that are not available yet must not be counted on
    removable_pods = replica_sets.total_size(rollout.sets) - min_available - unavailable_new
    if removable_pods <= 0:
        return False
    has_removed_unavailable = _remove_pods(rollout, removable_pods, _unavailable_pods)
    # a status that is older than a scale-down still counts pods that are being deleted: the size bounds its count
    available = sum(
        min(replica_sets.size(replica_set), replica_sets.count(replica_set, "availableReplicas"))
        for replica_set in rollout.sets
    )
    return _remove_pods(rollout, available - min_available, replica_sets.size) or has_removed_unavailable


def _unavailable_pods(replica_set: Object) -> int:
    """How many of the pods that a ReplicaSet should have are not available."""
    return replica_sets.size(replica_set) - replica_sets.count(replica_set, "availableReplicas")


def _remove_pods(rollout: Rollout, max_pods: int, count_removable: Callable[[Object], int]) -> bool:
    """Scale down old ReplicaSets, oldest first; returns whether any was.

    Args:
        rollout: the sync.
        max_pods: how many pods may be removed in all; none if it is not positive.
        count_removable: returns how many pods a ReplicaSet may lose.
    """
    removed = 0
    for replica_set in replica_sets.by_age(replica_sets.active(rollout.old_sets)):
        count = min(max_pods - removed, count_removable(replica_set))
        if count > 0:
            rollout.scale(replica_set, replica_sets.size(replica_set) - count)
            removed += count
    return removed > 0


def _plan_recreate_step(rollout: Rollout, old_pods_exist: Callable[[Object | None], bool]) -> None:
    """Plan a step of Recreate: the new ReplicaSet is created or scaled up only when the last old pod is gone."""
    rollout.update_new()
    active_old = replica_sets.active(rollout.old_sets)
    for replica_set in active_old:
        rollout.scale(replica_set, 0)
    if (
        not active_old
        and not replica_sets.total_count(rollout.old_sets, "replicas")
        and not old_pods_exist(rollout.new_set)
    ):
        if rollout.new_set is None:
            rollout.create_new()
        elif not rollout.scale(rollout.new_set, rollout.desired_replicas) and rollout.is_complete():
            rollout.clean_up()
    rollout.compute_status(with_progress=True)
