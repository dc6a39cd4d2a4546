"""Computes the status of a Deployment from its ReplicaSets, except the condition Progressing (`progress`).

Source: apps/v1 DeploymentStatus; reasons and messages are upstream's, `kubectl rollout status` reads the counts.
"""

from collections.abc import Sequence

from podscaler.api.resource.resources import Object
from podscaler.base.clock import rfc3339
from podscaler.controlplane.controllers.deployment import replica_sets, rollout_bounds
from podscaler.controlplane.controllers.framework import conditions

_COUNTS = {
    "replicas": "replicas",
    "readyReplicas": "readyReplicas",
    "availableReplicas": "availableReplicas",
    "terminatingReplicas": "terminatingReplicas",
}


def condition(type_: str, status: str, reason: str, *, message: str, now_ns: int) -> Object:
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


def status(deployment: Object, sets: Sequence[Object], new: Object | None, now_ns: int) -> Object:
    """The status with the counts and the condition Available; other conditions are kept.

    Args:
        deployment: as synced; its generation becomes the observedGeneration, its status is the previous one.
        sets: all its ReplicaSets, including the new one.
        new: the ReplicaSet with its template, None before there is one.
        now_ns: the time of this sync.
    """
    before = deployment.get("status") or {}
    counts = {name: replica_sets.total(sets, field) for name, field in _COUNTS.items()}
    counts["updatedReplicas"] = replica_sets.total([new] if new else [], "replicas")
    counts["unavailableReplicas"] = max(replica_sets.total_size(sets) - counts["availableReplicas"], 0)
    counts["observedGeneration"] = deployment["metadata"].get("generation", 0)
    result: Object = {name: count for name, count in counts.items() if count or name == "terminatingReplicas"}
    if before.get("collisionCount"):
        result["collisionCount"] = before["collisionCount"]
    available = _availability(deployment, counts["availableReplicas"], now_ns)
    result["conditions"] = conditions.with_condition(before.get("conditions") or [], available)
    return result


def is_complete(deployment: Object, status: Object) -> bool:
    """Whether the rollout is complete: all desired pods are of the new template and available, and no others exist."""
    wanted = rollout_bounds.replicas(deployment)
    counts = ("updatedReplicas", "replicas", "availableReplicas")
    observed = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return observed and all(status.get(name, 0) == wanted for name in counts)


def _availability(deployment: Object, available: int, now_ns: int) -> Object:
    if available >= rollout_bounds.replicas(deployment) - rollout_bounds.max_unavailable(deployment):
        reason, message = "MinimumReplicasAvailable", "Deployment has minimum availability."
        return condition("Available", "True", reason, message=message, now_ns=now_ns)
    reason, message = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    return condition("Available", "False", reason, message=message, now_ns=now_ns)
