"""Computes the condition Progressing: whether a rollout progresses, is complete or has timed out.

The reasons of the condition, in the order of a rollout:

    NewReplicaSetCreated or FoundNewReplicaSet -> ReplicaSetUpdated (again and again) -> NewReplicaSetAvailable
    any of the first three, progressDeadlineSeconds without progress -> ProgressDeadlineExceeded -> ReplicaSetUpdated
    any -> ReplicaSetCreateError (`deployment` sets it if the API server rejects the new ReplicaSet)
    any <-> DeploymentPaused, DeploymentResumed

`rollout` and `deployment` call it. A new reason: a constant, and a case in `_with_updated_progress`.

Source: documentation of Deployment, "Deployment status"; `kubectl rollout status` and `wait` read reasons and messages.
"""

from collections.abc import Sequence

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.controllers.deployment.deployment_status import deployment_condition, is_complete
from podscaler.controlplane.controllers.framework import conditions

PROGRESSING = "Progressing"
"""The type of the condition; the constants below are its reasons."""
AVAILABLE = "NewReplicaSetAvailable"
CREATED = "NewReplicaSetCreated"
FOUND = "FoundNewReplicaSet"
UPDATED = "ReplicaSetUpdated"
TIMED_OUT = "ProgressDeadlineExceeded"
CREATE_FAILED = "ReplicaSetCreateError"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"
_NO_DEADLINE_S = 2**31 - 1
"""The progressDeadlineSeconds that stands for no deadline, as upstream."""
_CHECK_DELAY_S = 1.0
"""A sync is planned so much after the deadline, so that it certainly finds the deadline passed."""


def deadline_s(deployment: Object) -> int | None:
    """`spec.progressDeadlineSeconds`; None without one, in which case there is no condition Progressing."""
    limit = deployment["spec"].get("progressDeadlineSeconds")
    return None if limit is None or limit == _NO_DEADLINE_S else int(limit)


def find_progressing(status: Object) -> Object | None:
    """The condition Progressing of a status, None without one."""
    return conditions.find(status.get("conditions") or [], PROGRESSING)


def progressing_condition(status: str, reason: str, *, message: str, now_ns: int) -> Object:
    """A condition Progressing that changed now."""
    return deployment_condition(PROGRESSING, status, reason, message=message, now_ns=now_ns)


def pause_condition(deployment: Object, now_ns: int) -> Object | None:
    """The condition to set after the Deployment was paused or resumed.

    None if it is set already, without a deadline, and once the deadline has passed.
    """
    current = find_progressing(deployment.get("status") or {})
    if deadline_s(deployment) is None or (current is not None and current.get("reason") == TIMED_OUT):
        return None
    was_paused = current is not None and current.get("reason") == PAUSED
    is_paused = bool(deployment["spec"].get("paused"))
    if is_paused == was_paused:
        return None
    reason, message = (PAUSED, "Deployment is paused") if is_paused else (RESUMED, "Deployment is resumed")
    return progressing_condition("Unknown", reason, message=message, now_ns=now_ns)


def with_progress(
    deployment: Object, status: Object, *, sets: Sequence[Object], new_set: Object | None, now_ns: int
) -> Object:
    """`status` with the conditions Progressing and ReplicaFailure.

    Args:
        deployment: with the status before this sync.
        status: as returned by `deployment_status.status`.
        sets, new_set, now_ns: as for `deployment_status.status`.
    """
    all_conditions: list[Object] = status["conditions"]
    old_progressing = find_progressing(deployment.get("status") or {})
    if deadline_s(deployment) is None:
        all_conditions = conditions.without(all_conditions, PROGRESSING)
    elif not _was_complete(status, old_progressing):
        all_conditions = _with_updated_progress(deployment, status, new_set=new_set, now_ns=now_ns)
    failure = _find_replica_failure(sets, new_set, now_ns)
    if failure is not None:
        all_conditions = conditions.with_condition(all_conditions, failure)
    else:
        all_conditions = conditions.without(all_conditions, "ReplicaFailure")
    return {**status, "conditions": all_conditions}


