"""What one sync of a Deployment should write: a pure function from what there is to a `DeploymentPlan`.

`plan` is called by the Deployment controller with current objects; the controller carries the plan out. The steps:

1. A Deployment that is being deleted only gets its status.
2. Paused, or scaled since the last sync (the sizes noted on a ReplicaSet are not the wanted one): its ReplicaSets
   are resized in proportion, nothing is rolled.
3. Otherwise one step of its strategy. Rolling update: the new ReplicaSet grows as far as maxSurge allows, or else
   old ones shrink as far as maxUnavailable allows, unhealthy pods first. Recreate: old ones go to 0, and once their
   pods are gone the new one is made.
4. When the rollout is complete, ReplicaSets beyond revisionHistoryLimit go.

Every step keeps: pods of all sets <= replicas + maxSurge, available ones >= replicas - maxUnavailable, whatever an
autoscaler does to `spec.replicas` between two steps.

Source: documentation of Deployment; the algorithm is upstream's (its Deployment controller), restated over data.
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
        deployment: as it is, with defaults filled in; changed in place (its status is the working copy).
        sets: the ReplicaSets that it controls, in any order; changed in place.
        now_ns: the instant of this sync.
        old_pods_exist: whether pods of other ReplicaSets than the given new one are still there, terminating ones
            included; asked for by Recreate only.
    """
    rollout = Rollout(deployment, list(sets), now_ns)
    if pods.is_terminating(deployment):
        rollout.conclude(with_progress=False)
        return rollout.plan
    rollout.note_pause()
    if deployment["spec"].get("paused"):
        rollout.take_over_new()
        rollout.resize()
        rollout.clean_up()
        rollout.conclude(with_progress=False)
    elif rollout.was_scaled() and rollout.can_resize():
        rollout.take_over_new()
        rollout.resize()
        rollout.conclude(with_progress=False)
    elif rollout_bounds.is_rolling(deployment):
        _roll(rollout)
    else:
        _recreate(rollout, old_pods_exist)
    return rollout.plan


def _roll(rollout: Rollout) -> None:
    if rollout.new is None:
        rollout.make_new()
    else:
        rollout.take_over_new()
    if not _grow_new(rollout) and not _shrink_old(rollout) and rollout.is_complete():
        rollout.clean_up()
    rollout.conclude(with_progress=True)


def _grow_new(rollout: Rollout) -> bool:
    new = rollout.new
    if new is None:
        return False
    return rollout.scale(new, min(rollout.room_for(new), rollout.wanted))


def _shrink_old(rollout: Rollout) -> bool:
    new = rollout.new
    least_available = rollout.wanted - rollout_bounds.max_unavailable(rollout.deployment)
    unavailable_new = replica_sets.size(new) - replica_sets.count(new, "availableReplicas") if new else 0
    may_go = replica_sets.total_size(rollout.sets) - least_available - unavailable_new
    if may_go <= 0:
        return False
    unhealthy = _shrink_unhealthy(rollout, may_go)
    spare = replica_sets.total(rollout.sets, "availableReplicas") - least_available
    return _shrink_healthy(rollout, spare) or unhealthy


def _shrink_unhealthy(rollout: Rollout, may_go: int) -> bool:
    """Take pods away that are not available: that costs nothing."""
    gone = 0
    for one in replica_sets.by_age(replica_sets.active(rollout.old)):
        size = replica_sets.size(one)
        count = min(may_go - gone, size - replica_sets.count(one, "availableReplicas"))
        if count > 0:
            rollout.scale(one, size - count)
            gone += count
    return gone > 0


def _shrink_healthy(rollout: Rollout, spare: int) -> bool:
    gone = 0
    for one in replica_sets.by_age(replica_sets.active(rollout.old)):
        size = replica_sets.size(one)
        count = min(size, spare - gone)
        if count > 0:
            rollout.scale(one, size - count)
            gone += count
    return gone > 0


def _recreate(rollout: Rollout, old_pods_exist: Callable[[Object | None], bool]) -> None:
    rollout.take_over_new()
    shrunk = [rollout.scale(one, 0) for one in replica_sets.active(rollout.old)]
    if not shrunk and not replica_sets.total(rollout.old, "replicas") and not old_pods_exist(rollout.new):
        if rollout.new is None:
            rollout.make_new()
        elif not rollout.scale(rollout.new, rollout.wanted) and rollout.is_complete():
            rollout.clean_up()
    rollout.conclude(with_progress=True)
