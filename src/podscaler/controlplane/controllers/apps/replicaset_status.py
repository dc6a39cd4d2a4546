"""Computes the status of a ReplicaSet or ReplicationController from its pods.

`replicaset` calls `status` in each sync, and removes terminatingReplicas for ReplicationControllers. A new count of the
API goes there.

Source: apps/v1 ReplicaSetStatus (documentation and KEP-3973 for terminatingReplicas).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podscaler.api.resource.resources import Object
from podscaler.base.clock import rfc3339
from podscaler.controlplane.controllers.framework import conditions, pods


@dataclass(frozen=True, slots=True)
class ReplicaFailure:
    """The reason (`FailedCreate` or `FailedDelete`) and message of the condition ReplicaFailure."""

    reason: str
    message: str


def status(replica_set: Object, owned: Sequence[Object], failure: ReplicaFailure | None, now_ns: int) -> Object:
    """The status to write.

    Args:
        replica_set: as it was synced; its generation becomes the observedGeneration.
        owned: all pods that it controls, including finished and terminating ones.
        failure: the failure of this sync, None without one.
        now_ns: the time of this sync, in nanoseconds since the epoch.
    """
    spec, metadata = replica_set["spec"], replica_set["metadata"]
    active = [pod for pod in owned if pods.is_active(pod)]
    min_ready_s = spec.get("minReadySeconds", 0)
    template_labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    ready = [pod for pod in active if pods.is_ready(pod)]
    # without minReadySeconds a ready pod is available at once
    available = sum(pods.is_available(pod, min_ready_s, now_ns) for pod in ready) if min_ready_s else len(ready)
    nonzero_counts = {
        "fullyLabeledReplicas": sum(_has_labels(pod, template_labels) for pod in active),
        "readyReplicas": len(ready),
        "availableReplicas": available,
        "observedGeneration": metadata.get("generation", 0),
    }
    new_status: Object = {"replicas": len(active)}
    new_status |= {field: count for field, count in nonzero_counts.items() if count}
    new_status["terminatingReplicas"] = sum(pods.is_terminating(pod) and not pods.is_finished(pod) for pod in owned)
    new_conditions = _updated_conditions((replica_set.get("status") or {}).get("conditions") or [], failure, now_ns)
    if new_conditions:
        new_status["conditions"] = new_conditions
    return new_status


def _has_labels(pod: Object, labels: Mapping[str, str]) -> bool:
    """Whether a pod has all of these labels."""
    return labels.items() <= (pod["metadata"].get("labels") or {}).items()


def _updated_conditions(old_conditions: Sequence[Object], failure: ReplicaFailure | None, now_ns: int) -> list[Object]:
    """The conditions with or without ReplicaFailure; an old failure stays as it is."""
    if failure is None:
        return conditions.without(old_conditions, "ReplicaFailure")
    if conditions.find(old_conditions, "ReplicaFailure") is not None:
        return list(old_conditions)
    new_condition = {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": rfc3339(now_ns),
        "reason": failure.reason,
        "message": failure.message,
    }
    return [*old_conditions, new_condition]