def requeue_after_s(deployment: Object, status: Object, now_ns: int) -> float | None:
    """The seconds until the deadline must be checked, None if it cannot pass."""
    limit_s, current = deadline_s(deployment), find_progressing(status)
    if limit_s is None or current is None or current.get("reason") == TIMED_OUT or is_complete(deployment, status):
        return None
    left_s = (_updated_at_ns(current) - now_ns) / NANOSECONDS + limit_s
    return max(left_s, 0.0) + _CHECK_DELAY_S


def _was_complete(status: Object, old_progressing: Object | None) -> bool:
    """Whether an earlier sync found the rollout complete, and no old pods exist since."""
    all_updated = bool(status.get("replicas", 0) == status.get("updatedReplicas", 0))
    return all_updated and old_progressing is not None and old_progressing.get("reason") == AVAILABLE


def _with_updated_progress(deployment: Object, status: Object, *, new_set: Object | None, now_ns: int) -> list[Object]:
    """The conditions of `status` with Progressing for a complete, proceeding or timed-out rollout; else as they are."""
    subject = (
        f'ReplicaSet "{new_set["metadata"]["name"]}"' if new_set else f'Deployment "{deployment["metadata"]["name"]}"'
    )
    old_conditions: list[Object] = status["conditions"]
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        complete = progressing_condition("True", AVAILABLE, message=message, now_ns=now_ns)
        return conditions.with_condition(old_conditions, complete)
    if _has_progressed(deployment.get("status") or {}, status):
        message = f"{subject} is progressing."
        return _with_renewed(old_conditions, progressing_condition("True", UPDATED, message=message, now_ns=now_ns))
    if _has_timed_out(deployment, status, now_ns):
        message = f"{subject} has timed out progressing."
        timed_out = progressing_condition("False", TIMED_OUT, message=message, now_ns=now_ns)
        return conditions.with_condition(old_conditions, timed_out)
    return old_conditions


def _with_renewed(old_conditions: Sequence[Object], new_condition: Object) -> list[Object]:
    """The conditions with `new_condition` as Progressing.

    It is replaced even if its reason and status are the same, as its lastUpdateTime restarts the deadline.
    """
    old_condition = conditions.find(old_conditions, PROGRESSING)
    renewed_condition = conditions.with_old_transition(old_condition, new_condition)
    return [*conditions.without(old_conditions, PROGRESSING), renewed_condition]


def _has_progressed(old_status: Object, new_status: Object) -> bool:
    """Whether between two statuses old pods were removed, or new, ready or available ones were added."""
    if _outdated_replicas(new_status) < _outdated_replicas(old_status):
        return True
    growing_counts = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return any(new_status.get(field, 0) > old_status.get(field, 0) for field in growing_counts)


def _outdated_replicas(status: Object) -> int:
    """How many pods are not of the Deployment's present template."""
    return int(status.get("replicas", 0) - status.get("updatedReplicas", 0))


def _has_timed_out(deployment: Object, status: Object, now_ns: int) -> bool:
    """Whether the progress deadline has passed since the last update of Progressing; never once complete."""
    limit_s, current = deadline_s(deployment), find_progressing(status)
    if limit_s is None or current is None or current.get("reason") == AVAILABLE:
        return False
    if current.get("reason") == TIMED_OUT:
        return True
    return _updated_at_ns(current) + limit_s * NANOSECONDS < now_ns


def _updated_at_ns(progressing: Object) -> int:
    """`lastUpdateTime` of a condition, in nanoseconds since the epoch; 0 if it is not set."""
    return instants.parse_optional(progressing.get("lastUpdateTime"))


def _find_replica_failure(sets: Sequence[Object], new_set: Object | None, now_ns: int) -> Object | None:
    """ReplicaFailure of the first ReplicaSet that has it, the new one first; None if none has it."""
    ordered = [new_set, *sets] if new_set else list(sets)
    for replica_set in ordered:
        cause = conditions.find((replica_set.get("status") or {}).get("conditions") or [], "ReplicaFailure")
        if cause is not None:
            reason, message = cause.get("reason", ""), cause.get("message", "")
            return deployment_condition("ReplicaFailure", cause["status"], reason, message=message, now_ns=now_ns)
    return None
