"""Computes the status of a ReplicaSet from its pods; its controller calls it in each sync.

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
        now_ns: the time of this sync.
    """
    spec, metadata = replica_set["spec"], replica_set["metadata"]
    active = [pod for pod in owned if pods.is_active(pod)]
    min_ready_s = spec.get("minReadySeconds", 0)
    template_labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    ready = [pod for pod in active if pods.is_ready(pod)]
    available = sum(pods.is_available(pod, min_ready_s, now_ns) for pod in ready) if min_ready_s else len(ready)
    counts = {
        "fullyLabeledReplicas": sum(_carries(pod, template_labels) for pod in active),
        "readyReplicas": len(ready),
        "availableReplicas": available,
        "observedGeneration": metadata.get("generation", 0),
    }
    new: Object = {"replicas": len(active), **{name: count for name, count in counts.items() if count}}
    new["terminatingReplicas"] = sum(pods.is_terminating(pod) and not pods.is_finished(pod) for pod in owned)
    new_conditions = _conditions((replica_set.get("status") or {}).get("conditions") or [], failure, now_ns)
    return new | ({"conditions": new_conditions} if new_conditions else {})


def _carries(pod: Object, labels: Mapping[str, str]) -> bool:
    return labels.items() <= (pod["metadata"].get("labels") or {}).items()


def _conditions(old: Sequence[Object], failure: ReplicaFailure | None, now_ns: int) -> list[Object]:
    """The conditions with or without ReplicaFailure; an old failure stays as it is."""
    if failure is None:
        return conditions.without(old, "ReplicaFailure")
    new = {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": rfc3339(now_ns),
        "reason": failure.reason,
        "message": failure.message,
    }
    return list(old) if conditions.find(old, "ReplicaFailure") else [*old, new]
