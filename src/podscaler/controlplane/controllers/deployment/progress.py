"""Computes the condition Progressing: whether a rollout progresses, is complete or has timed out.

The reasons of the condition, in the order of a rollout:

    NewReplicaSetCreated or FoundNewReplicaSet -> ReplicaSetUpdated (again and again) -> NewReplicaSetAvailable
    any of the first three, progressDeadlineSeconds without news -> ProgressDeadlineExceeded -> ReplicaSetUpdated
    any <-> DeploymentPaused, DeploymentResumed

Source: documentation of Deployment, "Deployment status"; `kubectl rollout status` and `wait` read reasons and messages.
"""

from collections.abc import Sequence

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.controllers.deployment.deployment_status import condition, is_complete
from podscaler.controlplane.controllers.framework import conditions

PROGRESSING = "Progressing"
AVAILABLE = "NewReplicaSetAvailable"
CREATED = "NewReplicaSetCreated"
FOUND = "FoundNewReplicaSet"
UPDATED = "ReplicaSetUpdated"
TIMED_OUT = "ProgressDeadlineExceeded"
CREATE_FAILED = "ReplicaSetCreateError"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"
_NO_DEADLINE_S = 2**31 - 1


def deadline_s(deployment: Object) -> int | None:
    """`spec.progressDeadlineSeconds`; None without one, in which case there is no condition Progressing."""
    limit = deployment["spec"].get("progressDeadlineSeconds")
    return None if limit is None or limit == _NO_DEADLINE_S else int(limit)


def find(status: Object) -> Object | None:
    """The condition Progressing of a status, None without one."""
    return conditions.find(status.get("conditions") or [], PROGRESSING)


def progressing(status: str, reason: str, *, message: str, now_ns: int) -> Object:
    """A condition Progressing that changed now."""
    return condition(PROGRESSING, status, reason, message=message, now_ns=now_ns)


def pause_condition(deployment: Object, now_ns: int) -> Object | None:
    """The condition to set after the Deployment was paused or resumed, None if it is set already."""
    current = find(deployment.get("status") or {})
    if deadline_s(deployment) is None or (current is not None and current.get("reason") == TIMED_OUT):
        return None
    was_paused = current is not None and current.get("reason") == PAUSED
    paused = bool(deployment["spec"].get("paused"))
    if paused == was_paused:
        return None
    reason, message = (PAUSED, "Deployment is paused") if paused else (RESUMED, "Deployment is resumed")
    return progressing("Unknown", reason, message=message, now_ns=now_ns)


def with_progress(
    deployment: Object, status: Object, *, sets: Sequence[Object], new: Object | None, now_ns: int
) -> Object:
    """`status` with the conditions Progressing and ReplicaFailure.

    Args:
        deployment: with the status before this sync.
        status: as returned by `deployment_status.status`.
        sets, new, now_ns: as for `deployment_status.status`.
    """
    present: list[Object] = status["conditions"]
    current = find(deployment.get("status") or {})
    if deadline_s(deployment) is None:
        present = conditions.without(present, PROGRESSING)
    elif not _was_complete(status, current):
        present = _updated(deployment, status, new=new, now_ns=now_ns)
    failure = _failure(sets, new, now_ns)
    present = conditions.with_condition(present, failure) if failure else conditions.without(present, "ReplicaFailure")
    return {**status, "conditions": present}


def requeue_after_s(deployment: Object, status: Object, now_ns: int) -> float | None:
    """The seconds until the deadline must be checked, None if it cannot pass."""
    limit_s, current = deadline_s(deployment), find(status)
    if limit_s is None or current is None or current.get("reason") == TIMED_OUT or is_complete(deployment, status):
        return None
    left_s = (_updated_at_ns(current) - now_ns) / NANOSECONDS + limit_s
    return max(left_s, 0.0) + 1.0


def _was_complete(status: Object, current: Object | None) -> bool:
    all_updated = bool(status.get("replicas", 0) == status.get("updatedReplicas", 0))
    return all_updated and current is not None and current.get("reason") == AVAILABLE


def _updated(deployment: Object, status: Object, *, new: Object | None, now_ns: int) -> list[Object]:
    subject = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    present: list[Object] = status["conditions"]
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return conditions.with_condition(present, progressing("True", AVAILABLE, message=message, now_ns=now_ns))
    if _has_progressed(deployment.get("status") or {}, status):
        message = f"{subject} is progressing."
        return _renewed(present, progressing("True", UPDATED, message=message, now_ns=now_ns))
    if _has_timed_out(deployment, status, now_ns):
        message = f"{subject} has timed out progressing."
        return conditions.with_condition(present, progressing("False", TIMED_OUT, message=message, now_ns=now_ns))
    return present


def _renewed(present: Sequence[Object], new: Object) -> list[Object]:
    """The conditions with `new` as Progressing.

    It is replaced even if its reason and status are the same, as its lastUpdateTime restarts the deadline.
    """
    old = conditions.find(present, PROGRESSING)
    if old is not None and old["status"] == new["status"] and "lastTransitionTime" in old:
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return [*conditions.without(present, PROGRESSING), new]


def _has_progressed(before: Object, after: Object) -> bool:
    def outdated(status: Object) -> int:
        return int(status.get("replicas", 0) - status.get("updatedReplicas", 0))

    def grew(name: str) -> bool:
        return bool(after.get(name, 0) > before.get(name, 0))

    return outdated(after) < outdated(before) or any(
        map(grew, ("updatedReplicas", "readyReplicas", "availableReplicas"))
    )


def _has_timed_out(deployment: Object, status: Object, now_ns: int) -> bool:
    limit_s, current = deadline_s(deployment), find(status)
    if limit_s is None or current is None or current.get("reason") == AVAILABLE:
        return False
    if current.get("reason") == TIMED_OUT:
        return True
    return _updated_at_ns(current) + limit_s * NANOSECONDS < now_ns


def _updated_at_ns(condition: Object) -> int:
    return instants.parse_optional(condition.get("lastUpdateTime"))


def _failure(sets: Sequence[Object], new: Object | None, now_ns: int) -> Object | None:
    """ReplicaFailure of the first ReplicaSet that has it, the newest one first; None if none has it."""
    ordered = [new, *sets] if new else list(sets)
    for replica_set in ordered:
        cause = conditions.find((replica_set.get("status") or {}).get("conditions") or [], "ReplicaFailure")
        if cause is not None:
            reason, message = cause.get("reason", ""), cause.get("message", "")
            return condition("ReplicaFailure", cause["status"], reason, message=message, now_ns=now_ns)
    return None
