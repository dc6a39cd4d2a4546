"""Computes the status of a Deployment from its ReplicaSets, except Progressing and ReplicaFailure (`progress`).

`rollout` calls `status` in each sync; a new count of the status goes there.

Source: apps/v1 DeploymentStatus; reasons and messages are upstream's, `kubectl rollout status` reads the counts.
"""

from collections.abc import Sequence

from podscaler.api.resource.resources import Object
from podscaler.base.clock import rfc3339
from podscaler.controlplane.controllers.deployment import replica_sets, rollout_bounds
from podscaler.controlplane.controllers.framework import conditions

_SUMMED_COUNTS = ("replicas", "readyReplicas", "availableReplicas", "terminatingReplicas")
"""Counts of a Deployment's status that are the sums of the counts of the same name of its ReplicaSets."""


def deployment_condition(type_: str, status: str, reason: str, *, message: str, now_ns: int) -> Object:
    """A DeploymentCondition that changed now."""
    now = rfc3339(now_ns)
    return {
        "type": type_,
        "status": status,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def status(deployment: Object, sets: Sequence[Object], new_set: Object | None, now_ns: int) -> Object:
    """The status with the counts and the condition Available; other conditions are kept.

    Args:
        deployment: as synced; its generation becomes the observedGeneration, its status is the previous one.
        sets: all its ReplicaSets, including the new one.
        new_set: the ReplicaSet with its template, None before there is one.
        now_ns: the time of this sync, in nanoseconds since the epoch.
    """
    old_status = deployment.get("status") or {}
    counts = {field: replica_sets.total_count(sets, field) for field in _SUMMED_COUNTS}
    counts["updatedReplicas"] = replica_sets.total_count([new_set] if new_set else [], "replicas")
    counts["unavailableReplicas"] = max(replica_sets.total_size(sets) - counts["availableReplicas"], 0)
    counts["observedGeneration"] = deployment["metadata"].get("generation", 0)
    # the API omits counts of 0, except this one
    new_status: Object = {field: count for field, count in counts.items() if count or field == "terminatingReplicas"}
    if old_status.get("collisionCount"):
        new_status["collisionCount"] = old_status["collisionCount"]
    available_condition = _available_condition(deployment, counts["availableReplicas"], now_ns)
    new_status["conditions"] = conditions.with_condition(old_status.get("conditions") or [], available_condition)
    return new_status


def is_complete(deployment: Object, status: Object) -> bool:
    """Whether the rollout is complete: all desired pods are of the new template and available, and no others exist."""
    desired_replicas = rollout_bounds.desired_replicas(deployment)
    counts = ("updatedReplicas", "replicas", "availableReplicas")
    is_observed = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return is_observed and all(status.get(field, 0) == desired_replicas for field in counts)


def _available_condition(deployment: Object, available_replicas: int, now_ns: int) -> Object:
    """The condition Available: True if at most maxUnavailable of the desired replicas are not available."""
    if available_replicas >= rollout_bounds.desired_replicas(deployment) - rollout_bounds.max_unavailable(deployment):
        reason, message = "MinimumReplicasAvailable", "Deployment has minimum availability."
        return deployment_condition("Available", "True", reason, message=message, now_ns=now_ns)
    reason, message = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    return deployment_condition("Available", "False", reason, message=message, now_ns=now_ns)
